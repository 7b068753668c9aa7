"""The JSON of `lanewise director`: a pool, offers, composed systems, events; rates in B/s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lanewise.pool.listing import ListedSystem, PoolListing, ServiceEvent
from lanewise.pool.model import Offer, PathRate
from lanewise.report.json import json_document


@json_document("director")
def pool(listing: PoolListing) -> dict[str, Any]:
    """Servers, blocks and composed systems."""
    return {
        "service": listing.service,
        "servers": [asdict(block) for block in listing.servers],
        "blocks": [asdict(block) for block in listing.blocks],
        "compositions": [_system(system) for system in listing.systems],
    }


@json_document("director", "offers")
def offers(ranked: Sequence[Offer]) -> list[dict[str, Any]]:
    """Offers, best first."""
    return [
        {
            "server": offer.server, "blocks": offer.blocks, "total": offer.total, "lost": offer.lost,
            "paths": [_rate(rate) for rate in offer.rates], "losses": [asdict(loss) for loss in offer.losses],
        }
        for offer in ranked
    ]  # fmt: skip


@json_document("director")
def composition(system: ListedSystem) -> dict[str, Any]:
    """A composed system."""
    return _system(system)


def event(one: ServiceEvent) -> dict[str, Any]:
    """One event."""
    return asdict(one)


def _system(system: ListedSystem) -> dict[str, Any]:
    return {**asdict(system), "rates": [_rate(rate) for rate in system.rates]}


def _rate(rate: PathRate) -> dict[str, Any]:
    return {**asdict(rate), "kind": str(rate.kind), "doubt": rate.doubt or None}
