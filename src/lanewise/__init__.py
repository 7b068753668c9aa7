"""Measure, predict and compose the data paths that feed GPUs.

Every verb of the command line is a function here; see lanewise.api.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanewise.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # Late, so that `import lanewise` costs nothing until a verb is used.
    from lanewise import api

    if name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module 'lanewise' has no attribute '{name}'")
