"""Conclusions and derived rows: computed from the rows, on predicted and on published values alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import FormatError, LanewiseError
from lanewise.perf.resources import weakest
from lanewise.results.observation import Basis, Measured, Observation, Source
from lanewise.results.run import Conclusion
from lanewise.studies.expression import NotStated, Rows, View
from lanewise.studies.language import is_number, kind
from lanewise.studies.node import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.studies.form import ConclusionForm, RowForm


def derive(row: RowForm, before: Sequence[Observation]) -> Observation:
    """A row computed from rows above it, with the weakest basis of those; its names are `label` and the settings."""
    unknown = _unknown(row, before)
    if unknown is not None:
        return unknown
    rows, published = Rows(before, View.PREDICTED), Rows(before, View.PUBLISHED)
    with at(row.location):
        result = rows.evaluate(row.derive, {"label": row.label, **row.settings}, {"pub": published.value})
        if not is_number(result):
            cause = f"'{row.label}' must come out as one finite number, not as {kind(result)}"
            raise FormatError(cause, hint="derive: v('table', 'label') / 2")
    touched = rows.touched or published.touched
    only_published = not rows.touched
    return Observation(
        scenario=row.label, flow="", metric=row.metric, unit=row.unit, table=row.table, settings=dict(row.settings),
        value=units.from_si(result, row.unit) if row.unit == "%" else float(result),
        source=Source.EXTRAPOLATED if only_published else Source.PREDICTED,
        basis=None if only_published else Basis(weakest([str(seen.basis) for seen in touched if seen.basis])),
        limit=" / ".join(dict.fromkeys(seen.limit for seen in touched if seen.limit)) if len(touched) < 3 else "",
        study=touched[0].study if touched else "", system=touched[0].system if touched else "",
        published=row.published, extrapolated=row.extrapolated or only_published, role=row.role,
        measured=_measured(row, before),
        note="; ".join(text for text in (row.note, f"computed: {row.derive}") if text),
    )  # fmt: skip


def _measured(row: RowForm, before: Sequence[Observation]) -> Measured | None:
    """The row computed from measured values, None unless all that it needs were measured."""
    rows, published = Rows(before, View.MEASURED), Rows(before, View.PUBLISHED)
    try:
        result = rows.evaluate(row.derive, {"label": row.label, **row.settings}, {"pub": published.value})
    except LanewiseError:
        return None
    if not rows.touched or not is_number(result):
        return None
    value = units.from_si(result, row.unit) if row.unit == "%" else float(result)
    return Measured(value, "computed from measured rows")


def _unknown(row: RowForm, before: Sequence[Observation]) -> Observation | None:
    """The row without a value, where a row that it is computed from has none."""
    probe, published = Rows(before, View.ASSUMED), Rows(before, View.ASSUMED)
    try:
        probe.evaluate(row.derive, {"label": row.label, **row.settings}, {"pub": published.value})
    except LanewiseError:
        return None
    missing = [seen for seen in probe.touched if seen.value is None]
    if not missing:
        return None
    return Observation(
        scenario=row.label, flow="", metric=row.metric, value=None, unit=row.unit, source=Source.PREDICTED,
        table=row.table, settings=dict(row.settings), published=row.published,
        extrapolated=row.extrapolated, role=row.role,
        study=missing[0].study, system=missing[0].system, note=f"unknown, as {missing[0].table} is: {missing[0].note}",
    )  # fmt: skip


def conclude(entry: ConclusionForm, rows: Sequence[Observation]) -> Conclusion:
    """Whether a statement holds on the predicted values; what published and measured ones say goes beside it.

    Where nothing at all is published or measured, nothing is said of it.
    LanewiseError with the location of the conclusion if its expressions are wrong in themselves.
    """
    predicted = Rows(rows, View.PREDICTED)
    others = [view for view in (View.PUBLISHED, View.MEASURED) if any(view.of(row) is not None for row in rows)]
    with at(entry.location):
        holds = _test(entry.test, predicted)
        shown = [f"predicted {_value(entry.shows, predicted)}"] if entry.shows else []
        for view in others:
            told = Rows(rows, view)
            if entry.shows:
                shown[0] += f", {view.value} {_value(entry.shows, told)}"
            shown.append(f"{view.value} values: {_word(_test(entry.test, told))}")
    return Conclusion(entry.says, holds, "; ".join(shown))


def _told(text: str, rows: Rows) -> Any:
    """The value of an expression, NotStated if there is none.

    On predicted values what is wrong in the expression itself is an error; on others it was seen before.
    """
    try:
        return rows.evaluate(text)
    except NotStated:
        raise
    except LanewiseError as error:
        if rows.view is not View.PREDICTED:
            raise NotStated(error.cause) from None
        raise


def _test(text: str, rows: Rows) -> bool | None:
    try:
        holds = _told(text, rows)
    except NotStated:
        return None
    if not isinstance(holds, bool):
        raise FormatError(f"a test must come out true or false, not as {kind(holds)}", hint="compare it with a number")
    return holds


def _value(text: str, rows: Rows) -> str:
    try:
        found = _told(text, rows)
    except NotStated:
        return "not stated"
    return ", ".join(_shown(value) for value in (found if isinstance(found, list) else [found]))


def _shown(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if not is_number(value):
        raise FormatError(f"'shows' must come out as numbers or texts, not as {kind(value)}", hint="such as r.value")
    return units.number(value, 3)


def _word(holds: bool | None) -> str:
    return "not stated" if holds is None else ("true" if holds else "false")
