"""Measures storage into host or GPU memory."""

from __future__ import annotations


def measure_storage() -> None:
    """To come."""
