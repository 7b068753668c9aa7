"""Measures copies between hosts and GPUs."""

from __future__ import annotations


def measure_gpu() -> None:
    """To come."""
