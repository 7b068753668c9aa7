"""Expressions in system and study files, computed node by node: no Python attribute, loop or object is in reach.

A grammar says which of Python's expressions are legal; the caller supplies the names and functions. Length, depth, size
of numbers and steps are limited, so that every expression ends.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from lanewise.errors import FormatError, LanewiseError, unknown_name

MAX_NODES, MAX_DEPTH, MAX_LOOPS, MAX_STEPS = 500, 40, 4, 300_000
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_COMMON = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.UnaryOp, ast.Not, ast.USub,
    ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Call, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grammar:
    """The legal nodes and constants of an expression, its limits, and the words of its errors."""

    nodes: tuple[type, ...]
    constants: tuple[type, ...]
    max_text: int
    max_number: int
    name: str
    hint: str


ARITHMETIC = Grammar(
    (*_COMMON, ast.FloorDiv, ast.Mod), (int,), 200, 10**12, "parameter",
    "use whole numbers, parameters, + - * // % ( ), min() and max()",
)  # fmt: skip
STATEMENTS = Grammar(
    (
        *_COMMON, ast.Div, ast.In, ast.NotIn, ast.Store, ast.Attribute, ast.GeneratorExp, ast.ListComp,
        ast.comprehension, ast.IfExp, ast.keyword, ast.Tuple, ast.List, ast.Subscript,
    ),
    (int, float, str), 2000, 10**15, "name in an expression",
    "use comparisons, sums, lists and row fields; see docs/reference/study-format.md",
)  # fmt: skip


@runtime_checkable
class HasFields(Protocol):
    """An object whose fields an expression can read as `object.field`."""

    def get(self, name: str) -> Any:
        """The field of that name; UnknownName if there is none."""


@dataclass(slots=True)
class StepLimit:
    """The number of steps that an evaluation may still take."""

    steps: int = MAX_STEPS

    def spend(self, steps: int = 1) -> None:
        """Count that many steps; FormatError if the limit is exceeded."""
        self.steps -= steps
        if self.steps < 0:
            raise FormatError("the expression takes too many steps", hint="use fewer nested loops")


def check_expression(text: str, grammar: Grammar) -> None:
    """FormatError if `text` is no expression of the grammar; nothing is computed."""
    _parse(text, grammar)


def evaluate(
    text: str,
    grammar: Grammar,
    names: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
    limit: StepLimit | None = None,
) -> Any:
    """The value of `text` with those names and functions and no others.

    UnknownName for another name, even in a part that is not computed; FormatError if the value cannot be computed.
    """
    tree, used = _parse(text, grammar)
    for name in used:
        if name in functions and name not in names:
            raise FormatError(f"'{name}' is a function", hint=f"write {name}(...)")
        if name not in names:
            raise unknown_name(grammar.name, name, names or functions)
    try:
        value = _Evaluation(grammar, names, functions, limit or StepLimit()).value(tree.body)
        return list(value) if isinstance(tree.body, ast.GeneratorExp) else value
    except LanewiseError:
        raise
    except ZeroDivisionError:
        raise FormatError(f"'{_clip(text)}' divides by zero", hint=grammar.hint) from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise _error(text, str(error), grammar) from None


@lru_cache(maxsize=512)
def _parse(text: str, grammar: Grammar) -> tuple[ast.Expression, tuple[str, ...]]:
    """The tree of an expression and the names that it takes from outside."""
    if len(text.strip()) > grammar.max_text:
        raise _error(text, f"it has {len(text):,} characters, more than {grammar.max_text:,}", grammar)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        cause = error.msg if isinstance(error, SyntaxError) else "it is nested too deep or is no text"
        raise _error(text, cause, grammar) from None
    count = loops = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        count, loops = count + 1, loops + isinstance(node, ast.comprehension)
        if count > MAX_NODES or depth > MAX_DEPTH or loops > MAX_LOOPS:
            limits = f"{MAX_NODES} nodes, {MAX_DEPTH} levels and {MAX_LOOPS} loops"
            raise _error(text, f"an expression has at most {limits}", grammar)
        cause = _illegal(node, grammar)
        if cause:
            raise _error(text, cause, grammar)
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return tree, tuple(dict.fromkeys(n.id for n in names if n.id not in bound and id(n) not in called))


def _illegal(node: ast.AST, grammar: Grammar) -> str:
    """Why a node has no place in the grammar, '' if it has."""
    if not isinstance(node, grammar.nodes):
        return f"{_WORDS.get(type(node), type(node).__name__)} is not supported"
    if isinstance(node, ast.Name) and node.id.startswith("_"):
        return f"a name cannot begin with _, as '{node.id}' does"
    if isinstance(node, ast.Constant):
        value = node.value
        if not isinstance(value, grammar.constants):
            return f"{_clip(repr(value))} is not supported"
        if isinstance(value, (int, float)) and abs(value) > grammar.max_number:
            return f"{_clip(repr(value))} is above {grammar.max_number:.0e}"
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
        return "only a function can be called"
    return "** is not supported" if isinstance(node, ast.keyword) and node.arg is None else ""


_WORDS: dict[type, str] = {
    ast.Pow: "**", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@", ast.IfExp: "if",
    ast.Attribute: "a dot", ast.List: "a list", ast.Tuple: "a comma",
    ast.Lambda: "lambda", ast.JoinedStr: "an f-string",
}  # fmt: skip


def _error(text: str, cause: str, grammar: Grammar) -> FormatError:
    return FormatError(f"cannot calculate '{_clip(text.strip())}': {cause}", hint=grammar.hint)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One walk over an expression: a method for each kind of node, and a step for each visit."""

    grammar: Grammar
    names: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    limit: StepLimit
    bound: Mapping[str, Any] = field(default_factory=dict)

    def value(self, node: ast.expr) -> Any:
        """The value of a node."""
        self.limit.spend()
        return _METHODS[type(node)](self, node)

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def name(self, node: ast.Name) -> Any:
        for scope in (self.bound, self.names):
            if node.id in scope:
                return scope[node.id]
        raise unknown_name(self.grammar.name, node.id, [*self.names, *self.bound, *self.functions])

    def attribute(self, node: ast.Attribute) -> Any:
        row = self.value(node.value)
        if not isinstance(row, HasFields):
            raise FormatError(
                f"only rows have fields, and {describe(row)} has no '{node.attr}'", hint=self.grammar.hint
            )
        return row.get(node.attr)

    def call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self.functions:
            raise unknown_name("function", name, self.functions)
        args = [self.value(arg) for arg in node.args]
        options = {str(option.arg): self.value(option.value) for option in node.keywords}
        self.limit.spend(sum(len(arg) for arg in args if isinstance(arg, list)))
        return self._bounded(self.functions[name](*args, **options))

    def bool_op(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if bool(value) is stop:
                return value
        return value

    def unary_op(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        return not value if isinstance(node.op, ast.Not) else -_number(value)

    def bin_op(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Add) and isinstance(a, list) and isinstance(b, list):
            self.limit.spend(len(a) + len(b))
            return a + b
        return self._bounded(_BINARY[type(node.op)](_number(a), _number(b)))

    def compare(self, node: ast.Compare) -> bool:
        value = self.value(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if isinstance(right, list):
                self.limit.spend(len(right))
            if not _COMPARE[type(op)](value, right):
                return False
            value = right
        return True

    def if_exp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def listed(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self.value(entry) for entry in node.elts]

    def subscript(self, node: ast.Subscript) -> Any:
        values, index = self.value(node.value), self.value(node.slice)
        if not isinstance(values, list) or isinstance(index, bool) or not isinstance(index, int):
            raise FormatError(f"[{describe(index)}] cannot be taken of {describe(values)}", hint="such as [1, 2][0]")
        return values[index]

    def list_comp(self, node: ast.ListComp) -> list[Any]:
        return list(self._loop(node.elt, node.generators))

    def generator(self, node: ast.GeneratorExp) -> Iterator[Any]:
        return self._loop(node.elt, node.generators)

    def _loop(self, body: ast.expr, loops: Sequence[ast.comprehension]) -> Iterator[Any]:
        if not loops:
            yield self.value(body)
            return
        first, rest = loops[0], loops[1:]
        for entry in self.value(first.iter):
            inside = replace(self, bound={**self.bound, **_bind(first.target, entry)})
            if all(inside.value(condition) for condition in first.ifs):
                yield from inside._loop(body, rest)

    def _bounded(self, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise FormatError("a result is not finite", hint="check the units of what is multiplied or divided")
        if isinstance(value, int) and abs(value) > self.grammar.max_number:
            raise FormatError(f"a whole number is above {self.grammar.max_number:.0e}", hint=self.grammar.hint)
        return value


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
    bound: dict[str, Any] = {}
    for name, entry in zip(target.elts, value, strict=True):
        bound |= _bind(name, entry)
    return bound


def describe(value: Any) -> str:
    """A value in words, for a message."""
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
        raise FormatError(f"{describe(value)} is not a number", hint="+ - * / are for numbers; + also joins lists")
    return value


def _clip(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
