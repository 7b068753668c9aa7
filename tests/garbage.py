"""Collection of garbage in tests that count what is left."""

from __future__ import annotations

import gc


def collect() -> None:
    """Collect what nothing refers to; what remains is not looked at again: a suite has millions of objects."""
    gc.collect()
    gc.freeze()
