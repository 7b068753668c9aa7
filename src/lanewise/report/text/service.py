"""A service under load on the terminal: the verdict first, then why, and what would raise it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.report import services
from lanewise.report.terminal import Column, Sheet, make_console

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, RenderableType
    from rich.text import Text

    from lanewise.results.service_result import ServiceResult

WIDTH = 99  # columns at most, however wide the terminal is
_NAME, _BAR = 12, 20
_VERDICT = {True: "bold green", False: "bold red"}


def show_service(loaded: ServiceResult, console: Console | None = None) -> None:
    """Print one service; NO_COLOR is honoured, and what is piped is plain."""
    (console or make_console()).print(service_view(loaded))


def service_view(loaded: ServiceResult) -> RenderableType:
    """One service: verdict, rates, percentiles, limit, stages, busiest resources, advice, search, sources."""
    from rich.console import Group
    from rich.constrain import Constrain

    parts: list[RenderableType] = [
        _verdict(loaded),
        *_lines(loaded),
        *_percentiles(loaded),
        *_stages(loaded),
        *_busy(loaded),
        *_list("what would raise it", [(gain, says) for says, gain in services.advice(loaded)]),
        *_list("assumed", [("", text) for text in loaded.assumptions]),
        *_list("rests on", [("", text) for text in services.rests(loaded)]),
    ]
    return Constrain(Group(*parts), WIDTH)


def services_sheet(found: Sequence[ServiceResult]) -> Sheet:
    """A line a service: rate, verdict, latency, largest valid rate and limit."""
    sheet = Sheet(
        [Column("service", elastic=True), Column("system", keep=5), Column("rate\nQPS", True),
         Column("verdict"), Column("latency"), Column("largest valid\nrate, QPS", True, keep=1),
         Column("limited by", keep=4, elastic=True)],
        title="Under load",
    )  # fmt: skip
    for one in found:
        sheet.add(
            one.name, services.system(one), services.rate(one.qps).removesuffix(" QPS"),
            (services.verdict(one), _VERDICT[one.valid]), services.latency_of_bound(one), services.peak_interval(one),
            one.limit,
        )  # fmt: skip
    return sheet


def _verdict(loaded: ServiceResult) -> Text:
    from rich.text import Text

    return Text.assemble(
        (f"{services.rate(loaded.qps)}: ", "bold"),
        (services.verdict(loaded), _VERDICT[loaded.valid]),
        services.after_verdict(loaded),
    )


def _lines(loaded: ServiceResult) -> list[RenderableType]:
    facts = [("service", loaded.name), *services.facts(loaded)]
    peak = services.peak_text(loaded)
    if peak:
        facts.insert(1, ("peak", peak))
    return [_named(facts)]


def _named(rows: Iterable[tuple[str, str]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=_NAME, no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(Text(f"  {name}", style="dim"), Text(text))
    return table


def _percentiles(loaded: ServiceResult) -> list[RenderableType]:
    from rich.text import Text

    found = services.chosen_percentiles(loaded)
    if len(found) < 2:
        return []
    wide = max(len(text) for pair in found for text in pair) + 2
    unit = services.clock(loaded).unit
    return [
        _head(f"latency, {unit}"),
        Text("  " + "".join(f"{name:>{wide}}" for name, _ in found), style="dim"),
        Text("  " + "".join(f"{value:>{wide}}" for _, value in found)),
    ]


def _stages(loaded: ServiceResult) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    rows = services.stage_rows(loaded)
    if not rows:
        return []
    unit = services.clock(loaded).unit
    table = Table.grid(padding=(0, 3, 0, 0))
    for index in range(5):
        table.add_column(justify="left" if index == 0 else "right", no_wrap=index > 0, overflow="fold")
    heads = ("", f"mean {unit}", "share %", f"{services.slowest(loaded)} {unit}", "share %")
    table.add_row(*(Text(text, style="dim") for text in heads))
    for row in rows:
        style = "bold" if row is rows[-1] else ""
        table.add_row(Text(f"  {row[0]}", style=style), *(Text(cell, style=style) for cell in row[1:]))
    return [_head("where a query's time goes"), table]


def _busy(loaded: ServiceResult) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    found = services.shown_busy(loaded)
    if not found:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=50)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for one in found:
        share = max(0.0, min(1.0, one.mean))
        # Drawn with a letter that every terminal and log has.
        bar = Text("#" * round(_BAR * share), style="cyan")
        name = f"  {one.name}, least to most {one.spread}" if one.spread else f"  {one.name}"
        table.add_row(Text(name), Text(f"{100 * one.mean:.0f} %"), bar)
    rest = services.left_over(loaded)
    return [_head("busiest, mean use"), table, *([Text(f"  {rest}", style="dim")] if rest else [])]


def _list(head: str, lines: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """A head, and texts that hang under themselves, each led by a short word where one of them has one."""
    from rich.table import Table
    from rich.text import Text

    if not lines:
        return []
    lead = max(len(word) for word, _ in lines)
    table = Table.grid()
    table.add_column(width=lead + 4 if lead else 2, no_wrap=True)
    table.add_column(overflow="fold")
    for word, text in lines:
        table.add_row(Text(f"  {word:>{lead}}"), Text(text))
    return [_head(head), table]


def _head(text: str) -> Text:
    from rich.text import Text

    return Text(f"\n{text}", style="bold")


__all__ = ["WIDTH", "service_view", "services_sheet", "show_service"]
