"""What is said of measured rows, prepared as plain text and numbers for the page and the terminal."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lanewise import units
from lanewise.report.table import Column, Table, TableCell, number_columns
from lanewise.report.words import NONE, anchor, grade, plural
from lanewise.results.match import CONTEXT, METHOD, identity
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Chart, Series
from lanewise.results.statistics import further_methods

MOST_ROWS = 3600  # of all tables together, so that a page stays under 1.5 MB
SHORT = 12  # rows shown together with a chart of them
BETWEEN = "; "  # notes of a row
_IGNORED = (*CONTEXT, "path", *(key for key in METHOD if key != "p2p"))  # a prediction does not state them
Cells = dict[tuple[str, str], "Observation"]


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """Measured rows of one scenario in one unit; `left_out` are how many more the run's file has.

    `plain`: the rows are compared with nothing, so that a chart can say what they say.
    """

    table: Table
    left_out: int
    plain: bool

    @property
    def folded(self) -> bool:
        """Whether the page shows one line in place of the rows, as a chart shows them."""
        return self.plain and len(self.table.rows) > SHORT


@dataclass
class MeasuredScenario:
    """One scenario: what holds for all of its rows, tables, matrices (source by destination), charts and its rows.

    A chart is title, SVG, note, and whether it takes the whole width of the page.
    """

    name: str
    anchor: str
    summary: str
    common: str
    rows: list[Observation]
    tables: list[MeasuredTable] = field(default_factory=list)
    matrices: list[Chart] = field(default_factory=list)
    charts: list[tuple[str, str, str, bool]] = field(default_factory=list)


def overview(rows: Sequence[Observation]) -> str:
    """'96 cells of 7 scenarios measured, 700 samples; ...', with how far samples scatter; '' without rows."""
    rows = _beside(rows)
    drawn = [row for row in rows if row.source is Source.EXTRAPOLATED]
    rows = [row for row in rows if row.source not in (Source.EXTRAPOLATED, Source.PREDICTED)]
    if not rows:
        return ""
    known = [row for row in rows if row.value is not None]
    scenarios = len({row.scenario for row in rows})
    text = f"{plural(len(known), 'cell')} of {plural(scenarios, 'scenario')} measured"
    text += f", {sum(len(row.samples) for row in known):,} samples"
    ranges = [(share, row) for row in known if (share := relative_range(row)) is not None]
    if ranges:
        middle = statistics.median(share for share, _ in ranges)
        widest, row = max(ranges, key=lambda pair: pair[0])
        text += f"; in the median cell samples spread over {_percent(middle)}, at most over {_percent(widest)} "
        text += f"({label(row)})"
    missing = len(rows) - len(known)
    if drawn:
        text += f"; plus {plural(len(drawn), 'cell')} extrapolated"
    return text + (f". {plural(missing, 'cell')} could not be measured." if missing else ".")


def parts(rows: Iterable[Observation]) -> list[MeasuredScenario]:
    """Every scenario in the order of the rows; where they are too many, the longest tables are cut to one length."""
    rows = _beside(rows)
    most = _longest(Counter((row.scenario, row.display_unit) for row in rows).values())
    groups: dict[str, list[Observation]] = {}
    for row in rows:
        groups.setdefault(row.scenario, []).append(row)
    scenarios: list[MeasuredScenario] = []
    for name, members in groups.items():
        one = anchor("measured", name)
        taken = sum(part.anchor == one or part.anchor.startswith(f"{one}--") for part in scenarios)
        scenarios.append(_part(name, f"{one}--{taken + 1}" if taken else one, members, most))
    return scenarios


def _beside(rows: Iterable[Observation]) -> tuple[Observation, ...]:
    """The rows, with the prediction in the row of the measured value rather than in a row of its own."""
    rows = tuple(rows)
    if all(row.source is not Source.PREDICTED for row in rows):
        return rows
    keyed = [(row, identity(row, _IGNORED)) for row in rows]
    expected = {key: row.value for row, key in keyed if row.source is Source.PREDICTED and row.value is not None}
    measured = {key for row, key in keyed if row.source is Source.MEASURED}
    return tuple(
        replace(row, comparisons={**row.comparisons, "predicted": expected[key]})
        if key in expected and row.source is Source.MEASURED
        else row
        for row, key in keyed
        if row.source is not Source.PREDICTED or key not in measured
    )


def _longest(lengths: Iterable[int]) -> int:
    """How long a table may be so that all of them have MOST_ROWS rows at most; the short ones leave theirs."""
    left, most = MOST_ROWS, MOST_ROWS
    ordered = sorted(lengths)
    for place, length in enumerate(ordered):
        most = left // (len(ordered) - place)
        if length > most:
            return max(1, most)
        left -= length
    return MOST_ROWS


def _part(name: str, ident: str, rows: list[Observation], most: int) -> MeasuredScenario:
    common, note = _common(rows), _common_note(rows)
    said = " · ".join(filter(None, (_common_text(rows, common), note)))
    rows = [row if row.value is None else _noted(row, _less(row.note, note)) for row in rows]
    scenario = MeasuredScenario(name, ident, _summary(rows), said, rows)
    for unit in dict.fromkeys(row.display_unit for row in rows):
        of_unit = [row for row in rows if row.display_unit == unit]
        scenario.tables.append(_table(of_unit, rows, common, most))
    scenario.matrices = matrices(rows)
    return scenario


def _noted(row: Observation, note: str) -> Observation:
    return row if row.note == note else replace(row, note=note)


def _summary(rows: Sequence[Observation]) -> str:
    """'12 cells, 55.1 to 55.6 GB/s', of the metric that comes first."""
    first = [row for row in rows if row.metric == rows[0].metric and row.display_unit == rows[0].display_unit]
    values = [value for row in first if (value := row.display(row.value)) is not None]
    if not values:
        return "not measured"
    low, high = (_number(end) for end in (min(values), max(values)))
    return f"{first[0].metric} {low if low == high else f'{low} to {high}'} {first[0].display_unit}"


def _common(rows: Sequence[Observation]) -> dict[str, str]:
    """What all measured rows say of how they were measured; what was fitted to them has no say."""
    methods = [row.how for row in rows if row.value is not None and not row.metric.startswith("fit_")]
    first = methods[0] if methods else {}
    return {key: text for key, text in first.items() if key != "flows" and all(how.get(key) == text for how in methods)}


def _common_note(rows: Sequence[Observation]) -> str:
    """The parts that the notes of all measured rows have in common."""
    notes = [row.note.split(BETWEEN) for row in rows if row.value is not None]
    return BETWEEN.join(part for part in notes[0] if all(part in note for note in notes)) if notes else ""


def _less(note: str, common: str) -> str:
    """A note without the parts that the text above its table already has."""
    said = common.split(BETWEEN)
    return BETWEEN.join(part for part in note.split(BETWEEN) if part not in said)


def _common_text(rows: Sequence[Observation], common: dict[str, str]) -> str:
    words = [f"{key}: {text}" for key, text in common.items()]
    paths = {row.path for row in rows if row.path}
    if len(paths) == 1:
        words.insert(0, next(iter(paths)))
    chosen = {settings(row) for row in rows}
    if len(chosen) == 1:
        words.insert(0, next(iter(chosen)))
    together = [row for row in rows if row.how.get("flows")]
    if len({row.flow for row in together}) > 1 and all(row.how["flows"] == row.flow for row in together):
        words.append("flows measured one after another")
    elif any("," in row.how["flows"] for row in together) and len({row.how["flows"] for row in together}) == 1:
        words.append("all flows at once")
    return " · ".join(filter(None, words))


def _table(
    rows: Sequence[Observation], scenario: Sequence[Observation], common: Collection[str], most: int
) -> MeasuredTable:
    left_out, rows = len(rows[most:]), rows[:most]
    unit = rows[0].display_unit
    heads = [*further_methods(rows), *(["published"] if any(row.published is not None for row in rows) else [])]
    together = len({row.how.get("flows", "") for row in rows}) > 1
    # What is the same in the whole scenario is said once above its tables.
    has_settings = len({settings(row) for row in scenario} - {""}) > 1
    has_path = len({row.path for row in scenario} - {""}) > 1
    table = Table([
        Column("flow", wrap=True), Column("settings", drop_order=2, wrap=True), Column("metric", drop_order=1),
        Column("median", unit, number=True), *number_columns("smallest", "largest", unit=unit, drop_order=3),
        Column("range", "%", number=True, drop_order=1), *number_columns("samples", drop_order=4),
        *(column for head in heads
          for column in (Column(head, unit, number=True), Column("measured", f"/ {head}", number=True))),
        Column("path", drop_order=5, wrap=True), Column("how", drop_order=6, wrap=True),
        Column("note", drop_order=7, wrap=True),
    ])  # fmt: skip
    for row in rows:
        share = relative_range(row)
        ends = ("", "", "") if share is None else (
            _number(row.display(row.low)), _number(row.display(row.high)), f"{share:.1f}"
        )  # fmt: skip
        table.add(
            row.flow, settings(row) * has_settings, row.metric, _number(row.display(row.value)) or NONE, *ends,
            str(len(row.samples) or ""), *(cell for head in heads for cell in _compared(row, head)),
            row.path * has_path, _how(row, common, together),
            row.note or ("not measured, no reason given" if row.value is None else ""),
        )  # fmt: skip
    return MeasuredTable(table, left_out, not heads)


def _how(row: Observation, common: Collection[str], together: bool) -> str:
    """How a row was measured, as far as not all rows of its scenario were, and which flows ran at once with it."""
    words = []
    if not row.metric.startswith("fit_"):
        words = [f"{key} {text}" for key, text in row.how.items() if key not in common and key != "flows"]
    flows = row.how.get("flows", "")
    if together and "," in flows and flows != row.flow:
        words.append(f"at once: {flows}")
    return ", ".join(words)


def _compared(row: Observation, head: str) -> tuple[str, TableCell]:
    """What a row is compared with under a head, and measured over it."""
    value = row.comparisons.get(head, row.published if head == "published" else None)
    if value is None or row.value is None or not value:
        return _number(row.display(value)), TableCell("")
    return _number(row.display(value)), TableCell(f"{row.value / value:.3f}", grade(100 * (row.value / value - 1)))


def settings(row: Observation) -> str:
    """'512 MiB, threads 4'."""
    return ", ".join(units.size(value) if key == "bytes" else f"{key} {value:,}" for key, value in row.settings.items())


def relative_range(row: Observation) -> float | None:
    """The range of a row's samples in % of their median; None with fewer than two."""
    if len(row.samples) < 2 or not row.value:
        return None
    return 100 * (max(row.samples) - min(row.samples)) / abs(row.value)


