"""`lanewise check`: whether each path delivers what it should, why not, and what to do next."""

from __future__ import annotations


def check() -> None:
    """To come."""
