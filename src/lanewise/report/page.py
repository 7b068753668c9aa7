"""What the HTML page shows, prepared as plain text and numbers; the template only places it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lanewise import units
from lanewise.report import measured, methods, services
from lanewise.report.citations import shortened
from lanewise.results import statistics
from lanewise.results.match import identity
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run, StudyRun
from lanewise.results.statistics import Residuals

MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
_BASES = ("physics", "calibrated", "fitted")
_IGNORED = ("study", "path", "method")  # a publication does not state them


@dataclass(frozen=True, slots=True)
class RowTexts:
    """One row of a table: texts as they are printed; `grade` is '', 'off' (> 5 %) or 'far' (> 10 %).

    `beside` is value, residual and grade by each method of the table, empty texts where a method has no value;
    `measured` the same of what was measured, its residual the prediction's against it.
    """

    system: str
    scenario: str
    flow: str
    metric: str
    settings: str
    published: str
    value: str
    interval: str
    source: str
    residual: str
    grade: str
    limit: str
    basis: str
    rests: tuple[int, ...]
    extrapolated: bool
    note: str
    beside: tuple[tuple[str, str, str], ...] = ()
    measured: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True)
class StudyTable:
    """Rows of one table of the source in one unit; `columns` are the optional ones that carry something.

    `methods` are the other methods that stand beside the rows.
    """

    anchor: str
    title: str
    unit: str
    value_head: str
    cells: tuple[RowTexts, ...]
    columns: frozenset[str]
    summary: str
    common: str = ""
    methods: tuple[str, ...] = ()


@dataclass
class StudyPage:
    """One study as the template needs it; a chart is title, SVG, note, and whether it takes the whole width."""

    study: StudyRun
    anchor: str
    total: Residuals
    bases: dict[str, Residuals]
    limits: dict[str, Residuals]
    verdict: str
    methods: list[str] = field(default_factory=list)
    tables: list[StudyTable] = field(default_factory=list)
    rests: list[str] = field(default_factory=list)
    charts: list[tuple[str, str, str, bool]] = field(default_factory=list)
    drawings: list[tuple[str, str, str]] = field(default_factory=list)


def study_pages(run: Run) -> list[StudyPage]:
    """Every study prepared, without charts and drawings."""
    return [study_page(study) for study in run.studies]


def study_page(study: StudyRun) -> StudyPage:
    """One study prepared, without charts and drawings."""
    rests = list(dict.fromkeys(text for row in study.rows for text in row.rests_on))
    return StudyPage(
        study=study,
        anchor=anchor(study.name),
        total=statistics.residuals(study.rows),
        bases=statistics.by_basis(study.rows),
        limits=statistics.by_limit(study.rows),
        verdict=verdict_text([study]),
        methods=[*against_measured(study.rows), *method_lines(study.rows)],
        tables=_tables(study, rests),
        rests=[shortened(text) for text in rests],
    )


def anchor(*names: str) -> str:
    """Names joined as an HTML id."""
    text = "-".join(names).lower()
    return "".join(letter if letter.isalnum() else "-" for letter in text).strip("-") or "part"


def verdict_text(studies: Iterable[StudyRun]) -> str:
    """'5 of 6 hold, 1 not evaluated', empty where there are no conclusions."""
    yes, no, open_ = statistics.verdicts(studies)
    if not yes + no + open_:
        return ""
    text = f"{yes} of {yes + no + open_} hold"
    return f"{text}, {open_} not evaluated" if open_ else text


def method_lines(rows: Sequence[Observation]) -> list[str]:
    """'20 rows: predicted rms 3.1 %, worst −7.4 %; steady state rms 8.8 %, worst +21.5 %', one line a method."""
    found = methods.methods(rows)
    return [
        f"{one.other.compared} row{'s' * (one.other.compared != 1)}: {one.own_name} {_spread(one.own)}; "
        f"{one.name} {_spread(one.other)}"
        for one in found
    ]


def against_measured(rows: Sequence[Observation]) -> list[str]:
    """'20 rows beside a measured value: predicted rms 3.1 %, worst −7.4 %', nothing where none is."""
    found = statistics.against_measured(rows)
    lies = "" if found.rms_pct is None else f": predicted {_spread(found)}"
    return [f"{found.rows} row{'s' * (found.rows != 1)} beside a measured value{lies}"] if found.rows else []


def _spread(found: Residuals) -> str:
    return f"rms {percent(found.rms_pct)}, worst {signed(found.worst_pct)} %"


def headline(run: Run) -> str:
    """The finding over all studies and services in a few sentences."""
    loaded = [*run.services, *(one for study in run.studies for one in study.services)]
    under_load = f"{services.overview(loaded)}." if loaded else ""
    studies = _studies_headline(run) if run.studies or not (loaded or run.rows) else ""
    return " ".join(filter(None, [studies, measured.overview(run.rows), under_load]))


def _studies_headline(run: Run) -> str:
    total = statistics.overall(run)
    yes, no, open_ = statistics.verdicts(run.studies)
    count = len(run.studies)
    text = f"{total.rows} rows in {count} {'study' if count == 1 else 'studies'}"
    measured_too = [f"{text}." for text in against_measured([row for study in run.studies for row in study.rows])]
    if total.rms_pct is None:
        return " ".join([f"{text}; none stands beside a published value.", *measured_too])
    within = percent(total.rms_pct)
    text += f"; {total.compared} are predictions beside a published value and lie within {within} of it (rms)"
    text += f", {total.close} of them within 5 %"
    if total.far:
        text += f", {total.far} further off than 10 %"
    text += f"; the worst is off by {signed(total.worst_pct)} %."
    if yes + no + open_:
        text += f" Of {yes + no + open_} published conclusions, {yes} hold in these rows"
        text += f", {no} {'does' if no == 1 else 'do'} not" if no else ""
        text += f", {open_} could not be evaluated" if open_ else ""
        text += "."
    return " ".join([text, *measured_too])


def percent(value: float | None) -> str:
    """'3.2 %', or a dash for None."""
    return NONE if value is None else f"{value:.1f} %"


def signed(value: float | None) -> str:
    """'+3.2' with a true minus sign, or a dash for None."""
    if value is None:
        return NONE
    text = f"{abs(value):.1f}"
    if text == "0.0":
        return "0.0"
    return ("+" if value > 0 else MINUS) + text


def grade(residual: float | None) -> str:
    """'' up to 5 %, 'off' up to 10 %, 'far' beyond."""
    if residual is None or abs(residual) <= statistics.CLOSE_PCT:
        return ""
    return "far" if abs(residual) > statistics.FAR_PCT else "off"


def settings_text(row: Observation) -> str:
    """'gpus 4, path 3'."""
    return ", ".join(f"{key} {value}" for key, value in row.settings.items())


def places(values: Iterable[float]) -> int:
    """How many decimals a column needs so that its published figures keep theirs, at most 3."""
    most = 0
    for value in values:
        text = repr(float(value))
        if "e" not in text and not text.endswith(".0"):
            most = max(most, len(text.split(".")[1]))
    return min(most, 3)


def plain(value: float | None, decimals: int) -> str:
    """A number with thousands separated and a fixed count of decimals; 'unknown' for None."""
    if value is None:
        return "unknown"
    if value and (abs(value) >= 1e12 or abs(value) < 0.5 * 10.0**-decimals):
        return units.number(value, 3)
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def _tables(study: StudyRun, rests: Sequence[str]) -> list[StudyTable]:
    groups: dict[tuple[str, str], list[Observation]] = {}
    for row in _without_repeats(study.rows):
        groups.setdefault((row.table, row.display_unit), []).append(row)
    seen: dict[str, int] = {}
    tables = []
    for (name, unit), rows in groups.items():
        title = name or "Rows"
        if sum(other == name for other, _ in groups) > 1:
            title += f", {unit}"
        base = anchor(study.name, "table", title)
        seen[base] = seen.get(base, 0) + 1
        unique = base if seen[base] == 1 else f"{base}-{seen[base]}"
        tables.append(_table(unique, title, unit, rows, rests))
    return tables


def _without_repeats(rows: Sequence[Observation]) -> list[Observation]:
    # A published row says nothing new where a prediction already stands beside the same figure.
    beside = {
        identity(row, _IGNORED) for row in rows if row.source is not Source.PUBLISHED and row.published is not None
    }
    return [row for row in rows if row.source is not Source.PUBLISHED or identity(row, _IGNORED) not in beside]


def _table(name: str, title: str, unit: str, rows: Sequence[Observation], rests: Sequence[str]) -> StudyTable:
    figures = [v for row in rows if (v := row.display(row.published)) is not None]
    sample = figures or [v for row in rows if (v := row.display(row.value)) is not None]
    decimals = places(figures) if figures else _by_size(sample)
    if not figures and all(float(value).is_integer() for value in sample):
        decimals = 0  # counts, such as hops
    many = len({row.metric for row in rows}) > 1
    # A prediction keeps one more digit than whole published figures below 1,000, so that 94.7 is not shown as 95.
    finer = 1 if decimals == 0 and figures and max(map(abs, figures)) < 1000 else decimals
    others = tuple(methods.names(rows))
    cells = tuple(_cell(row, decimals, finer, rests, others) for row in rows)
    sources = {row.source for row in rows if row.source is not Source.PUBLISHED}
    optional = (
        "scenario",
        "flow",
        "settings",
        "interval",
        "limit",
        "basis",
        "rests",
        "note",
        "published",
        "residual",
    )
    columns = {key for key in optional if any(getattr(cell, key) not in ("", ()) for cell in cells)}
    columns |= {"metric"} if many else set()
    columns |= {"system"} if len({row.system for row in rows}) > 1 else set()
    columns |= {"source"} if len(sources) > 1 else set()
    columns |= {"measured"} if any(row.measured for row in rows) else set()
    common = _common(cells, columns, many)
    columns -= set(common)
    only = next(iter(sources)).value if len(sources) == 1 else "value"
    metric = "" if many or not rows[0].metric else f": {rows[0].metric}"
    return StudyTable(
        name,
        title + metric,
        unit,
        only,
        cells,
        frozenset(columns),
        _summary(rows),
        ", ".join(common.values()),
        others,
    )


def _common(cells: Sequence[RowTexts], columns: set[str], many: bool) -> dict[str, str]:
    """What is the same in every row, said once above the table if something else tells rows apart."""
    keys: list[str] = [key for key in ("flow", "scenario", "system", "settings") if key in columns]
    same = {key: getattr(cells[0], key) for key in keys if len({getattr(cell, key) for cell in cells}) == 1}
    told = many or len(same) < len(keys)
    return same if len(cells) > 1 and told else {}


def _by_size(values: Sequence[float]) -> int:
    largest = max((abs(value) for value in values), default=0.0)
    return 0 if largest >= 1000 else 1 if largest >= 100 else 2 if largest >= 1 else 3


def _summary(rows: Sequence[Observation]) -> str:
    found = statistics.residuals(rows)
    if found.rms_pct is None:
        return ""
    return f"{_spread(found)}, {found.compared} of {found.rows} compared"


def _cell(row: Observation, decimals: int, finer: int, rests: Sequence[str], others: Sequence[str]) -> RowTexts:
    published_row = row.source is Source.PUBLISHED
    published = row.display(row.value if published_row else row.published)
    low, high = row.display(row.low), row.display(row.high)
    interval = f"{plain(low, decimals)} to {plain(high, decimals)}" if low is not None and high is not None else ""
    note = row.note or ("no reason given" if row.value is None else "")
    if row.measured is not None:
        note = "; ".join(filter(None, [note, f"measured: {row.measured.note}"]))
    if row.role != "prediction":
        note = f"{row.role}; {note}" if note else row.role
    return RowTexts(
        system=row.system,
        scenario=row.scenario,
        flow=row.flow,
        metric=row.metric,
        settings=settings_text(row),
        published="" if published is None else plain(published, decimals),
        value="" if published_row else plain(row.display(row.value), finer),
        interval=interval,
        source=row.source.value,
        residual="" if row.residual_pct is None else signed(row.residual_pct),
        grade=grade(row.residual_pct),
        limit=row.limit,
        basis=row.basis.value if row.basis else "",
        rests=tuple(rests.index(text) + 1 for text in row.rests_on),
        extrapolated=row.extrapolated or row.source is Source.EXTRAPOLATED,
        note=note,
        beside=tuple(_beside(row, name, finer) for name in others),
        measured=_measured(row, finer),
    )


def _beside(row: Observation, method: str, decimals: int) -> tuple[str, str, str]:
    if method not in row.comparisons:
        return ("", "", "")
    residual = row.comparison_residuals_pct[method]
    return (
        plain(row.display(row.comparisons[method]), decimals),
        "" if residual is None else signed(residual),
        grade(residual),
    )


def _measured(row: Observation, decimals: int) -> tuple[str, str, str]:
    if row.measured is None:
        return ("", "", "")
    residual = row.measured_residual_pct
    return (
        plain(row.display(row.measured.value), decimals),
        "" if residual is None else signed(residual),
        grade(residual),
    )


def basis_names(pages: Iterable[StudyPage]) -> list[str]:
    """The bases that occur, weakest claim last, then other sources such as measured."""
    found = {name for page in pages for name, group in page.bases.items() if group.compared}
    return [*(name for name in _BASES if name in found), *sorted(found - set(_BASES))]
