"""Measures memory copies of this machine."""

from __future__ import annotations


def measure_host() -> None:
    """To come."""
