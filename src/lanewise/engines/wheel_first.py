"""Runs in a Ray worker before anything of Lanewise: the driver's wheel goes before an editable install there.

It travels as a module of its own at the top of the wheel, since Lanewise must not be imported before it has run.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder


def prefer_wheel() -> None:
    """Remove the import hooks that find Lanewise outside sys.path, where Ray has put the wheel first."""
    for finder in [finder for finder in sys.meta_path if finder is not PathFinder]:
        if finder.find_spec("lanewise", None) is not None:
            sys.meta_path.remove(finder)
