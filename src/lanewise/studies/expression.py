"""What expressions of a study can ask: the rows as one source tells them, and a few functions over numbers.

v('p2p', 'same switch') > v('p2p', 'one root complex')
all(r.value >= 0.98 * v('gen4', 'TX2550 M7', gpus=r.gpus) for r in rows('gen4') if use(r, 'host link') < 0.9)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.results import statistics
from lanewise.studies.language import Budget, evaluate, kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lanewise.results.observation import Observation


class NotStated(InputError):
    """An expression is sound, but the source it is put to does not state a value that it needs."""


class View(Enum):
    """Whose values the rows tell: the prediction's, the publication's, the machine's, or 1 (to see what is asked)."""

    PREDICTED = "predicted"
    PUBLISHED = "published"
    MEASURED = "measured"
    ASSUMED = "assumed"

    def of(self, seen: Observation) -> float | None:
        """The value of a row in this view."""
        if self is View.ASSUMED:
            return 1.0
        if self is View.MEASURED:
            return seen.measured.value if seen.measured else None
        return seen.value if self is View.PREDICTED else seen.published


@dataclass(frozen=True, slots=True)
class RowView:
    """One row as expressions see it, in one view."""

    seen: Observation
    value: float
    view: View

    def get(self, name: str) -> Any:
        """A field of the row, or one of its settings (path, gpus); UnknownName for anything else.

        NotStated for what the view does not tell: a publication says nothing of limits, or of the prediction.
        """
        told = {
            "value": self.value, "published": self.seen.published, "label": self.seen.scenario,
            "table": self.seen.table, "system": self.seen.system, "extrapolated": self.seen.extrapolated,
            "metric": self.seen.metric,
        }  # fmt: skip
        basis = str(self.seen.basis) if self.seen.basis else None
        only_predicted = {
            "predicted": self.seen.value, "limit": self.seen.limit, "basis": basis, "low": self.seen.low,
            "high": self.seen.high, "residual_pct": self.seen.residual_pct,
        }  # fmt: skip
        known = told | only_predicted | dict(self.seen.settings)
        if name not in known:
            raise unknown_name("field of a row", name, known)
        if name in only_predicted:
            self.needs_prediction(f"'{name}'")
        if known[name] is None:
            raise NotStated(f"'{name}' of '{self.seen.scenario}' is not stated", hint="leave such rows out")
        return known[name]

    def needs_prediction(self, what: str) -> None:
        """NotStated if this view is the publication's or the machine's."""
        if self.view in (View.PUBLISHED, View.MEASURED):
            raise NotStated(f"{what} is not {self.view.value}", hint="predicted_use(r, text) selects rows in any view")


