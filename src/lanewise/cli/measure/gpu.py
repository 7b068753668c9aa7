"""`lanewise measure gpu`: copies between hosts and GPUs."""

from __future__ import annotations


def gpu() -> None:
    """To come."""
