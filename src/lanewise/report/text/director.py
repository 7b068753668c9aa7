"""`lanewise director` as text: a pool, offers with predicted rates, composed systems, events."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.pool.listing import ListedBlock, ListedSystem, PoolListing, ServiceEvent
from lanewise.pool.model import Offer, PathRate
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Footnotes, Table, TableCell, render_table
from lanewise.report.words import basis_note, plural, range_text

_FREE = "Unused"
_GRADES = {"Critical": "bad", "Warning": "off"}


def render_pool(listing: PoolListing, screen: Screen = PLAIN) -> str:
    """Servers with what they have, then every block with its state and the predicted rate of its path."""
    systems = {system.server: system for system in listing.systems}
    servers = Table([
        Column("server"), Column("composition"), Column("state", drop_order=1), Column("blocks", wrap=True),
        Column("GB/s", number=True),
    ])  # fmt: skip
    for server in listing.servers:
        system = systems.get(server.name)
        state = _state(system.state, system.health) if system else _state(server.state, server.health)
        blocks = " ".join(system.blocks) if system else ""
        servers.add(server.name, system.name if system else "", state, blocks, _total(system.rates if system else ()))
    rates = {rate.device: rate for system in listing.systems for rate in system.rates}
    blocks_table = Table([
        Column("block"), Column("type", drop_order=4), Column("part", drop_order=3), Column("state"),
        Column("composition"),
        Column("GB/s", number=True), Column("limit", wrap=True, drop_order=1), Column("note", wrap=True, drop_order=2),
    ])  # fmt: skip
    for block in listing.blocks:
        blocks_table.add(*_block_row(block, rates.get(block.name)))
    parts = [render_table(table, screen) for table in (servers, blocks_table) if table.rows]
    return "\n\n".join(parts) or "the service has no blocks"


def _block_row(block: ListedBlock, rate: PathRate | None) -> tuple[str | TableCell, ...]:
    state = "Reserved" if block.reserved and block.state == _FREE else block.state
    figure, limit = (_rate(rate.rate), rate.limit) if rate else ("", "")
    grade = "good" if state == _FREE else _GRADES.get(block.health, "")
    notes = "; ".join(block.notes)
    return block.name, block.type, block.part, TableCell(state, grade), block.system, figure, limit, notes


def _state(state: str, health: str) -> TableCell:
    text = state if health in ("", "OK") else f"{state}, {health}"
    return TableCell(text, _GRADES.get(health, ""))


def render_offers(offers: Sequence[Offer], screen: Screen = PLAIN) -> str:
    """The offers in one line each, then the paths of the first and what others would lose."""
    ranks = Table([
        Column("offer", number=True), Column("server"), Column("blocks", wrap=True), Column("GB/s", number=True),
        Column("slowest", "GB/s", number=True), Column("others lose", "GB/s", number=True),
    ])  # fmt: skip
    for number, offer in enumerate(offers, 1):
        slowest = _rate(min(rate.rate for rate in offer.rates)) if offer.rates else ""
        lost = _rate(offer.lost) if offer.rates else ""
        ranks.add(str(number), offer.server, " ".join(offer.blocks), _total(offer.rates), slowest, lost)
    parts = [render_table(ranks, screen)]
    best = offers[0]
    if best.rates:
        title = f"offer 1: {plural(len(best.rates), 'path')} with everything active at once"
        parts.append(f"{screen.wrap(title, indent=2)}\n{render_rates(best.rates, screen)}")
    return "\n\n".join([*parts, *_losses(best, screen)])


def render_rates(rates: Sequence[PathRate], screen: Screen = PLAIN) -> str:
    """Predicted rates by path: interval, rate alone, limit, basis and sources."""
    notes = Footnotes()
    table = Table([
        Column("device"), Column("GB/s", number=True), Column("interval", drop_order=3),
        Column("at least", number=True), Column("alone", number=True, drop_order=2), Column("limit", wrap=True),
        Column("basis", drop_order=1), Column("source"),
    ])  # fmt: skip
    for rate in rates:
        interval = range_text(rate.rate, rate.low, rate.high)
        required = "" if rate.required is None else _rate(rate.required)
        figure = TableCell(_rate(rate.rate), "" if rate.met else "bad")
        sources = notes.mark([*rate.sources, rate.doubt])
        table.add(rate.device, figure, interval, required, _rate(rate.alone), rate.limit, rate.basis, sources)
    accuracy = basis_note(rate.basis for rate in rates)
    facts = [*([screen.wrap(accuracy, indent=2)] if accuracy else []), notes.render(screen)]
    return "\n".join([render_table(table, screen), "", *filter(None, facts)]).rstrip()


def _losses(offer: Offer, screen: Screen) -> list[str]:
    if not offer.losses:
        return []
    table = Table([Column("loses"), Column("device"), Column("before", "GB/s", number=True),
                   Column("after", "GB/s", number=True)])  # fmt: skip
    for loss in offer.losses:
        table.add(loss.composition, loss.device, _rate(loss.before), _rate(loss.after))
    return [render_table(table, screen)]


def render_composition(system: ListedSystem, screen: Screen = PLAIN) -> str:
    """A composed system with its blocks and predicted rates."""
    blocks = " ".join(system.blocks) or "no blocks"
    health = "" if system.health in ("", "OK") else f", health {system.health}"
    lines = [screen.wrap(f"{system.name}: {system.server or 'unknown server'} with {blocks}", indent=2)]
    lines += [screen.wrap(f"{system.state}{health}", indent=2)] if system.state else []
    lines += [screen.wrap(note, indent=2) for note in system.notes]
    return "\n".join([*lines, *(["", render_rates(system.rates, screen)] if system.rates else [])])


def render_event(event: ServiceEvent) -> str:
    """One line: time, severity unless it is OK, sentence."""
    severity = "" if event.severity in ("", "OK") else f"{event.severity}: "
    return f"{event.time}  {severity}{event.text}".strip()


def _rate(rate: float) -> str:
    return units.number(rate / 1e9)


def _total(rates: Sequence[PathRate]) -> str:
    return _rate(sum(rate.rate for rate in rates)) if rates else ""
