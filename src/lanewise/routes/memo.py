"""Answers about a system, kept as long as the system lives: systems are frozen, so an answer never changes."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from lanewise.topology.model import System

if TYPE_CHECKING:
    from collections.abc import Callable

_Asked = TypeVarTuple("_Asked")
_Answer = TypeVar("_Answer")


def remembered(function: Callable[[System, *_Asked], _Answer]) -> Callable[[System, *_Asked], _Answer]:
    """A `function` of a system and hashable things that works out each answer once; errors are not kept."""
    tables: WeakKeyDictionary[System, dict[tuple[object, ...], _Answer]] = WeakKeyDictionary()

    @wraps(function)
    def asked(system: System, *args: *_Asked) -> _Answer:
        table = tables.get(system)
        if table is None:
            table = tables.setdefault(system, {})
        if args not in table:
            table[args] = function(system, *args)
        return table[args]

    return asked
