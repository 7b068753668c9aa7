"""Whole-number arithmetic over parameters, as written in braces and in `when:`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from lanewise.errors import FormatError, unknown_name

MAX_LENGTH = 200
MAX_NUMBER = 10**12
_BRACES = re.compile(r"\{([^{}]*)\}")
_HINT = "use whole numbers, parameters, + - * // % ( ), min() and max()"

_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def fill(text: str, values: Mapping[str, int]) -> str:
    """`text` with every `{expression}` replaced by its value; FormatError or UnknownName if it cannot."""
    filled = _BRACES.sub(lambda match: str(evaluate(match[1], values)), text)
    if "{" in filled or "}" in filled:
        raise FormatError(f"a brace in '{text}' has no partner", hint="write {parameter} or {parameter-1}")
    return filled


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of an arithmetic expression over parameters; FormatError or UnknownName otherwise."""
    return int(_value(_parse(text), text, values))


def holds(text: str, values: Mapping[str, int]) -> bool:
    """Whether a condition such as 'path >= 3 and gpus > 1' is true; FormatError or UnknownName otherwise."""
    return bool(_value(_parse(text), text, values))


def _parse(text: str) -> ast.expr:
    stripped = text.strip()
    try:
        if len(stripped) > MAX_LENGTH:
            raise SyntaxError
        return ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormatError(f"cannot calculate '{stripped[:60]}'", hint=_HINT) from None


def _value(node: ast.expr, text: str, values: Mapping[str, int]) -> int:
    result = _compute(node, text, values)
    if abs(result) > MAX_NUMBER:
        raise FormatError(f"'{text}' is too large", hint=_HINT)
    return result


def _compute(node: ast.expr, text: str, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.Name(id=name):
            if name not in values:
                raise unknown_name("parameter", name, values)
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _value(operand, text, values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _binary(op, _value(left, text, values), _value(right, text, values), text)
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARISON for op in ops):
            terms = [_value(term, text, values) for term in (left, *rest)]
            pairs = zip(ops, terms, terms[1:], strict=False)
            return int(all(_COMPARISON[type(op)](one, other) for op, one, other in pairs))
        case ast.BoolOp(op=op, values=terms_):
            truths = [bool(_value(term, text, values)) for term in terms_]
            return int(all(truths) if isinstance(op, ast.And) else any(truths))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, *_] as args, keywords=[]):
            numbers = [_value(term, text, values) for term in args]
            return min(numbers) if name == "min" else max(numbers)
        case _:
            raise FormatError(f"cannot calculate '{text.strip()}'", hint=_HINT)


def _binary(op: ast.operator, left: int, right: int, text: str) -> int:
    if right == 0 and isinstance(op, (ast.FloorDiv, ast.Mod)):
        raise FormatError(f"'{text.strip()}' divides by zero", hint=_HINT)
    return _ARITHMETIC[type(op)](left, right)
