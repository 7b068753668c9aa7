"""The small expression language of studies, computed node by node: no Python attribute, loop or object is in reach.

Comparisons, and/or/not, + - * / on numbers, lists, comprehensions, `a if b else c`, fields of rows, and the functions
that it is given. Length, depth, size of numbers and steps are bounded, so that every expression ends.
"""

from __future__ import annotations

import ast
import math
import operator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lanewise.errors import FormatError, LanewiseError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MAX_TEXT, MAX_NODES, MAX_DEPTH, MAX_LOOPS, MAX_STEPS, MAX_NUMBER = 2000, 500, 40, 4, 300_000, 1e15
_HINT = "use comparisons, sums, lists and row fields; see docs/reference/study-format.md"
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Call,
    ast.Name, ast.Load, ast.Store, ast.Constant, ast.Attribute, ast.GeneratorExp, ast.ListComp, ast.comprehension,
    ast.IfExp, ast.keyword, ast.Tuple, ast.List, ast.Subscript, *_ARITHMETIC, *_COMPARE,
)  # fmt: skip


@runtime_checkable
class HasFields(Protocol):
    """What `row.field` may be asked of."""

    def get(self, name: str) -> Any:
        """The field of that name; UnknownName if there is none."""


@dataclass(slots=True)
class Budget:
    """The steps an expression may still take."""

    left: int = MAX_STEPS

    def spend(self, steps: int = 1) -> None:
        """Take that many steps; FormatError when they run out."""
        self.left -= steps
        if self.left < 0:
            raise FormatError("the expression takes too many steps", hint="use fewer loops inside each other")


def check_expression(text: str) -> None:
    """FormatError if `text` is no expression of this language; nothing is computed."""
    _parse(text)


def evaluate(
    text: str, names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], budget: Budget | None = None
) -> Any:
    """The value of `text` with those names and functions and nothing else; LanewiseError says why there is none."""
    tree = _parse(text)
    try:
        value = _Evaluation(names, functions, budget or Budget()).of(tree.body)
        return list(value) if isinstance(tree.body, ast.GeneratorExp) else value
    except LanewiseError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise FormatError(f"'{_clip(text)}' cannot be computed: {error}", hint=_HINT) from None


@lru_cache(maxsize=512)
def _parse(text: str) -> ast.Expression:
    if len(text) > MAX_TEXT:
        raise FormatError(f"an expression has {MAX_TEXT} letters at most, not {len(text)}", hint=_HINT)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it nests too deep or is no text"
        raise FormatError(f"'{_clip(text)}' is not an expression: {why}", hint=_HINT) from None
    count = loops = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        count, loops = count + 1, loops + isinstance(node, ast.comprehension)
        if count > MAX_NODES or depth > MAX_DEPTH or loops > MAX_LOOPS:
            limits = f"{MAX_NODES} pieces, {MAX_DEPTH} levels and {MAX_LOOPS} loops"
            raise FormatError(f"'{_clip(text)}' is too long: an expression has {limits} at most", hint=_HINT)
        _check(node)
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return tree


