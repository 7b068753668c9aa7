"""The rows of a study as its expressions see them, and the functions that expressions can call.

v('p2p', 'same switch') > v('p2p', 'one root complex')
all(r.value >= 0.98 * v('gen4', 'TX2550 M7', gpus=r.gpus) for r in rows('gen4') if use(r, 'host link') < 0.9)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.expressions import STATEMENTS, StepLimit, describe, evaluate
from lanewise.results import statistics
from lanewise.results.observation import Observation


class NotStated(InputError):
    """An expression is correct, but needs a value that is not published, measured or predicted."""


class ValueKind(Enum):
    """Which value of a row an expression reads; ASSUMED is 1 for every row, to see which rows an expression uses."""

    PREDICTED = "predicted"
    PUBLISHED = "published"
    MEASURED = "measured"
    ASSUMED = "assumed"

    def of(self, row: Observation) -> float | None:
        """That value of a row, as a number in the unit of its table: study files compute in those."""
        if self is ValueKind.ASSUMED:
            return 1.0
        if self is ValueKind.MEASURED:
            return row.display(row.measured.value) if row.measured else None
        return row.display(row.value if self is ValueKind.PREDICTED else row.published)


@dataclass(frozen=True, slots=True)
class ExpressionRow:
    """One row as expressions see it: `value` is its value of that kind."""

    observation: Observation
    value: float
    kind: ValueKind

    def get(self, name: str) -> Any:
        """A field of the row, or one of its settings (path, gpus); UnknownName for anything else.

        NotStated for what a publication or a measurement does not state: limits, and the prediction.
        """
        row = self.observation
        stated = {
            "value": self.value, "published": row.display(row.published), "label": row.scenario, "table": row.table,
            "system": row.system, "extrapolated": row.extrapolated, "metric": row.metric,
        }  # fmt: skip
        predicted = {
            "predicted": row.display(row.value), "limit": row.limit, "basis": str(row.basis) if row.basis else None,
            "algorithm": row.how.get("algorithm"),
            "low": row.display(row.low), "high": row.display(row.high), "residual_pct": row.residual_pct,
        }  # fmt: skip
        fields = stated | predicted | dict(row.settings)
        if name not in fields:
            raise unknown_name("field of a row", name, fields)
        if name in predicted:
            self.needs_prediction(f"'{name}'")
        if fields[name] is None:
            raise NotStated(f"'{name}' of '{row.scenario}' is not stated", hint="leave such rows out")
        return fields[name]

    def needs_prediction(self, what: str) -> None:
        """NotStated if the values are published or measured ones."""
        if self.kind in (ValueKind.PUBLISHED, ValueKind.MEASURED):
            raise NotStated(f"{what} is not {self.kind.value}", hint="predicted_use(r, text) selects rows of any kind")


class StudyRows:
    """The rows of a study with one kind of value; a row without such a value counts as not stated."""

    def __init__(self, rows: Sequence[Observation], kind: ValueKind) -> None:
        self.all, self.kind = rows, kind
        self.inputs: list[Observation] = []
        self.limit = StepLimit()
        self.tables = dict.fromkeys(row.table for row in rows)
        self.fields = {name for row in rows for name in row.settings} | {"label", "system", "metric", "extrapolated"}

    def rows(self, table: str | None = None, **where: Any) -> list[ExpressionRow]:
        """The rows of a table (all tables if none is named) whose fields equal `where`; NotStated if none has a value.

        UnknownName for a table or a field that no row has.
        """
        matches = self._find(table, where)
        rows = self._with_value(matches)
        if matches and not rows:
            raise NotStated(f"no such row of '{table}' has a value", hint="choose rows that have one")
        self.inputs += [row.observation for row in rows]
        return rows

    def value(self, table: str, label: str, **where: Any) -> float:
        """The value of the one matching row; UnknownName if there is none, FormatError if several."""
        if not isinstance(label, str):
            raise FormatError(f"the label of a row is a text, not {describe(label)}", hint="v('table', 'label')")
        matches = self._find(table, {**where, "label": label})
        if not matches:
            labels = {row.scenario for row in self.all if row.table == table}
            name = ", ".join([label, *(f"{key}={value}" for key, value in where.items())])
            raise unknown_name(f"row of table '{table}'", name, labels)
        if len(matches) > 1:
            cause = f"'{label}' of table '{table}' matches {len(matches)} rows"
            raise FormatError(cause, hint="name the setting, such as gpus=4")
        rows = self._with_value(matches)
        if not rows:
            raise NotStated(f"'{label}' of table '{table}' has no {self.kind.value} value", hint="use another row")
        self.inputs += matches
        return rows[0].value

    def evaluate(
        self, text: str, names: Mapping[str, Any] | None = None, more: Mapping[str, Callable[..., Any]] | None = None
    ) -> Any:
        """The value of an expression over these rows; NotStated for a missing value, LanewiseError for an error."""
        self.limit = StepLimit()
        own: dict[str, Callable[..., Any]] = {"rows": self.rows, "v": self.value}
        return evaluate(text, STATEMENTS, names or {}, {**_FUNCTIONS, **own, **(more or {})}, self.limit)

    def _find(self, table: str | None, where: Mapping[str, Any]) -> list[Observation]:
        if table is not None and not isinstance(table, str):
            raise FormatError(f"a table is named by a text, not {describe(table)}", hint="rows('table')")
        if table is not None and table not in self.tables:
            raise unknown_name("table", table, self.tables)
        for name in where:
            if name not in self.fields:
                raise unknown_name("field of a row", name, self.fields)
        self.limit.spend(len(self.all))
        return [row for row in self.all if table in (None, row.table) and _matches(row, where)]

    def _with_value(self, rows: Iterable[Observation]) -> list[ExpressionRow]:
        return [ExpressionRow(row, value, self.kind) for row in rows if (value := self.kind.of(row)) is not None]


def use(row: ExpressionRow, text: str) -> float:
    """The highest predicted use (0..1) of the row's resources whose name contains `text`; | separates texts.

    NotStated for published and measured values.
    """
    if isinstance(row, ExpressionRow):
        row.needs_prediction("the use of a resource")
    return predicted_use(row, text)


def predicted_use(row: ExpressionRow, text: str) -> float:
    """As `use`, for values of any kind: selects the rows that a statement is about."""
    if not isinstance(row, ExpressionRow) or not isinstance(text, str):
        raise FormatError(f"use({describe(row)}, {describe(text)}) needs a row and a text", hint="use(r, 'host link')")
    words = text.split("|")
    return max((u for name, u in row.observation.use.items() if any(word in name for word in words)), default=0.0)


def total(values: Iterable[float]) -> float:
    """The sum of numbers."""
    return sum(_numbers("sum", values))


def rounded(value: float, digits: int = 0) -> float:
    """A number rounded to that many digits after the point, 15 at most."""
    if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= 15:
        raise FormatError(f"round takes 0 to 15 digits, not {describe(digits)}", hint="round(0.123, 2)")
    return round(_numbers("round", [value])[0], digits)


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    numbers = _numbers("mean", values, least=1)
    return sum(numbers) / len(numbers)


def rms(values: Iterable[float]) -> float:
    """Root of the mean square."""
    return statistics.rms(_numbers("rms", values, least=1)) or 0.0


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": all, "any": any, "min": min, "max": max, "abs": abs, "sum": total, "len": len, "sorted": sorted,
    "round": rounded, "mean": mean, "rms": rms, "use": use, "predicted_use": predicted_use,
}  # fmt: skip


def _numbers(function: str, values: Iterable[Any], least: int = 0) -> list[float]:
    numbers = list(values)
    for value in numbers:
        if not isinstance(value, (int, float)):
            raise FormatError(f"{function} takes numbers, not {describe(value)}", hint=f"{function}([1, 2])")
    if len(numbers) < least:
        raise FormatError(f"{function} needs at least one value", hint="choose rows that exist")
    return numbers


def _matches(row: Observation, where: Mapping[str, Any]) -> bool:
    own = {"label": row.scenario, "system": row.system, "metric": row.metric, "extrapolated": row.extrapolated}
    fields = own | dict(row.settings)
    return all(name in fields and fields[name] == value for name, value in where.items())
