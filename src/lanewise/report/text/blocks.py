"""Blocks as text: the predicted time of pieces over each path and its limit; measured ones side by side."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.blocks.transfer import BlockPrediction, BlockTransfer, FirstToken
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, TableCell, number_columns, render_table
from lanewise.report.words import NONE, clock, heading, plural
from lanewise.results.block_rows import BLOCK_TIME, COMPLETION_TIME, GOODPUT, POST_TIME, software_of_scenario
from lanewise.results.observation import Observation


def render_blocks(prediction: BlockPrediction, screen: Screen = PLAIN) -> str:
    """One line a flow, then where the figures come from."""
    notes = Footnotes()
    columns = [
        Column("flow", wrap=True), *number_columns("time"), Column("interval", drop_order=1),
        Column("GB/s", number=True), Column("limit"), Column("on path", number=True, drop_order=3),
        Column("posting", number=True, drop_order=4), Column("software", drop_order=2), Column("source"),
    ]  # fmt: skip
    table = Table(columns, [_line(transfer, notes) for transfer in prediction.transfers])
    pieces = prediction.transfers[0].pieces
    what = f"{plural(pieces.count, 'piece')} of {units.size(pieces.size)} a flow, {units.show(pieces.total, 'GB')}, "
    what += plural(prediction.posters, "posting thread")
    hints = [screen.wrap(text, indent=2) for text in _sums(prediction.transfers)]
    return "\n".join([
        heading(prediction.system), screen.wrap(what, indent=2), render_table(table, screen), "", *hints,
        *([screen.wrap(_first_token(prediction.first_token), indent=2)] if prediction.first_token else []),
        notes.render(screen),
    ])  # fmt: skip


def _first_token(first: FirstToken) -> str:
    low, high = (f"{100 * share:.1f}" for share in first.share_interval)
    parts = f"prefill {clock(first.prefill)} and transfer {clock(first.transfer)}"
    share = f"{100 * first.share:.1f} % of it ({low} to {high} %)"
    workers = f"{units.number(first.prefill_workers, 3)} prefill workers keep this path busy"
    return f"time to first token: {clock(first.time)}, {parts}, {share}; {workers}"


def _line(transfer: BlockTransfer, notes: Footnotes) -> tuple[str, ...]:
    software = f"{transfer.software.title} ({transfer.software.version}): {transfer.software.source}"
    marks = notes.mark([software, transfer.pieces.source, *transfer.path.rests_on, transfer.path.doubt])
    interval = f"{clock(transfer.low)} to {clock(transfer.high)}"
    rate = units.number(transfer.rate / 1e9, 3)
    return (
        transfer.flow.name, clock(transfer.time), interval, rate, str(transfer.limit), clock(transfer.on_path),
        clock(transfer.on_software), transfer.software.name, marks,
    )  # fmt: skip


def _sums(transfers: Sequence[BlockTransfer]) -> list[str]:
    """How each time is made up; flows that are alike once."""
    texts: dict[str, list[str]] = {}
    for transfer in transfers:
        texts.setdefault(_sum(transfer), []).append(transfer.flow.name)
    if len(texts) == 1:
        return list(texts)
    return [f"{', '.join(flows)}: {text}" for text, flows in texts.items()]


def _sum(transfer: BlockTransfer) -> str:
    """'11.82 ms = 16 us start + 11.8 ms posting (...); meanwhile 9.194 ms on path (...)'."""
    threads = f" / {transfer.posters} threads" if transfer.posters > 1 else ""
    posting = f"{clock(transfer.on_software)} posting ({transfer.pieces.count:,} x {clock(transfer.piece)}{threads})"
    path, rate = transfer.path, units.readable(transfer.path_rate, "B/s", 3)
    share = transfer.path_rate / path.rate
    of_path = f"{100 * share:.0f} % of {units.readable(path.rate, 'B/s', 3)}, " if share < 0.995 else ""
    on_path = f"{clock(transfer.on_path)} on path ({units.show(transfer.pieces.total, 'GB')} at {rate}, {of_path}"
    on_path += f"{path.limit})"
    first, other = (posting, on_path) if transfer.on_software > transfer.on_path else (on_path, posting)
    between = " + " if transfer.software.in_turn else "; meanwhile "
    why = ", as each piece waits for the one before" if transfer.software.in_turn else ""
    return f"{clock(transfer.time)} = {clock(transfer.start)} start + {first}{between}{other}{why}"


def render_measured_blocks(rows: Sequence[Observation], screen: Screen = PLAIN) -> str:
    """Measured blocks side by side: a line for each flow of each software; then what holds for all of them."""
    by_metric = {(row.scenario, row.flow, str(row.settings), row.metric): row for row in rows}
    posts = any(row.metric == POST_TIME for row in rows)
    names = ("share", BLOCK_TIME, *([POST_TIME, COMPLETION_TIME] if posts else []))
    lines: list[Sequence[str | TableCell]] = []
    notes = Footnotes()
    for (scenario, flow, settings, metric), row in by_metric.items():
        if metric != GOODPUT:
            continue
        others = [by_metric.get((scenario, flow, settings, name)) for name in names]
        size = f"{row.settings['blocks']:,} x {units.size(row.settings['bytes'])}"
        shown = [None if each is None else each.display(each.value) for each in (row, *others)]
        values = [NONE if value is None else units.number(value, 4) for value in shown]
        both = "with the other" if "both ways" in scenario else "alone"
        failure = row.note if row.value is None else row.how.get("limit", "")
        lines.append(
            (
                software_of_scenario(scenario) or scenario,
                size,
                flow,
                both,
                *values,
                failure if posts else notes.mark([failure]),
            )
        )
    columns = [
        Column("software"), Column("blocks", number=True), Column("flow", wrap=True), Column("direction", drop_order=2),
        Column("GB/s", number=True), Column("% of peak", number=True), Column("us a block", number=True),
        *(number_columns("us to post", "us to complete") if posts else []), Column("limit" if posts else "note"),
    ]  # fmt: skip
    common = {
        key: ", ".join(dict.fromkeys(row.how[key] for row in rows if key in row.how))
        for key in ("card", "mode", "in flight", "flush", "NUMA node", "NUMA node there", "data")
    }
    facts = " · ".join(f"{key}: {text}" for key, text in common.items() if text)
    return "\n".join([render_table(Table(columns, lines), screen), "", screen.wrap(facts, indent=2),
                      notes.render(screen)]).rstrip()  # fmt: skip