def _check(node: ast.AST) -> None:
    if not isinstance(node, _ALLOWED):
        raise FormatError(f"{type(node).__name__} is not allowed in an expression", hint=_HINT)
    if isinstance(node, ast.Name) and node.id.startswith("_"):
        raise FormatError(f"the name '{node.id}' is not allowed in an expression", hint=_HINT)
    if isinstance(node, ast.Constant):
        value = node.value
        if not isinstance(value, (str, int, float)) or (not isinstance(value, str) and abs(value) > MAX_NUMBER):
            raise FormatError(f"{_clip(repr(value))} is not allowed in an expression", hint="numbers up to 1e15, texts")
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
        raise FormatError("only a function can be called in an expression", hint=_HINT)
    if isinstance(node, ast.keyword) and node.arg is None:
        raise FormatError("** is not allowed in an expression", hint=_HINT)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One walk over an expression: a method for each kind of node, and a step for each visit."""

    names: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    budget: Budget
    bound: Mapping[str, Any] = field(default_factory=dict)

    def of(self, node: ast.expr) -> Any:
        """The value of a node."""
        self.budget.spend()
        return _METHODS[type(node)](self, node)

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        for scope in (self.bound, self.names):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.functions:
            raise FormatError(f"'{node.id}' is a function", hint=f"write {node.id}(...)")
        raise unknown_name("name in an expression", node.id, [*self.names, *self.bound, *self.functions])

    def attribute(self, node: ast.Attribute) -> Any:
        row = self.of(node.value)
        if not isinstance(row, HasFields):
            raise FormatError(f"only rows have fields, '{node.attr}' was asked of {kind(row)}", hint=_HINT)
        return row.get(node.attr)

    def call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self.functions:
            raise unknown_name("function", name, self.functions)
        args = [self.of(arg) for arg in node.args]
        options = {str(option.arg): self.of(option.value) for option in node.keywords}
        self.budget.spend(sum(len(arg) for arg in args if isinstance(arg, list)))
        return _bounded(self.functions[name](*args, **options))

    def bool_op(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.of(part)
            if bool(value) is stop:
                return value
        return value

    def unary_op(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        return not value if isinstance(node.op, ast.Not) else -_number(value)

    def bin_op(self, node: ast.BinOp) -> Any:
        a, b = self.of(node.left), self.of(node.right)
        if isinstance(node.op, ast.Add) and isinstance(a, list) and isinstance(b, list):
            self.budget.spend(len(a) + len(b))
            return a + b
        return _bounded(_ARITHMETIC[type(node.op)](_number(a), _number(b)))

    def compare(self, node: ast.Compare) -> bool:
        left = self.of(node.left)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.of(other)
            if isinstance(right, list):
                self.budget.spend(len(right))
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def if_exp(self, node: ast.IfExp) -> Any:
        return self.of(node.body if self.of(node.test) else node.orelse)

    def listed(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.of(entry) for entry in node.elts]

    def subscript(self, node: ast.Subscript) -> Any:
        values, index = self.of(node.value), self.of(node.slice)
        if not isinstance(values, list) or isinstance(index, bool) or not isinstance(index, int):
            raise FormatError(f"[{kind(index)}] cannot be taken of {kind(values)}", hint="such as [1, 2][0]")
        return values[index]

    def list_comp(self, node: ast.ListComp) -> list[Any]:
        return list(self._loop(node.elt, node.generators))

    def generator(self, node: ast.GeneratorExp) -> Iterator[Any]:
        return self._loop(node.elt, node.generators)

    def _loop(self, body: ast.expr, loops: Sequence[ast.comprehension]) -> Iterator[Any]:
        if not loops:
            yield self.of(body)
            return
        first, rest = loops[0], loops[1:]
        for entry in self.of(first.iter):
            inside = replace(self, bound={**self.bound, **_bind(first.target, entry)})
            if all(inside.of(condition) for condition in first.ifs):
                yield from inside._loop(body, rest)


_METHODS: dict[type, Callable[[_Evaluation, Any], Any]] = {
    ast.Constant: _Evaluation.constant, ast.Name: _Evaluation.name, ast.Attribute: _Evaluation.attribute,
    ast.Call: _Evaluation.call, ast.BoolOp: _Evaluation.bool_op, ast.UnaryOp: _Evaluation.unary_op,
    ast.BinOp: _Evaluation.bin_op, ast.Compare: _Evaluation.compare, ast.IfExp: _Evaluation.if_exp,
    ast.List: _Evaluation.listed, ast.Tuple: _Evaluation.listed, ast.Subscript: _Evaluation.subscript,
    ast.ListComp: _Evaluation.list_comp, ast.GeneratorExp: _Evaluation.generator,
}  # fmt: skip


def _bind(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, list):
        raise FormatError("a loop needs a name after 'for'", hint="such as: r.value for r in rows('table')")
    found: dict[str, Any] = {}
    for name, entry in zip(target.elts, value, strict=True):
        found |= _bind(name, entry)
    return found


def kind(value: Any) -> str:
    """What a value is, in words for a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value:g}"
    if isinstance(value, str):
        return f"'{_clip(value)}'"
    return "a list" if isinstance(value, list) else "a row" if isinstance(value, HasFields) else "a loop"


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and not true or false."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)):
        raise FormatError(f"{kind(value)} is not a number", hint="+ - * / are for numbers; + also joins lists")
    return value


def _bounded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise FormatError("a result is not finite", hint="check the units of what is multiplied or divided")
    if isinstance(value, int) and abs(value) > MAX_NUMBER**2:
        raise FormatError("a whole number grows too large", hint="write a decimal point after one of the factors")
    return value


def _clip(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
