"""The small expression language of studies: comparisons and sums over rows, nothing that could do harm.

v('p2p', 'same switch') > v('p2p', 'one root complex')
all(r.value >= 0.98 * v('gen4', 'TX2550 M7', gpus=r.gpus) for r in rows('gen4') if use(r, 'host link') < 0.9)
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, UnknownName, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lanewise.results.observation import Observation

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Call,
    ast.Name, ast.Load, ast.Store, ast.Constant, ast.Attribute, ast.GeneratorExp, ast.ListComp, ast.comprehension,
    ast.IfExp, ast.keyword, ast.Tuple, ast.List, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
    ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Subscript,
)  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all, "any": any, "min": min, "max": max, "abs": abs, "sum": sum, "len": len, "sorted": sorted,
    "round": round,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowView:
    """One row as expressions see it; `value` is the predicted or the published one, depending on who asks."""

    seen: Observation
    value: float

    def get(self, name: str) -> Any:
        """A field of the row, or one of its settings (path, gpus); UnknownName for anything else."""
        fields = {
            "value": self.value, "predicted": self.seen.value, "published": self.seen.published,
            "label": self.seen.scenario, "table": self.seen.table, "system": self.seen.system,
            "limit": self.seen.limit, "basis": str(self.seen.basis), "extrapolated": self.seen.extrapolated,
            "residual_pct": self.seen.residual_pct, "metric": self.seen.metric,
            "low": self.seen.low, "high": self.seen.high,
        }  # fmt: skip
        known = fields | dict(self.seen.settings)
        if name not in known:
            raise unknown_name("field of a row", name, known)
        return known[name]


class Rows:
    """The rows of a study as one source tells them: by `pick`, predicted or published values."""

    def __init__(self, rows: Sequence[Observation], pick: Callable[[Observation], float | None]) -> None:
        self.views = [RowView(row, value) for row in rows if (value := pick(row)) is not None]
        self.touched: list[Observation] = []

    def rows(self, table: str | None = None, **where: Any) -> list[RowView]:
        """The rows of a table (all tables if none is named) whose fields equal `where`."""
        found = [r for r in self.views if table in (None, r.seen.table) and _matches(r, where)]
        self.touched += [r.seen for r in found]
        return found

    def value(self, table: str, label: str, **where: Any) -> float:
        """The value of the one row that fits; UnknownName if there is none, FormatError if several."""
        found = [r for r in self.views if r.seen.table == table and r.seen.scenario == label and _matches(r, where)]
        if not found:
            raise unknown_name(
                f"row of table '{table}'", label, {r.seen.scenario for r in self.views if r.seen.table == table}
            )
        if len(found) > 1:
            raise FormatError(
                f"'{label}' of table '{table}' stands for {len(found)} rows", hint="name the setting, such as gpus=4"
            )
        self.touched.append(found[0].seen)
        return found[0].value

    def evaluate(self, text: str, names: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression over these rows; FormatError or UnknownName if it cannot be had."""
        functions = {**_FUNCTIONS, "rows": self.rows, "v": self.value, "use": use, "mean": mean, "rms": rms}
        return evaluate(text, {**functions, **(names or {})})


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of `text` with those names and nothing else; FormatError names what is not allowed."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise FormatError(
            f"'{text}' is not an expression: {error.msg}", hint="see docs/reference/study-format.md"
        ) from None
    tree = ast.fix_missing_locations(_Safe().visit(tree))
    try:
        return eval(compile(tree, "<study>", "eval"), {"__builtins__": {}, "_field": _field, **names})
    except NameError as error:
        raise UnknownName(f"'{text}': {error}", hint=f"known: {', '.join(sorted(names))}") from None
    except (TypeError, ValueError, ZeroDivisionError, IndexError, KeyError) as error:
        raise FormatError(f"'{text}' cannot be computed: {error}") from None


class _Safe(ast.NodeTransformer):
    """Refuses all but the allowed nodes and turns `row.field` into a lookup that reaches no Python attribute."""

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _ALLOWED):
            raise FormatError(
                f"{type(node).__name__} is not allowed in an expression", hint="use comparisons, sums and row fields"
            )
        if isinstance(node, ast.Name) and node.id.startswith("_"):
            raise FormatError(f"the name '{node.id}' is not allowed in an expression")
        return super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.Call:
        return ast.Call(ast.Name("_field", ast.Load()), [self.visit(node.value), ast.Constant(node.attr)], [])


def _field(row: Any, name: str) -> Any:
    if not isinstance(row, RowView):
        raise FormatError(f"only rows have fields, '{name}' was asked of {row!r}")
    return row.get(name)


def use(row: RowView, text: str) -> float:
    """The highest use (0..1) of the row's resources whose name contains `text`; several texts separated by |."""
    wanted = text.split("|")
    return max((u for name, u in row.seen.use.items() if any(w in name for w in wanted)), default=0.0)


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    found = list(values)
    return sum(found) / len(found)


def rms(values: Iterable[float]) -> float:
    """Root of the mean square."""
    return math.sqrt(mean(value * value for value in values))


def _matches(row: RowView, where: Mapping[str, Any]) -> bool:
    return all(row.seen.settings.get(k, getattr(row.seen, k, None)) == v for k, v in where.items())