def label(row: Observation) -> str:
    """'gpu0->gpu1 goodput, 512 MiB, device_to_device_memcpy_write_ce': what tells most comes first, nothing twice."""
    scenario = row.scenario.removeprefix(row.flow).strip(", ")
    return ", ".join(word for word in (f"{row.flow} {row.metric}", settings(row), scenario) if word)


def matrices(rows: Sequence[Observation]) -> list[Chart]:
    """Source by destination for each metric that most pairs of several of both have; of a sweep the largest size."""
    groups: dict[tuple[str, str, int, str], Cells] = {}
    for row in rows:
        ends = row.flow.split("->")
        if len(ends) == 2 and "," not in row.how.get("flows", "") and "," not in row.flow:
            key = (row.metric, row.display_unit, row.settings.get("bytes", 0), settings(row))
            groups.setdefault(key, {})[(ends[0], ends[1])] = row
    largest: dict[tuple[str, str], int] = {}
    for metric, unit, count, _ in groups:
        largest[metric, unit] = max(count, largest.get((metric, unit), 0))
    return [
        _matrix((metric, unit, chosen), cells)
        for (metric, unit, count, chosen), cells in groups.items()
        if count == largest[metric, unit] and _is_matrix(cells)
    ]


def _is_matrix(cells: Cells) -> bool:
    """Whether there are several sources and destinations, most of them joined."""
    sources, targets = ({ends[i] for ends in cells} for i in (0, 1))
    pairs = sum(src != dst for src in sources for dst in targets)
    return len(sources) > 1 and len(targets) > 1 and len(cells) > max(3, 0.7 * pairs)


def _matrix(key: tuple[str, str, str], cells: Cells) -> Chart:
    metric, unit, chosen = key
    sources, targets = (sorted({ends[i] for ends in cells}, key=_natural) for i in (0, 1))
    values = {ends: row.display(row.value) for ends, row in cells.items()}
    series = tuple(Series(src, "measured", tuple((dst, values.get((src, dst))) for dst in targets)) for src in sources)
    title = ", ".join(word for word in (metric, chosen, unit) if word)
    return Chart(title, "surface", "destination", unit, series, by_label="source")


def _natural(name: str) -> list[int | str]:
    pieces = re.split(r"([0-9]{1,18})", name)
    return [int(piece) if odd % 2 else piece for odd, piece in enumerate(pieces)]


def _number(value: float | None) -> str:
    """Four digits that count, below one as well: 0.02131 s."""
    if value is None:
        return ""
    return units.number(value) if abs(value) >= 1 or value == 0 else f"{value:.4g}"


def _percent(share: float) -> str:
    return f"{share:.2g} %" if share < 10 else f"{share:.0f} %"
