"""Arguments that take one name or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar, overload

_Name = TypeVar("_Name")


@overload
def one_or_more(names: str) -> Sequence[str]: ...
@overload
def one_or_more(names: Path) -> Sequence[Path]: ...
@overload
def one_or_more(names: Iterable[_Name]) -> Sequence[_Name]: ...
def one_or_more(names: str | Path | Iterable[object]) -> Sequence[object]:
    """The files or names that a user gave, one or several: a text is one name, never a sequence of letters."""
    return (names,) if isinstance(names, (str, PathLike)) else tuple(names)
