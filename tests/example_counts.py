"""How many examples a property gets that needs more than the profile's: as many times as many, whatever the profile."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

USUAL = 100  # hypothesis' own count, to which a number of examples in a test refers


def examples(count: int, **more: Any) -> settings:
    """Settings with `count` examples under hypothesis' own profile and in proportion under one with fewer of them."""
    return settings(max_examples=max(1, count * settings().max_examples // USUAL), deadline=None, **more)
