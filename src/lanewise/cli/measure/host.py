"""`lanewise measure host`: memory copies by NUMA node and thread count."""

from __future__ import annotations


def host() -> None:
    """To come."""