class Rows:
    """The rows of a study in one view; rows without a value there count as not stated."""

    def __init__(self, rows: Sequence[Observation], view: View) -> None:
        self.all, self.view = rows, view
        self.touched: list[Observation] = []
        self.budget = Budget()
        self.tables = dict.fromkeys(row.table for row in rows)
        self.fields = {name for row in rows for name in row.settings} | {"label", "system", "metric", "extrapolated"}

    def rows(self, table: str | None = None, **where: Any) -> list[RowView]:
        """The rows of a table (all tables if none is named) whose fields equal `where`; NotStated if none has a value.

        UnknownName for a table or a field that no row has.
        """
        found = self._find(table, where)
        made = self._viewed(found)
        if found and not made:
            raise NotStated(f"no such row of '{table}' has a value", hint="choose rows that have one")
        self.touched += [r.seen for r in made]
        return made

    def value(self, table: str, label: str, **where: Any) -> float:
        """The value of the one row that fits; UnknownName if there is none, FormatError if several."""
        if not isinstance(label, str):
            raise FormatError(f"the label of a row is a text, not {kind(label)}", hint="v('table', 'label')")
        found = self._find(table, {**where, "label": label})
        if not found:
            labels = {row.scenario for row in self.all if row.table == table}
            raise unknown_name(f"row of table '{table}'", _asked(label, where), labels)
        if len(found) > 1:
            raise FormatError(
                f"'{label}' of table '{table}' stands for {len(found)} rows", hint="name the setting, such as gpus=4"
            )
        made = self._viewed(found)
        if not made:
            raise NotStated(f"'{label}' of table '{table}' has no {self.view.value} value", hint="use another row")
        self.touched.append(found[0])
        return made[0].value

    def evaluate(
        self, text: str, names: Mapping[str, Any] | None = None, more: Mapping[str, Callable[..., Any]] | None = None
    ) -> Any:
        """The value of an expression over these rows; LanewiseError if it cannot be had, NotStated for want of one."""
        self.budget = Budget()
        own: dict[str, Callable[..., Any]] = {"rows": self.rows, "v": self.value}
        return evaluate(text, names or {}, {**_FUNCTIONS, **own, **(more or {})}, self.budget)

    def _find(self, table: str | None, where: Mapping[str, Any]) -> list[Observation]:
        if table is not None and not isinstance(table, str):
            raise FormatError(f"a table is named by a text, not {kind(table)}", hint="rows('table')")
        if table is not None and table not in self.tables:
            raise unknown_name("table", table, self.tables)
        for name in where:
            if name not in self.fields:
                raise unknown_name("field of a row", name, self.fields)
        self.budget.spend(len(self.all))
        return [row for row in self.all if table in (None, row.table) and _matches(row, where)]

    def _viewed(self, found: Iterable[Observation]) -> list[RowView]:
        return [RowView(row, value, self.view) for row in found if (value := self.view.of(row)) is not None]


def use(row: RowView, text: str) -> float:
    """The highest predicted use (0..1) of the row's resources whose name contains `text`; | separates texts.

    NotStated among published values, as no publication tells it.
    """
    if isinstance(row, RowView):
        row.needs_prediction("the use of a resource")
    return predicted_use(row, text)


def predicted_use(row: RowView, text: str) -> float:
    """As `use`, also among published values: selects the rows that a statement is about."""
    if not isinstance(row, RowView) or not isinstance(text, str):
        raise FormatError(f"use({kind(row)}, {kind(text)}) needs a row and a text", hint="use(r, 'host link')")
    wanted = text.split("|")
    return max((u for name, u in row.seen.use.items() if any(w in name for w in wanted)), default=0.0)


def total(values: Iterable[float]) -> float:
    """The sum of numbers."""
    return sum(_numbers("sum", values))


def rounded(value: float, digits: int = 0) -> float:
    """A number rounded to that many digits after the point, 15 at most."""
    if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= 15:
        raise FormatError(f"round takes 0 to 15 digits, not {kind(digits)}", hint="round(0.123, 2)")
    return round(_numbers("round", [value])[0], digits)


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    found = _numbers("mean", values)
    return sum(found) / len(found)


def rms(values: Iterable[float]) -> float:
    """Root of the mean square."""
    found = statistics.rms(_numbers("rms", values))
    if found is None:
        raise FormatError("rms needs at least one value", hint="choose rows that exist")
    return found


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all, "any": any, "min": min, "max": max, "abs": abs, "sum": total, "len": len, "sorted": sorted,
    "round": rounded, "mean": mean, "rms": rms, "use": use, "predicted_use": predicted_use,
}  # fmt: skip


def _numbers(function: str, values: Iterable[Any]) -> list[float]:
    found = list(values)
    for value in found:
        if not isinstance(value, (int, float)):
            raise FormatError(f"{function} takes numbers, not {kind(value)}", hint=f"{function}([1, 2])")
    return found


def _matches(row: Observation, where: Mapping[str, Any]) -> bool:
    own = {"label": row.scenario, "system": row.system, "metric": row.metric, "extrapolated": row.extrapolated}
    told = own | dict(row.settings)
    return all(name in told and told[name] == value for name, value in where.items())


def _asked(label: str, where: Mapping[str, Any]) -> str:
    return ", ".join([label, *(f"{name}={value}" for name, value in where.items())])
