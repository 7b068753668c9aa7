"""Results of functions of a system's layout, kept as long as the layout lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from lanewise.topology.model import System, SystemLayout

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


def memoized(function: Callable[[System, *_Args], _Result]) -> Callable[[System, *_Args], _Result]:
    """A `function` of a system and hashable arguments that computes each result once; errors are not kept."""
    tables: WeakKeyDictionary[SystemLayout, dict[tuple[object, ...], _Result]] = WeakKeyDictionary()

    @wraps(function)
    def cached(system: System, *args: *_Args) -> _Result:
        table = tables.get(system.layout)
        if table is None:
            table = tables.setdefault(system.layout, {})
        if args not in table:
            table[args] = function(system, *args)
        return table[args]

    return cached
