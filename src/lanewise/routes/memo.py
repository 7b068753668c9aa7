"""Answers about a system's layout, kept as long as it lives: no answer changes, for layouts do not."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from lanewise.topology.model import System, SystemLayout

if TYPE_CHECKING:
    from collections.abc import Callable

_Asked = TypeVarTuple("_Asked")
_Answer = TypeVar("_Answer")


def remembered(function: Callable[[System, *_Asked], _Answer]) -> Callable[[System, *_Asked], _Answer]:
    """A `function` of a system and hashable things that works out each answer once; errors are not kept."""
    tables: WeakKeyDictionary[SystemLayout, dict[tuple[object, ...], _Answer]] = WeakKeyDictionary()

    @wraps(function)
    def asked(system: System, *args: *_Asked) -> _Answer:
        table = tables.get(system.layout)
        if table is None:
            table = tables.setdefault(system.layout, {})
        if args not in table:
            table[args] = function(system, *args)
        return table[args]

    return asked
