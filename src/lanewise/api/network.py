"""Measures the network between two processes or hosts."""

from __future__ import annotations


def measure_network() -> None:
    """To come."""
