"""Options that belong together are one dataclass: a verb takes it whole, Typer sees an option for each field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints


def spread(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb for Typer: a keyword that is annotated with a dataclass is told as the fields of that."""
    asked = inspect.signature(verb, eval_str=True).parameters.values()
    kinds: dict[str, Any] = {each.name: each.annotation for each in asked if is_dataclass(each.annotation)}
    single = [one for each in asked for one in (_options(each.annotation) if each.name in kinds else [each])]

    @wraps(verb)
    def called(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in kinds.items()}
        verb(**given, **made)

    told: Any = called  # Typer asks for both
    told.__signature__ = inspect.Signature(single)  # ValueError where two options have one name
    told.__annotations__ = {each.name: each.annotation for each in single}
    return called


def _options(kind: type) -> Iterator[Parameter]:
    """The fields of a dataclass as keywords; each has a default."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
