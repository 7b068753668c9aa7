"""Times as Redfish writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> str:
    """A time (s since 1970) in UTC, in whole seconds: 2026-11-27T10:20:30Z."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
