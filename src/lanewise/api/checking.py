"""Whether paths deliver what they should."""

from __future__ import annotations


def check() -> None:
    """To come."""
