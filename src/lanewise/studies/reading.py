"""Reads a study file: expands tables and sweeps into one row a number, and says where something is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import units
from lanewise.errors import Contradiction, FormatError, error_location, unknown_name
from lanewise.expressions import STATEMENTS, check_expression
from lanewise.results.plan import Copies
from lanewise.studies import sections
from lanewise.studies.form import FORMAT, RowForm, StudyForm, SystemRef
from lanewise.studies.machine_tables import machine_refs, machine_rows
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

_TOP = (
    "lanewise", "study", "title", "source", "finding", "method", "systems", "tables", "fit", "fit_tables", "leave_out",
    "hypotheses", "conclusions", "charts", "drawings", "services", "assumptions",
)  # fmt: skip
_INHERITED = ("system", "scenario", "metric", "unit", "derive", "note", "role")
# A prediction; a row whose published value itself goes in; a row that says again what other rows say.
ROLES = ("prediction", "input", "repeat")
_TABLE = ("name", "title", "set", "sweep", "rows", "extrapolated", *_INHERITED)
_ROW = ("label", "set", "published", "extrapolated", "group", *_INHERITED)
_SWEEP = "sweep: {gpus: [1, 2]}"
# The SI unit of each metric, which the units of a study are checked against.
METRIC_UNITS = {
    "goodput": "B/s", "flow_goodput": "B/s", "slowest": "B/s", "raw": "B/s", "root_ports": "B/s",
    "latency": "s", "wire_latency": "s", "qps": "1/s",
    "share": "1", "link_share": "1", "raw_ratio": "1", "ratio": "1",
}  # fmt: skip
_EXAMPLES = {"B/s": "GB/s", "s": "us", "1/s": "QPS", "1": "'%' or '1'"}


def read_study(text: str, file: str) -> StudyForm:
    """The study in `text`; FormatError, UnknownName or InputError with file, line, cause and hint."""
    top = load(text, file, "docs/reference/study-format.md").root
    if not top.value:
        raise top.error("empty study", "start one with: lanewise study new NAME")
    top.check_fields(_TOP)
    if top["lanewise"].value != FORMAT or isinstance(top["lanewise"].value, bool):
        raise top["lanewise"].error("this is not a study of format 1", "begin the file with 'lanewise: 1'")
    name = top["study"].needed()
    machines = machine_refs(top["tables"].items())
    systems = _systems(top["systems"], machines)
    tables = _tables(top["tables"], systems)
    rows = tuple(row for table in tables.values() for row in table)
    if not rows:
        raise top["tables"].error("the study has no rows", "add a table with at least one row")
    study = StudyForm(
        name=name, title=top["title"].line() or name, source=top["source"].line(), finding=top["finding"].line(),
        method=top["method"].line(), systems=systems, rows=rows,
        fit=sections.fits(top["fit"]),
        fit_tables=tuple(e.choice(tables, "", "table") for e in top["fit_tables"].items()),
        leave_out=tuple(entry.choice(("group",), "") for entry in top["leave_out"].items("leave_out: [group]")),
        hypotheses=tuple(sections.hypothesis(entry) for entry in top["hypotheses"].items()),
        conclusions=tuple(sections.conclusion(entry) for entry in top["conclusions"].items()),
        charts=tuple(sections.chart(entry, rows) for entry in top["charts"].items()),
        drawings=tuple(sections.drawing(entry, systems) for entry in top["drawings"].items()),
        services=tuple(sections.service(entry, systems) for entry in top["services"].items()),
        assumptions=tuple(entry.line() for entry in top["assumptions"].items()),
    )  # fmt: skip
    sections.check_fit(study, top["fit"])
    return study


def _systems(node: YamlNode, machines: dict[str, SystemRef]) -> dict[str, SystemRef]:
    hint = "systems: {mine: my-system.yaml}"
    systems = dict(machines)
    for name, entry in node.members(hint).items():
        system = entry if isinstance(entry.value, str) else entry.check_fields(("system", "set"))["system"]
        systems[name] = SystemRef(name, system.needed(), sections.settings(entry["set"]), entry.location)
    if not systems:
        raise node.error("the study names no systems", hint)
    return systems


def _tables(node: YamlNode, systems: dict[str, SystemRef]) -> dict[str, list[RowForm]]:
    """The rows of each table, by its name."""
    tables: dict[str, list[RowForm]] = {}
    for i, table in enumerate(node.items()):
        of_machines = table["machines"].given
        if not of_machines:
            table.check_fields(_TABLE)
        name = table["name"].text(f"table {i + 1}").strip()
        if name in tables:
            raise Contradiction(f"two tables are called '{name}'", location=table["name"].location, hint="rename one")
        table["title"].line()  # for who reads the file; only checked
        if of_machines:
            tables[name] = machine_rows(table, name, systems)
            continue
        rows = enumerate(table["rows"].items())
        tables[name] = [form for r, row in rows for form in _rows(table, row, name, r, systems)]
    return tables


def _rows(table: YamlNode, row: YamlNode, name: str, index: int, systems: dict[str, SystemRef]) -> list[RowForm]:
    """One row for each value of the swept parameter, or a single one; the row's own entries win over the table's."""
    row.check_fields(_ROW)
    nodes = {key: row[key] if row[key].present else table[key] for key in _INHERITED}
    system = nodes["system"].text()
    if system not in systems:
        raise unknown_name("system of this study", system, systems, nodes["system"].location)
    metric, unit, derive = nodes["metric"].text("goodput"), nodes["unit"].text(), nodes["derive"].text()
    with error_location((nodes["unit"] if nodes["unit"].given else row).location):
        _check_metric(metric, unit, bool(derive))
    if derive:
        with error_location(nodes["derive"].location):
            check_expression(derive, STATEMENTS)
    label = row["label"].text(f"row {index + 1}")
    scenario = Copies(()) if derive else sections.scenario(nodes["scenario"], label)
    common = sections.settings(table["set"]) | sections.settings(row["set"])
    return [
        RowForm(
            table=name, label=label, system=system, settings=common | point.setting,
            scenario=scenario, metric=metric, unit=unit, extrapolated=point.extrapolated,
            published=None if point.published is None else units.to_si(point.published, unit),
            role=nodes["role"].choice(ROLES, "prediction"),
            note=nodes["note"].text(), derive=derive, group=row["group"].text(),
            location=row["published"][i].location,
        )
        for i, point in enumerate(_points(table, row))
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _SweepPoint:
    """A value of the swept parameter, if there is one, and what was published there."""

    setting: dict[str, int]
    published: float | None
    extrapolated: bool


def _points(table: YamlNode, row: YamlNode) -> list[_SweepPoint]:
    published, marked = row["published"], row["extrapolated"] if row["extrapolated"].given else table["extrapolated"]
    if not table["sweep"].given:
        return [_SweepPoint({}, published.number(), marked.flag(False))]
    name, values = _sweep(table["sweep"])
    numbers = [entry.number() for entry in published.items("a sweep has one published value for each of its values")]
    if numbers and len(numbers) != len(values):
        raise published.error(f"{len(numbers)} published values for {len(values)} of {name}", "use null for a gap")
    if isinstance(marked.value, list):
        extrapolated = [entry.integer() for entry in marked.items()]
    else:
        extrapolated = values if marked.flag(False) else []
    for value in extrapolated:
        if value not in values:
            raise marked.error(f"{value} is not among the values of {name}", f"they are {', '.join(map(str, values))}")
    pairs = zip(values, numbers or [None] * len(values), strict=True)
    return [_SweepPoint({name: value}, number, value in extrapolated) for value, number in pairs]


def _sweep(node: YamlNode) -> tuple[str, list[int]]:
    members = node.members(_SWEEP)
    if len(members) != 1:
        raise node.error("a sweep names one parameter and its values", _SWEEP)
    name, listed = next(iter(members.items()))
    values = [value.integer() for value in listed.items(_SWEEP)]
    if not values or len(set(values)) != len(values):
        raise listed.error("a sweep needs values, each of them once", _SWEEP)
    return name, values


def _check_metric(metric: str, unit: str, computed: bool) -> None:
    """UnknownName or FormatError unless `metric` can be given in `unit`; a `computed` row may call its metric anything.

    The unit must exist either way.
    """
    dimension = units.dimension(unit)
    if computed:
        return
    if metric not in METRIC_UNITS:
        raise unknown_name("metric", metric, METRIC_UNITS)
    expected = METRIC_UNITS[metric]
    if dimension != expected:
        raise FormatError(f"'{metric}' cannot be in '{unit}'", hint=f"for example unit: {_EXAMPLES[expected]}")
