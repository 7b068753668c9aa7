"""Matrices and time lines on the terminal: which class joins two devices, how fast, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.report.terminal import make_console

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

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
}
_CLASS_STYLE = {"PHB": "yellow", "NODE": "yellow", "SYS": "red", "NET": "magenta", "--": "dim"}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A finite transfer on a time line: `start` and `end` in s, `size` in B."""

    name: str
    start: float
    end: float
    size: float | None = None
    limit: str = ""


def show_classes(
    names: Sequence[str],
    classes: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]] | None = None,
    console: Console | None = None,
) -> None:
    """The class of the route between each two names as nvidia-smi topo -m prints it; '' means no route.

    `extra` adds columns at the right, such as the NUMA node of each name.
    """
    console = console or make_console()
    cells = [["X" if i == j else text or "--" for j, text in enumerate(row)] for i, row in enumerate(classes)]
    _matrix(console, names, cells, extra or {}, lambda text: _CLASS_STYLE.get(text, ""))
    seen = {("NV#" if text.startswith("NV") else text) for row in cells for text in row}
    _dim(console, "")
    for key, text in LEGEND.items():
        if key in seen:
            _dim(console, f"{key:<5}{text}")
    if "--" in seen:
        _dim(console, f"{'--':<5}no route, or none allowed")


def show_bandwidths(
    names: Sequence[str],
    rates: Sequence[Sequence[float | None]],
    title: str = "GB/s, from row to column",
    console: Console | None = None,
) -> None:
    """Rates in GB/s from each name (row) to each other (column); None prints as a dash."""
    show_matrix(names, names, rates, title, console)


def show_matrix(
    sources: Sequence[str],
    targets: Sequence[str],
    values: Sequence[Sequence[float | None]],
    title: str,
    console: Console | None = None,
) -> None:
    """A value from each source (row) to each target (column) under a title; None prints as a dash."""
    console = console or make_console()
    largest = max((value for row in values for value in row if value is not None), default=0.0)
    decimals = 0 if largest >= 1000 else 1 if largest >= 100 else 2
    cells = [["--" if value is None else f"{value:.{decimals}f}" for value in row] for row in values]
    _bold(console, title)
    _matrix(console, sources, cells, {}, lambda text: "dim" if text == "--" else "", targets)


def show_timeline(transfers: Sequence[Transfer], console: Console | None = None) -> None:
    """One bar a transfer on a common time axis, with when it ends and its mean rate."""
    from rich.text import Text

    console = console or make_console()
    if not transfers:
        return
    first, last = min(t.start for t in transfers), max(t.end for t in transfers)
    span = max(last - first, 1e-30)
    label = max(len(transfer.name) for transfer in transfers)
    tails = [_tail(transfer) for transfer in transfers]
    room = max(10, console.width - label - max(len(tail) for tail in tails) - 4)
    for transfer, tail in zip(transfers, tails, strict=True):
        left = round((transfer.start - first) / span * room)
        wide = max(1, round((transfer.end - transfer.start) / span * room))
        left = min(left, room - wide)
        bar = " " * left + "█" * wide
        console.print(Text(f"{transfer.name:<{label}}  ") + Text(f"{bar:<{room}}", style="cyan") + Text(f"  {tail}"))
    start, end = _time(first), _time(last)
    axis = start + " " * max(1, room - len(start) - len(end)) + end
    _dim(console, " " * (label + 2) + axis)


def _tail(transfer: Transfer) -> str:
    length = transfer.end - transfer.start
    rate = "" if transfer.size is None or length <= 0 else f"{transfer.size / length / 1e9:8.2f} GB/s"
    return f"{_time(transfer.end):>10}{rate}" + (f"  {transfer.limit}" if transfer.limit else "")


def _time(seconds: float) -> str:
    unit = "s" if seconds >= 1 or seconds == 0 else "ms" if seconds >= 1e-3 else "us"
    return units.show(seconds, unit)


def _matrix(
    console: Console,
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    extra: Mapping[str, Sequence[str]],
    style: Callable[[str], str],
    named: Sequence[str] | None = None,
) -> None:
    """Print blocks of columns one under the other where the terminal is too narrow for all of them.

    Columns are called as the rows are, unless by `named`.
    """
    from rich.text import Text

    columns = names if named is None else named
    wide = max(len(text) for text in (*columns, *(text for row in cells for text in row), "")) + 2
    first = max((len(name) for name in names), default=0) + 1
    tail = {head: max(len(head), *(len(text) for text in texts)) + 2 for head, texts in extra.items()}
    step = max(1, (console.width - first) // wide)
    for start in range(0, len(columns), step):
        block = range(start, min(start + step, len(columns)))
        fits = block.stop == len(columns) and first + wide * len(block) + sum(tail.values()) <= console.width
        heads = {head: width for head, width in tail.items() if fits}
        line = " " * first + "".join(f"{columns[j]:>{wide}}" for j in block)
        console.print(Text(line + "".join(f"{head:>{width}}" for head, width in heads.items()), style="bold"))
        for i, name in enumerate(names):
            text = Text(f"{name:<{first}}", style="bold")
            for j in block:
                text += Text(f"{cells[i][j]:>{wide}}", style=style(cells[i][j]))
            for head, width in heads.items():
                text += Text(f"{extra[head][i]:>{width}}")
            console.print(text)
        if block.stop < len(columns):
            console.print("")


def _bold(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(text, style="bold"))


def _dim(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(text, style="dim"))


__all__ = ["LEGEND", "Transfer", "show_bandwidths", "show_classes", "show_matrix", "show_timeline"]
