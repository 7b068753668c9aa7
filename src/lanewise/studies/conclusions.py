"""Conclusions and derived rows: computed from the rows, on predicted and on published values alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise import units
from lanewise.errors import FormatError, LanewiseError, error_location
from lanewise.expressions import describe, is_number
from lanewise.perf.resources import weakest
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Conclusion
from lanewise.studies.form import ConclusionForm, RowForm
from lanewise.studies.rows import NotStated, StudyRows, ValueKind


def derive(row: RowForm, before: Sequence[Observation]) -> Observation:
    """A row computed from rows above it, with the weakest basis of those; its names are `label` and the settings."""
    unknown = _unknown(row, before)
    if unknown is not None:
        return unknown
    with error_location(row.location):
        result, inputs, published = _evaluate(row, before, ValueKind.PREDICTED)
        if not is_number(result):
            cause = f"'{row.label}' must be one finite number, not {describe(result)}"
            raise FormatError(cause, hint="derive: v('table', 'label') / 2")
    only_published = not inputs
    rows = inputs or published
    return _observation(
        row, Source.EXTRAPOLATED if only_published else Source.PREDICTED, _in_si(result, row),
        basis=None if only_published else Basis(weakest([str(o.basis) for o in rows if o.basis])),
        limit=" / ".join(dict.fromkeys(o.limit for o in rows if o.limit)) if len(rows) < 3 else "",
        study=rows[0].study if rows else "", system=rows[0].system if rows else "",
        published=row.published, extrapolated=row.extrapolated or only_published, role=row.role,
        measured=_measured(row, before),
        note="; ".join(text for text in (row.note, "computed from other rows") if text),
    )  # fmt: skip


def _evaluate(
    row: RowForm, before: Sequence[Observation], kind: ValueKind
) -> tuple[Any, list[Observation], list[Observation]]:
    """The value of a row's expression, the rows whose value of that kind it uses, and those that `pub` reads."""
    rows = StudyRows(before, kind)
    published = StudyRows(before, ValueKind.ASSUMED if kind is ValueKind.ASSUMED else ValueKind.PUBLISHED)
    value = rows.evaluate(row.derive, {"label": row.label, **row.settings}, {"pub": published.value})
    return value, rows.inputs, published.inputs


def _in_si(result: Any, row: RowForm) -> float:
    """The result of an expression, which computes in the units of the tables; a share comes out as a ratio."""
    return float(result) if row.unit == "%" else units.to_si(result, row.unit)


def _measured(row: RowForm, before: Sequence[Observation]) -> Observation | None:
    """The row computed from measured values, None unless all that it needs were measured."""
    try:
        result, inputs, _ = _evaluate(row, before, ValueKind.MEASURED)
    except LanewiseError:
        return None
    if not inputs or not is_number(result):
        return None
    return _observation(row, Source.MEASURED, _in_si(result, row), note="computed from measured rows")


def _unknown(row: RowForm, before: Sequence[Observation]) -> Observation | None:
    """The row without a value, where a row that it is computed from has none."""
    try:
        _, inputs, _ = _evaluate(row, before, ValueKind.ASSUMED)
    except LanewiseError:
        return None
    missing = [observation for observation in inputs if observation.value is None]
    if not missing:
        return None
    return _observation(
        row, Source.PREDICTED, None, published=row.published, extrapolated=row.extrapolated, role=row.role,
        study=missing[0].study, system=missing[0].system, note=f"unknown, as {missing[0].table} is: {missing[0].note}",
    )  # fmt: skip


def _observation(row: RowForm, source: Source, value: float | None, **rest: Any) -> Observation:
    return Observation(
        scenario=row.label, flow="", metric=row.metric, value=value, display_unit=row.unit, source=source,
        table=row.table, settings=dict(row.settings), **rest,
    )  # fmt: skip


def conclude(entry: ConclusionForm, rows: Sequence[Observation]) -> Conclusion:
    """Whether a statement holds on the predicted values, and on the published and measured ones if there are any.

    LanewiseError with the location of the conclusion if its expressions are wrong in themselves.
    """
    predicted = StudyRows(rows, ValueKind.PREDICTED)
    kinds = [k for k in (ValueKind.PUBLISHED, ValueKind.MEASURED) if any(k.of(row) is not None for row in rows)]
    with error_location(entry.location):
        holds = _test(entry.test, predicted)
        texts = [f"predicted {_value(entry.shows, predicted)}"] if entry.shows else []
        for kind in kinds:
            stated = StudyRows(rows, kind)
            if entry.shows:
                texts[0] += f", {kind.value} {_value(entry.shows, stated)}"
            texts.append(f"{kind.value} values: {_word(_test(entry.test, stated))}")
    return Conclusion(entry.says, holds, "; ".join(texts))


def _result(text: str, rows: StudyRows) -> Any:
    """The value of an expression; NotStated if it has none.

    An error in the expression itself is raised for predicted values only, where it appears first.
    """
    try:
        return rows.evaluate(text)
    except NotStated:
        raise
    except LanewiseError as error:
        if rows.kind is not ValueKind.PREDICTED:
            raise NotStated(error.cause) from None
        raise


def _test(text: str, rows: StudyRows) -> bool | None:
    try:
        holds = _result(text, rows)
    except NotStated:
        return None
    if not isinstance(holds, bool):
        raise FormatError(f"a test must be true or false, not {describe(holds)}", hint="compare it with a number")
    return holds


def _value(text: str, rows: StudyRows) -> str:
    try:
        result = _result(text, rows)
    except NotStated:
        return "not stated"
    return ", ".join(_text(value) for value in (result if isinstance(result, list) else [result]))


def _text(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if not is_number(value):
        raise FormatError(f"'shows' must be numbers or texts, not {describe(value)}", hint="such as r.value")
    return units.number(value, 3)


def _word(holds: bool | None) -> str:
    return "not stated" if holds is None else ("true" if holds else "false")
