"""Which network cards carry traffic between two hosts: the nearest at each end, spread over equals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.errors import Unreachable
from lanewise.routes import paths
from lanewise.routes.classify import CLASSES, classify
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from lanewise.topology.model import System


def card_pairs(system: System, a: str, b: str) -> list[tuple[str, str]]:
    """Pairs (card of a's host, card of b's host) that a network joins, the one used by default first.

    The end that is a GPU chooses its nearest card, and GPUs with the same nearest cards take them in turn; the other
    end uses the card of the same rank (rail). Unreachable if no network joins the hosts.
    """
    chooser, other = (b, a) if system.device(b).kind is Kind.GPU else (a, b)
    mine, theirs = _cards(system, chooser), _cards(system, other)
    pairs = []
    for card in _by_distance(system, chooser, mine):
        for partner in _partners(card, mine, theirs):
            if paths.over_network(system, card, partner) is not None:
                pairs.append((partner, card) if chooser == b else (card, partner))
                break
    if not pairs:
        hosts = f"{system.device(a).host} and {system.device(b).host}"
        raise Unreachable(f"no network joins {hosts}, so {a} cannot reach {b}", hint="describe network cards and link them")
    return pairs


def _cards(system: System, name: str) -> list[str]:
    cards = system.of_kind(Kind.NIC, host=system.device(name).host)
    return [card for card in cards if any(link.kind is LinkKind.NETWORK for link in system.links_at(card))]


def _by_distance(system: System, name: str, cards: list[str]) -> list[str]:
    """Cards from near to far; the nearest ones turned so that devices which share them start at different ones."""
    if system.device(name).kind is Kind.CPU:
        return cards
    near = {card: _distance(system, name, card) for card in cards}
    ordered = sorted(cards, key=lambda card: near[card])
    best = [card for card in ordered if near[card] == near[ordered[0]]] if ordered else []
    alike = [
        other for other in system.of_kind(Kind.GPU, host=system.device(name).host)
        if best and all(_distance(system, other, card) == near[best[0]] for card in best)
    ]  # fmt: skip
    turn = alike.index(name) % len(best) if name in alike else 0
    return [*best[turn:], *best[:turn], *ordered[len(best) :]]


def _distance(system: System, name: str, card: str) -> tuple[int, int]:
    hops = paths.through_switches(system, name, card) or paths.through_root(system, name, card)
    return CLASSES.index(classify(system, hops)), len(hops)


def _partners(card: str, mine: list[str], theirs: list[str]) -> list[str]:
    """The other side's cards, the one of the same rank first."""
    if not theirs:
        return []
    rank = mine.index(card) % len(theirs)
    return [*theirs[rank:], *theirs[:rank]]
