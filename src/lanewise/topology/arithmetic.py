"""Whole-number arithmetic over parameters, as written in braces and in `when:`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lanewise import expressions
from lanewise.errors import FormatError

_BRACES = re.compile(r"\{([^{}]*)\}")
_FUNCTIONS = {"min": lambda *numbers: min(numbers), "max": lambda *numbers: max(numbers)}


def fill(text: str, values: Mapping[str, int]) -> str:
    """`text` with every `{expression}` replaced by its value; FormatError or UnknownName if it cannot."""
    filled = _BRACES.sub(lambda match: str(evaluate(match[1], values)), text)
    if "{" in filled or "}" in filled:
        raise FormatError(f"a brace in '{text}' has no partner", hint="write {parameter} or {parameter-1}")
    return filled


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of an arithmetic expression over parameters; FormatError or UnknownName otherwise."""
    return int(expressions.evaluate(text, expressions.ARITHMETIC, values, _FUNCTIONS))


def holds(text: str, values: Mapping[str, int]) -> bool:
    """Whether a condition such as 'path >= 3 and gpus > 1' is true; FormatError or UnknownName otherwise."""
    return bool(evaluate(text, values))
