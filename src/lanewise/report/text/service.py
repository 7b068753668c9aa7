"""A service under load as text: the verdict first, then why, and what would raise it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from lanewise.report import services
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, number_columns, render_table
from lanewise.results.service_result import ServiceResult

WIDEST = 100  # columns of texts, however wide the terminal is
_BAR = 20


def render_service(result: ServiceResult, screen: Screen = PLAIN) -> str:
    """One service: verdict, rates, percentiles, limit, stages, busiest resources, advice, search, sources."""
    text = Screen(min(screen.width or WIDEST, WIDEST), screen.colour)
    verdict = services.verdict(result)
    head = text.wrap(f"{services.rate(result.qps)}: {verdict}{services.after_verdict(result)}", indent=2)
    head = head.replace(verdict, screen.style(verdict, "bold green" if result.valid else "bold red"), 1)
    facts = [("service", result.name), ("peak", services.peak_text(result)), *services.facts(result)]
    parts = [
        f"{head}\n{text.facts(facts, 2, 11)}",
        _percentiles(result, screen),
        _stages(result, screen),
        _utilization(result, screen),
        _section("what would raise it", [(gain, says) for says, gain in services.advice(result)], text),
        _section("assumed", [("", assumption) for assumption in result.assumptions], text),
        _section("based on", [("", source) for source in services.rests(result)], text),
    ]
    return "\n\n".join(filter(None, parts))


def render_services(results: Sequence[ServiceResult], screen: Screen = PLAIN) -> str:
    """Services that run at the same time, one after the other."""
    return "\n\n".join(render_service(result, screen) for result in results)


def _percentiles(result: ServiceResult, screen: Screen) -> str:
    chosen = services.chosen_percentiles(result)
    if len(chosen) < 2:
        return ""
    wide = max(len(text) for pair in chosen for text in pair) + 2
    names, values = ("  " + "".join(f"{text:>{wide}}" for text in texts) for texts in zip(*chosen, strict=True))
    head = screen.style(f"latency, {services.clock(result).unit}", "bold")
    return "\n".join([head, screen.style(names, "dim"), values])


def _stages(result: ServiceResult, screen: Screen) -> str:
    if not result.stages:
        return ""
    head = screen.style("where a query's time goes", "bold")
    return f"{head}\n{_indented(services.stage_table(result), screen)}"


def _utilization(result: ServiceResult, screen: Screen) -> str:
    busiest = services.shown_busy(result)
    if not busiest:
        return ""
    # A letter that every terminal and log has draws the bar.
    table = Table([Column("resource", wrap=True), *number_columns("mean use"), Column("")])
    for strip in busiest:
        name = f"{strip.name}, least to most {strip.spread}" if strip.spread else strip.name
        bar = "#" * round(_BAR * max(0.0, min(1.0, strip.mean)))
        table.add(name, f"{100 * strip.mean:.0f} %", bar)
    rest = services.left_over(result)
    head = screen.style("busiest resources", "bold")
    return "\n".join([head, _indented(table, screen), *([screen.style(f"  {rest}", "dim")] if rest else [])])


def _indented(table: Table, screen: Screen) -> str:
    width = None if screen.width is None else screen.width - 2
    return textwrap.indent(render_table(table, Screen(width, screen.colour)), "  ")


def _section(head: str, lines: Sequence[tuple[str, str]], screen: Screen) -> str:
    """A head, and texts that hang below themselves, each led by a short word where one of them has one."""
    if not lines:
        return ""
    lead = max(len(word) for word, _ in lines)
    hang = lead + 4 if lead else 2
    texts = [screen.wrap(f"  {word:>{lead}}".ljust(hang) + text, indent=hang) for word, text in lines]
    return "\n".join([screen.style(head, "bold"), *texts])
