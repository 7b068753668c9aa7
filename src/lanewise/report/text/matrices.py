"""Matrices and time lines on the terminal: which class joins two devices, how fast, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanewise.perf.transfers import FinishedTransfer
from lanewise.report.screen import PIPE, Screen
from lanewise.report.words import clock

LEGEND = {
    "X": "self",
    "NV#": "that many bonded NVLinks",
    "PIX": "at most one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "through the CPU's host bridge",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes, over the inter-socket link",
    "NET": "over the network",
    "LOC": "within one device",
    "--": "no route, or none allowed",
}
_STYLES = {"PHB": "yellow", "NODE": "yellow", "SYS": "red", "NET": "magenta", "--": "dim"}
_WIDEST_BARS = 160  # columns of a time line where the screen has no width


def render_classes(
    names: Sequence[str],
    classes: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]] | None = None,
    screen: Screen = PIPE,
) -> str:
    """The class of the route between each two names as nvidia-smi topo -m prints it; '' means no route.

    `extra` adds columns at the right, such as the NUMA node of each name.
    """
    cells = [["X" if i == j else text or "--" for j, text in enumerate(row)] for i, row in enumerate(classes)]
    used = {("NV#" if text.startswith("NV") else text) for row in cells for text in row}
    legend = [screen.style(f"{key:<5}{text}", "dim") for key, text in LEGEND.items() if key in used]
    return "\n".join([*_matrix(names, names, cells, extra or {}, screen), "", *legend])


def render_matrix(
    sources: Sequence[str],
    targets: Sequence[str],
    values: Sequence[Sequence[float | None]],
    title: str,
    screen: Screen = PIPE,
) -> str:
    """A value from each source (row) to each target (column) under a title; None prints as a dash."""
    largest = max((value for row in values for value in row if value is not None), default=0.0)
    decimals = 0 if largest >= 1000 else 1 if largest >= 100 else 2
    cells = [["--" if value is None else f"{value:.{decimals}f}" for value in row] for row in values]
    lines = [screen.style(line, "bold") for line in screen.wrap(title, 2).split("\n")]
    return "\n".join([*lines, *_matrix(sources, targets, cells, {}, screen)])


def render_timeline(transfers: Sequence[FinishedTransfer], screen: Screen = PIPE) -> str:
    """One bar a transfer on a common time axis."""
    first, last = min(t.start for t in transfers), max(t.finish for t in transfers)
    span = max(last - first, 1e-30)
    label = max(len(transfer.flow.name) for transfer in transfers)
    length = max(10, min(screen.width or _WIDEST_BARS // 2, _WIDEST_BARS) - label - 2)
    lines = []
    for transfer in transfers:
        bar = max(1, round((transfer.finish - transfer.start) / span * length))
        left = min(round((transfer.start - first) / span * length), length - bar)
        lines.append(f"{transfer.flow.name:<{label}}  {' ' * left}{screen.style('█' * bar, 'cyan')}")
    ends = clock(first), clock(last)
    axis = " " * (label + 2) + ends[0] + " " * max(1, length - len(ends[0]) - len(ends[1])) + ends[1]
    return "\n".join([*lines, screen.style(axis, "dim")])


def _matrix(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]],
    screen: Screen,
) -> list[str]:
    """Blocks of columns one below the other where the terminal is too narrow for all of them."""
    wide = max(len(text) for text in (*columns, *(text for row in cells for text in row), "")) + 2
    first = max((len(name) for name in rows), default=0) + 1
    tail = {head: max(len(head), *(len(text) for text in texts)) + 2 for head, texts in extra.items()}
    width = screen.width or first + wide * len(columns) + sum(tail.values())
    step = max(1, (width - first) // wide)
    lines: list[str] = []
    for start in range(0, len(columns), step):
        block = range(start, min(start + step, len(columns)))
        fits = block.stop == len(columns) and first + wide * len(block) + sum(tail.values()) <= width
        ends = {head: length for head, length in tail.items() if fits}
        lines += [""] if start else []
        title = " " * first + "".join(f"{columns[j]:>{wide}}" for j in block)
        lines.append(screen.style(title + "".join(f"{head:>{length}}" for head, length in ends.items()), "bold"))
        for i, name in enumerate(rows):
            texts = [cells[i][j] for j in block]
            line = "".join(" " * (wide - len(text)) + screen.style(text, _STYLES.get(text, "")) for text in texts)
            line += "".join(f"{extra[head][i]:>{length}}" for head, length in ends.items())
            lines.append(screen.style(f"{name:<{first}}", "bold") + line)
    return lines
