"""The standard library's `re`, whose patterns are compiled when they are first used.

The readers have some 900 patterns, of which one text needs a third: compiled at import, they were a sixth of a check.
"""

from __future__ import annotations

import re
from re import (
    ASCII,
    DOTALL,
    IGNORECASE,
    MULTILINE,
    VERBOSE,
    I,
    Match,
    Pattern,
    escape,
    findall,
    finditer,
    fullmatch,
    match,
    search,
    split,
    sub,
)  # fmt: skip
from typing import Any, AnyStr, cast

__all__ = [
    "ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE", "I", "Match", "Pattern", "compile", "escape", "findall",
    "finditer", "fullmatch", "match", "search", "split", "sub",
]  # fmt: skip
_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class LatePattern:
    """A pattern that is compiled when first asked for anything; its matches name the compiled one as their `re`."""

    _text: str | bytes = ""
    _flags = 0

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        # Bound here, later calls go to the compiled pattern without a detour.
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


def compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern, not compiled yet: what is wrong with it is raised where it is first used."""
    return cast("re.Pattern[AnyStr]", LatePattern(pattern, flags))
