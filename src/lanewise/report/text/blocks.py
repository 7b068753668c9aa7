"""`lanewise predict --blocks` as text: the time of pieces over each path, and what limits it."""

from __future__ import annotations

from lanewise import units
from lanewise.blocks.transfer import BlockLimit, BlockPrediction, BlockTransfer
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, number_columns, render_table
from lanewise.report.words import clock, heading, plural


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
    hints = [screen.wrap(_advice(transfer), indent=2) for transfer in prediction.transfers[:1]]
    return "\n".join([
        heading(prediction.system), screen.wrap(what, indent=2), render_table(table, screen), "", *hints,
        notes.render(screen),
    ])  # fmt: skip


def _line(transfer: BlockTransfer, notes: Footnotes) -> tuple[str, ...]:
    software = f"{transfer.software.title} ({transfer.software.version}): {transfer.software.source}"
    marks = notes.mark([software, transfer.pieces.source, *transfer.path.rests_on, transfer.path.doubt])
    interval = f"{clock(transfer.low)} to {clock(transfer.high)}"
    rate = units.number(transfer.rate / 1e9, 3)
    return (
        transfer.flow.name, clock(transfer.time), interval, rate, str(transfer.limit), clock(transfer.on_path),
        clock(transfer.on_software), transfer.software.name, marks,
    )  # fmt: skip


def _advice(transfer: BlockTransfer) -> str:
    path = f"{transfer.path.limit}, {units.readable(transfer.path.rate, 'B/s', 3)}"
    if transfer.limit is BlockLimit.PATH:
        return f"path: {path}"
    return f"software: posts, completions and start take longer than the path ({path})"
