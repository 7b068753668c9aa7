"""`lanewise measure network`: bandwidth and latency between processes."""

from __future__ import annotations


def network() -> None:
    """To come."""
