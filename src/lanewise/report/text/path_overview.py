"""`lanewise predict SYSTEM` as text: what every kind of path delivers."""

from __future__ import annotations

from lanewise import units
from lanewise.perf.overview import MOST_PATHS, PathGroup, PathOverview
from lanewise.perf.predict import Prediction
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, render_table
from lanewise.report.words import NONE, basis_note, heading, range_text, rate_interval, rate_text, readings
from lanewise.topology.ranges import fold


def render_paths(overview: PathOverview, screen: Screen = PLAIN) -> str:
    """One line a kind of path, alone, and one for each set of flows that run together."""
    notes = Footnotes()
    columns = [
        Column("path", wrap=True), Column("class", drop_order=2), Column("such as", drop_order=3),
        Column("paths", number=True, drop_order=4), Column("GB/s", number=True), Column("interval"),
        Column("limit", wrap=True, drop_order=1), Column("basis", drop_order=5), Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_alone(group, notes) for group in overview.groups])
    for prediction in overview.together:
        table.rows.append(_together(prediction, notes))
    bases = [group.rate.basis for group in overview.groups if group.rate is not None]
    lines = [heading(overview.system), render_table(table, screen), ""]
    if not overview.complete:
        lines.append(screen.wrap(f"only the first {MOST_PATHS:,} paths were looked at; name others with --flows"))
    lines += [*(screen.wrap(text, indent=2) for text in overview.missing), *readings(overview.system, screen)]
    lines += [screen.wrap("each path alone; 'at once' is the sum of all", indent=2)]
    lines += [screen.wrap(text, indent=2) for text in [basis_note(bases)] if text]
    return "\n".join([*lines, notes.render(screen)])


def _alone(group: PathGroup, notes: Footnotes) -> tuple[str, ...]:
    route, rate = group.example, group.rate
    path = f"{group.source} to {group.target}"
    where = f"{route.cls} {route.via}", group.flow.name, str(group.count)
    if rate is None:
        return path, *where, NONE, "", "unknown", "", notes.mark([group.reason])
    sources = notes.mark([rate.why_unknown, *rate.rests_on, rate.doubt])
    return path, *where, rate_text(rate), rate_interval(rate), rate.limit, rate.basis, sources


def _together(prediction: Prediction, notes: Footnotes) -> tuple[str, ...]:
    """All flows of a prediction in one line: the sum, and what limits the slowest."""
    slowest = min(prediction.rates, key=lambda rate: rate.rate)
    from_memory = len({rate.flow.src for rate in prediction.rates}) == 1
    gpus = [rate.flow.dst if from_memory else rate.flow.src for rate in prediction.rates]
    path = "memory to all GPUs at once" if from_memory else "all GPUs to memory at once"
    memory, ends = (slowest.flow.src if from_memory else slowest.flow.dst), ",".join(fold(gpus))
    return (
        path, "", f"{memory}->{ends}" if from_memory else f"{ends}->{memory}", str(len(gpus)),
        units.number(prediction.total / 1e9), range_text(prediction.total, prediction.total_low, prediction.total_high),
        slowest.limit, slowest.basis, notes.mark([*slowest.rests_on, slowest.doubt]),
    )  # fmt: skip
