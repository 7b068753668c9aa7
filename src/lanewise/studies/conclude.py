"""Conclusions and derived rows: computed from the rows, on predicted and on published values alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import LanewiseError
from lanewise.perf.resources import weakest
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.run import Conclusion
from lanewise.studies.expression import Rows
from lanewise.studies.form import placed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanewise.studies.form import RowForm


def derive(row: RowForm, before: Sequence[Observation]) -> Observation:
    """A row computed from rows above it, with the weakest basis of those; its names are `label` and the settings."""
    unknown = _unknown(row, before)
    if unknown is not None:
        return unknown
    rows = Rows(before, lambda seen: seen.value)
    published = Rows(before, lambda seen: seen.published)
    names: dict[str, Any] = {"label": row.label, "pub": published.value, **row.settings}
    try:
        result = rows.evaluate(row.derive, names)
    except LanewiseError as error:
        raise placed(error, row.place) from None
    touched = rows.touched or published.touched
    only_published = not rows.touched
    return Observation(
        scenario=row.label, flow="", metric=row.metric, unit=row.unit, table=row.table, settings=dict(row.settings),
        value=units.from_si(result, row.unit) if row.unit == "%" else float(result),
        source=Source.EXTRAPOLATED if only_published else Source.PREDICTED,
        basis=None if only_published else Basis(weakest([str(seen.basis) for seen in touched if seen.basis])),
        limit=" / ".join(dict.fromkeys(seen.limit for seen in touched if seen.limit)) if len(touched) < 3 else "",
        study=touched[0].study if touched else "", system=touched[0].system if touched else "",
        published=row.published, extrapolated=row.extrapolated or only_published,
        note="; ".join(text for text in (row.note, f"computed: {row.derive}") if text),
    )  # fmt: skip


def _unknown(row: RowForm, before: Sequence[Observation]) -> Observation | None:
    """The row without a value, where a row that it is computed from has none."""
    probe = Rows(before, lambda seen: 1.0)
    try:
        probe.evaluate(row.derive, {"label": row.label, "pub": probe.value, **row.settings})
    except LanewiseError:
        return None
    missing = [seen for seen in probe.touched if seen.value is None]
    if not missing:
        return None
    return Observation(
        scenario=row.label, flow="", metric=row.metric, value=None, unit=row.unit, source=Source.PREDICTED,
        table=row.table, settings=dict(row.settings), published=row.published, extrapolated=row.extrapolated,
        study=missing[0].study, system=missing[0].system, note=f"unknown, as {missing[0].table} is: {missing[0].note}",
    )  # fmt: skip


def conclude(entry: Mapping[str, Any], rows: Sequence[Observation]) -> Conclusion:
    """Whether a statement holds on the predicted values; what the published ones say and the figures go beside it."""
    predicted = _test(entry, Rows(rows, lambda seen: seen.value), strict=True)
    published = _test(entry, Rows(rows, lambda seen: seen.published), strict=False)
    shown = [f"published values: {_word(published)}"]
    if entry.get("shows"):
        figure = _value(str(entry["shows"]), Rows(rows, lambda seen: seen.value))
        stated = _value(str(entry["shows"]), Rows(rows, lambda seen: seen.published))
        shown.insert(0, f"predicted {figure}, published {stated}")
    return Conclusion(" ".join(str(entry["says"]).split()), predicted, "; ".join(shown))


def _test(entry: Mapping[str, Any], rows: Rows, strict: bool) -> bool | None:
    """None where a row that the test needs has no value; a test that is wrong in itself is an error if `strict`."""
    try:
        return bool(rows.evaluate(str(entry["test"])))
    except LanewiseError as error:
        if strict and not error.cause.startswith("unknown row"):
            raise placed(error, entry["_place"]) from None
        return None


def _value(text: str, rows: Rows) -> str:
    try:
        found = rows.evaluate(text)
    except LanewiseError:
        return "not stated"
    values = found if isinstance(found, (list, tuple)) else [found]
    return ", ".join(units.number(v, 3) if isinstance(v, (int, float)) else str(v) for v in values)


def _word(holds: bool | None) -> str:
    return "not stated" if holds is None else ("true" if holds else "false")
