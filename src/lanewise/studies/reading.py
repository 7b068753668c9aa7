"""Reads a study file: expands tables and sweeps into one row a number, and says where something is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import Contradiction, FormatError, unknown_name
from lanewise.expressions import STATEMENTS, check_expression
from lanewise.marks import load
from lanewise.studies import claims
from lanewise.studies.form import FORMAT, RowForm, ScenarioForm, StudyForm, SystemRef
from lanewise.studies.metrics import check_metric
from lanewise.studies.node import Node, at
from lanewise.studies.scenarios import scenario, settings

if TYPE_CHECKING:
    from lanewise.marks import Document

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


def read_study(text: str, file: str) -> StudyForm:
    """The study in `text`; FormatError, UnknownName or InputError with file, line, cause and hint."""
    document = load(text, file)
    if not isinstance(document.data, dict) or not document.data:
        raise FormatError("empty study", location=document.location(), hint="start one with: lanewise study new NAME")
    return _study(document)


def _study(document: Document) -> StudyForm:
    top = Node(document, (), document.data).fields(_TOP)
    if top["lanewise"].value != FORMAT or isinstance(top["lanewise"].value, bool):
        raise top["lanewise"].error("this is not a study of format 1", "begin the file with 'lanewise: 1'")
    name = top["study"].needed()
    systems = _systems(top["systems"])
    tables = _tables(top["tables"], systems)
    rows = tuple(row for table in tables for row in table.rows)
    if not rows:
        raise top["tables"].error("the study has no rows", "add a table with at least one row")
    made = StudyForm(
        name=name, title=top["title"].line() or name, source=top["source"].line(), finding=top["finding"].line(),
        method=top["method"].line(), systems=systems, rows=rows,
        fit=claims.fits(top["fit"]),
        fit_tables=tuple(e.choice([t.name for t in tables], "", "table") for e in top["fit_tables"].items()),
        leave_out=tuple(entry.choice(("group",), "") for entry in top["leave_out"].items("leave_out: [group]")),
        hypotheses=tuple(claims.hypothesis(entry) for entry in top["hypotheses"].items()),
        conclusions=tuple(claims.conclusion(entry) for entry in top["conclusions"].items()),
        charts=tuple(claims.chart(entry, rows) for entry in top["charts"].items()),
        drawings=tuple(claims.drawing(entry, systems) for entry in top["drawings"].items()),
        services=tuple(claims.service(entry, systems) for entry in top["services"].items()),
        assumptions=tuple(entry.line() for entry in top["assumptions"].items()),
        titles={table.name: table.title for table in tables},
    )  # fmt: skip
    claims.check_fit(made, top["fit"])
    return made


def _systems(node: Node) -> dict[str, SystemRef]:
    hint = "systems: {mine: my-system.yaml}"
    found: dict[str, SystemRef] = {}
    for name, entry in node.members(hint).items():
        if isinstance(entry.value, str):
            found[name] = SystemRef(name, entry.needed(), {}, entry.location)
        else:
            entry.fields(("system", "set"))
            found[name] = SystemRef(name, entry["system"].needed(), settings(entry["set"]), entry.location)
    if not found:
        raise node.error("the study names no systems", hint)
    return found


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    title: str
    rows: tuple[RowForm, ...]


def _tables(node: Node, systems: dict[str, SystemRef]) -> list[_Table]:
    made: list[_Table] = []
    for i, table in enumerate(node.items()):
        table.fields(_TABLE)
        name = table["name"].text(f"table {i + 1}").strip()
        if name in [other.name for other in made]:
            raise Contradiction(f"two tables are called '{name}'", location=table["name"].location, hint="rename one")
        rows = [made for r, row in enumerate(table["rows"].items()) for made in _rows(table, row, name, r, systems)]
        made.append(_Table(name, table["title"].line(), tuple(rows)))
    return made


def _rows(table: Node, row: Node, name: str, index: int, systems: dict[str, SystemRef]) -> list[RowForm]:
    """One row for each value of the swept parameter, or a single one; the row's own entries win over the table's."""
    row.fields(_ROW)
    said = {key: row[key] if key in row.value else table[key] for key in _INHERITED}
    system = said["system"].text()
    if system not in systems:
        raise unknown_name("system of this study", system, systems, said["system"].location)
    metric, unit, derive = said["metric"].text("goodput"), said["unit"].text(), said["derive"].text()
    with at((said["unit"] if said["unit"].given else row).location):
        check_metric(metric, unit, bool(derive))
    if derive:
        with at(said["derive"].location):
            check_expression(derive, STATEMENTS)
    asked = ScenarioForm() if derive else scenario(said["scenario"])
    common = settings(table["set"]) | settings(row["set"])
    return [
        RowForm(
            table=name, label=row["label"].text(f"row {index + 1}"), system=system, settings=common | cell.extra,
            scenario=asked, metric=metric, unit=unit, published=cell.published, extrapolated=cell.extrapolated,
            role=said["role"].choice(ROLES, "prediction"),
            note=said["note"].text(), derive=derive, group=row["group"].text(),
            location=row.document.location(*row.path, "published", i),
        )
        for i, cell in enumerate(_cells(table, row))
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Cell:
    extra: dict[str, int]
    published: float | None
    extrapolated: bool


def _cells(table: Node, row: Node) -> list[_Cell]:
    published, marked = row["published"], row["extrapolated"] if row.has("extrapolated") else table["extrapolated"]
    if not table.has("sweep"):
        return [_Cell({}, published.number(), marked.flag(False))]
    name, values = _sweep(table["sweep"])
    cells = [cell.number() for cell in published.items("a sweep has one published value for each value of it")]
    if cells and len(cells) != len(values):
        raise published.error(f"{len(cells)} published values for {len(values)} of {name}", "use null for a gap")
    if isinstance(marked.value, list):
        marks = [mark.integer() for mark in marked.items()]
    else:
        marks = values if marked.flag(False) else []
    for mark in marks:
        if mark not in values:
            raise marked.error(f"{mark} is not among the values of {name}", f"they are {', '.join(map(str, values))}")
    return [_Cell({name: v}, c, v in marks) for v, c in zip(values, cells or [None] * len(values), strict=True)]


def _sweep(node: Node) -> tuple[str, list[int]]:
    members = node.members(_SWEEP)
    if len(members) != 1:
        raise node.error("a sweep names one parameter and its values", _SWEEP)
    name, listed = next(iter(members.items()))
    values = [value.integer() for value in listed.items(_SWEEP)]
    if not values or len(set(values)) != len(values):
        raise listed.error("a sweep needs values, each of them once", _SWEEP)
    return name, values
