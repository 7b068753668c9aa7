"""Reads a study file: expands tables and sweeps into one row a number, and says where something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.catalog import KEYS, unit_of
from lanewise.errors import FormatError, InputError, LanewiseError, unknown_name
from lanewise.studies.form import FORMAT, FitForm, HypothesisForm, RowForm, ScenarioForm, StudyForm, SystemRef, placed

if TYPE_CHECKING:
    from lanewise.topology.marks import Document

_TOP = (
    "lanewise", "study", "title", "source", "finding", "method", "systems", "tables", "fit", "fit_tables", "leave_out",
    "hypotheses", "conclusions", "charts", "drawings", "assumptions",
)  # fmt: skip
_TABLE = (
    "name",
    "title",
    "system",
    "set",
    "scenario",
    "metric",
    "unit",
    "sweep",
    "rows",
    "derive",
    "note",
    "extrapolated",
)
_ROW = ("label", "system", "set", "scenario", "metric", "unit", "published", "extrapolated", "note", "derive", "group")
_SCENARIO = ("flows", "demand", "p2p", "service", "mode", "division", "host")
_FIT = ("part", "figure", "start", "low", "high", "note")
_HYPOTHESIS = ("name", "says", "figures", "fit", "note")
_CONCLUSION = ("says", "test", "shows")
_CHART = ("title", "kind", "x", "x_label", "y_label", "table", "tables", "by", "note", "predicted_only", "filter")
_DRAWING = ("title", "system", "set", "scenario", "caption")


class Reader:
    """Walks one study document; every value it refuses is named with its line."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data: dict[str, Any] = document.data if isinstance(document.data, dict) else {}

    def study(self) -> StudyForm:
        """The study form; InputError, FormatError or UnknownName with the place of what is wrong."""
        self._keys(self.data, _TOP)
        if self.data.get("lanewise") != FORMAT:
            raise self._error("this is not a study of format 1", "lanewise", hint="begin the file with 'lanewise: 1'")
        name = self._text(self.data, "study", required=True)
        systems = self._systems()
        rows = self._tables(systems)
        if not rows:
            raise self._error("the study has no rows", "tables", hint="add a table with at least one row")
        return StudyForm(
            name=name,
            title=self._text(self.data, "title") or name,
            source=self._text(self.data, "source"),
            finding=self._text(self.data, "finding"),
            method=self._text(self.data, "method"),
            systems=systems,
            rows=tuple(rows),
            fit=self._fits(("fit",), self._list("fit")),
            fit_tables=tuple(map(str, self._list("fit_tables"))),
            leave_out=tuple(map(str, self._list("leave_out"))),
            hypotheses=tuple(self._hypothesis(i, h) for i, h in enumerate(self._list("hypotheses"))),
            conclusions=self._checked("conclusions", _CONCLUSION, ("says", "test")),
            charts=self._checked("charts", _CHART, ("title",)),
            drawings=self._checked("drawings", _DRAWING, ("system",)),
            assumptions=tuple(map(str, self._list("assumptions"))),
            titles={str(t.get("name", "")): str(t.get("title", "")) for t in self._list("tables")},
        )

    def scenario(self, entry: dict[str, Any], *path: str | int) -> ScenarioForm:
        """A scenario entry; FormatError if it is neither flows nor a service."""
        self._keys(entry, _SCENARIO, *path)
        if bool(entry.get("flows")) == bool(entry.get("service")):
            raise self._error(
                "a scenario is either 'flows' or a 'service'", *path, hint="for example flows: gpu0->gpu1"
            )
        demand = entry.get("demand")
        return ScenarioForm(
            flows=str(entry.get("flows", "")),
            demand=None if demand is None else self._quantity(demand, "B/s", *path, "demand"),
            p2p=self._flag(entry, "p2p", True, *path),
            service=str(entry.get("service", "")),
            mode=self._choice(entry, "mode", ("server", "offline"), *path),
            division=self._choice(entry, "division", ("closed", "network"), *path),
            host=entry.get("host"),
        )

    def _systems(self) -> dict[str, SystemRef]:
        found: dict[str, SystemRef] = {}
        entries = self.data.get("systems")
        if not isinstance(entries, dict) or not entries:
            raise self._error("the study names no systems", "systems", hint="systems: {mine: my-system.yaml}")
        for name, entry in entries.items():
            if isinstance(entry, str):
                entry = {"system": entry}
            self._keys(entry, ("system", "set"), "systems", name)
            place = self.document.place("systems", name)
            found[name] = SystemRef(name, str(entry.get("system", "")), self._settings(entry, "systems", name), place)
        return found

    def _tables(self, systems: dict[str, SystemRef]) -> list[RowForm]:
        rows: list[RowForm] = []
        for t, table in enumerate(self._list("tables")):
            self._keys(table, _TABLE, "tables", t)
            for r, row in enumerate(table.get("rows") or ()):
                self._keys(row, _ROW, "tables", t, "rows", r)
                rows.extend(self._row(table, row, t, r, systems))
        return rows

    def _row(
        self, table: dict[str, Any], row: dict[str, Any], t: int, r: int, systems: dict[str, SystemRef]
    ) -> list[RowForm]:
        path = ("tables", t, "rows", r)
        inherited = ("system", "scenario", "metric", "unit", "derive", "note")
        merged: dict[str, Any] = {key: table[key] for key in inherited if key in table} | row
        system = str(merged.get("system", ""))
        if system not in systems:
            raise placed(unknown_name("system of this study", system, systems), self.document.place(*path))
        metric, unit = str(merged.get("metric", "goodput")), str(merged.get("unit", ""))
        try:
            units.dimension(unit)
        except LanewiseError as error:
            raise placed(error, self.document.place(*path)) from None
        derive = str(merged.get("derive", ""))
        scenario = self.scenario(merged.get("scenario") or {}, *path, "scenario") if not derive else ScenarioForm()
        common = self._settings(table, "tables", t) | self._settings(row, *path)
        made = []
        for i, (extra, value, extrapolated) in enumerate(self._sweep(table, row, t, r)):
            made.append(
                RowForm(
                    table=str(table.get("name", f"table {t + 1}")), label=str(row.get("label", f"row {r + 1}")),
                    system=system, settings=common | extra, scenario=scenario, metric=metric, unit=unit,
                    published=value, extrapolated=extrapolated, note=str(merged.get("note", "")), derive=derive,
                    group=str(row.get("group", "")), place=self.document.place(*path, "published", i),
                )
            )  # fmt: skip
        return made

    def _sweep(
        self, table: dict[str, Any], row: dict[str, Any], t: int, r: int
    ) -> list[tuple[dict[str, int], float | None, bool]]:
        """One entry for each value of the swept parameter, or a single one."""
        path, published, sweep = ("tables", t, "rows", r), row.get("published"), table.get("sweep")
        marked = row.get("extrapolated", table.get("extrapolated", False))
        if not sweep:
            return [({}, self._number(published, *path), bool(marked))]
        if not isinstance(sweep, dict) or len(sweep) != 1:
            raise self._error(
                "a sweep names one parameter and its values", "tables", t, "sweep", hint="sweep: {gpus: [1, 2]}"
            )
        name, values = next(iter(sweep.items()))
        cells = published if isinstance(published, list) else [published] * len(values)
        if len(cells) != len(values):
            raise self._error(
                f"{len(cells)} published values for {len(values)} of {name}", *path, hint="use null for a gap"
            )
        marks = marked if isinstance(marked, list) else [v for v in values if marked]
        return [({str(name): int(v)}, self._number(c, *path), v in marks) for v, c in zip(values, cells, strict=True)]

    def _fits(self, path: tuple[str | int, ...], entries: list[Any]) -> tuple[FitForm, ...]:
        return tuple(self._fit(entry, *path, i) for i, entry in enumerate(entries))

    def _fit(self, entry: dict[str, Any], *path: str | int) -> FitForm:
        self._keys(entry, _FIT, *path)
        figure = self._text(entry, "figure", True, *path)
        unit = unit_of(figure)
        if unit is None:
            raise placed(unknown_name("figure", figure, KEYS), self.document.place(*path))
        bounds = {k: self._quantity(entry.get(k), unit, *path, k) for k in ("start", "low", "high")}
        if not bounds["low"] <= bounds["start"] <= bounds["high"]:
            raise self._error("a fit needs low <= start <= high", *path)
        place = self.document.place(*path)
        part = self._text(entry, "part", True, *path)
        return FitForm(part, figure, unit=unit, note=self._text(entry, "note"), place=place, **bounds)

    def _hypothesis(self, i: int, entry: dict[str, Any]) -> HypothesisForm:
        self._keys(entry, _HYPOTHESIS, "hypotheses", i)
        return HypothesisForm(
            name=self._text(entry, "name", True, "hypotheses", i),
            says=self._text(entry, "says"),
            figures=entry.get("figures") or {},
            fit=self._fits(("hypotheses", i, "fit"), entry.get("fit") or []),
            note=self._text(entry, "note"),
            place=self.document.place("hypotheses", i),
        )

    def _checked(self, name: str, keys: tuple[str, ...], needed: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
        entries = self._list(name)
        for i, entry in enumerate(entries):
            self._keys(entry, keys, name, i)
            for key in needed:
                self._text(entry, key, True, name, i)
            if isinstance(entry.get("scenario"), dict):
                self.scenario(entry["scenario"], name, i, "scenario")
        return tuple({**entry, "_place": self.document.place(name, i)} for i, entry in enumerate(entries))

    def _settings(self, entry: dict[str, Any], *path: str | int) -> dict[str, int]:
        found = entry.get("set") or {}
        if not isinstance(found, dict) or not all(isinstance(v, int) for v in found.values()):
            raise self._error("'set' maps parameters to integers", *path, "set", hint="set: {path: 4}")
        return {str(k): int(v) for k, v in found.items()}

    def _keys(self, entry: Any, known: tuple[str, ...], *path: str | int) -> None:
        if not isinstance(entry, dict):
            raise self._error("expected names and values here", *path, hint=f"one of: {', '.join(known)}")
        for key in entry:
            if key not in known:
                raise placed(unknown_name("key", str(key), known), self.document.key_place(*path, key))

    def _list(self, name: str) -> list[Any]:
        found = self.data.get(name) or []
        if not isinstance(found, list):
            raise self._error(f"'{name}' must be a list", name, hint="begin each entry with '- '")
        return found

    def _text(self, entry: dict[str, Any], key: str, required: bool = False, *path: str | int) -> str:
        value = entry.get(key)
        if required and (value is None or not str(value).strip()):
            raise self._error(f"'{key}' is missing", *path, hint=f"add '{key}: ...'")
        return " ".join(str(value).split()) if value is not None else ""

    def _flag(self, entry: dict[str, Any], key: str, default: bool, *path: str | int) -> bool:
        value = entry.get(key, default)
        if not isinstance(value, bool):
            raise self._error(f"'{key}' is true or false, not '{value}'", *path, key)
        return value

    def _choice(self, entry: dict[str, Any], key: str, known: tuple[str, ...], *path: str | int) -> str:
        value = str(entry.get(key, known[0]))
        if value not in known:
            raise placed(unknown_name(key, value, known), self.document.place(*path, key))
        return value

    def _number(self, value: Any, *path: str | int) -> float | None:
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        raise self._error(
            f"'{value}' is not a number", *path, "published", hint="write plain numbers in the row's unit"
        )

    def _quantity(self, value: Any, unit: str, *path: str | int) -> float:
        try:
            return units.parse(value, unit)
        except LanewiseError as error:
            raise placed(error, self.document.place(*path)) from None

    def _error(self, cause: str, *path: str | int, hint: str = "") -> InputError:
        return FormatError(cause, place=self.document.place(*path), hint=hint)
