"""`lanewise measure storage`: files or volumes into memory."""

from __future__ import annotations


def storage() -> None:
    """To come."""
