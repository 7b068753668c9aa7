"""What software costs that moves pieces of memory, from data/blocks/software.yaml. SI units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from lanewise import package_data
from lanewise.errors import InputError, unknown_name
from lanewise.yaml_loader import load


class Spread(NamedTuple):
    """A figure with the least and the most that it was measured to be."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PieceSituation:
    """What decides a piece's cost besides its size: whether the destination pulls (`read`), whether the same software
    copies the other way between the same ends (`opposed`), whether it goes from there to a GPU (`to_gpu`).
    """

    read: bool = False
    opposed: bool = False
    to_gpu: bool = False


@dataclass(frozen=True, slots=True)
class BlockSoftware:
    """One way to move pieces: `start` s a transfer, `piece` s a piece (`read` where the destination reads).

    `share` is what long pieces reach of a path's rate, by medium. `in_turn`: a piece begins when the one before ends.
    `all_cards`: pieces are spread over all network cards near a GPU. Pieces from host memory to a GPU below
    `inline_below` B take their bytes over `inline` (B/s) in addition; others over `copied` (B/s), the rate at which the
    thread itself copies them.
    """

    name: str
    title: str
    version: str
    source: str
    start: Spread
    piece: Spread
    read: Spread
    share: Mapping[str, Spread]
    in_turn: bool
    all_cards: bool
    opposed: Spread
    opposed_share: Mapping[str, Spread]
    inline: Spread
    inline_below: float
    copied: Spread

    def cost(self, size: float, situation: PieceSituation) -> Spread:
        """Seconds that a piece of `size` B costs on the thread that posts it."""
        piece = self.read if situation.read else self.opposed if situation.opposed else self.piece
        rate = self.inline if situation.to_gpu and size < self.inline_below else self.copied
        return Spread(piece.value + size / rate.value, piece.low + size / rate.high, piece.high + size / rate.low)

    def share_of(self, medium: str, situation: PieceSituation) -> Spread:
        """What long pieces reach of a path's rate (0..1)."""
        share = self.share[medium]
        return self.opposed_share.get(medium, share) if situation.opposed else share


def block_software_names() -> tuple[str, ...]:
    """Every software whose costs are known."""
    return tuple(_data()["software"])


def block_software(name: str | None, medium: str) -> BlockSoftware:
    """That software, or the usual one of a medium; UnknownName, or InputError where it does not move data there."""
    known = _data()["software"]
    if name is None:
        name = str(_data()["defaults"].get(medium, ""))
        if not name:
            raise InputError(f"no software is known that moves blocks through {medium}", hint="name a GPU or a drive")
    if name not in known:
        raise unknown_name("software", name, known)
    entry = known[name]
    if medium not in entry["media"]:
        others = [other for other, values in known.items() if medium in values["media"]]
        hint = f"write --software {' or '.join(others)}" if others else "name a GPU or a drive"
        raise InputError(f"{name} moves nothing over this path ({medium})", hint=hint)
    over = entry.get("piece_over", {}).get(medium, {})
    piece = _seconds(over.get("piece", entry["piece"]))
    inline = entry.get("inline", {"below": 0, "rate": [math.inf] * 3})
    return BlockSoftware(
        name, entry["title"], entry["version"], entry["source"], _seconds(entry["start"]), piece,
        _seconds(entry["piece_read"]) if "piece_read" in entry else piece,
        _shares(entry["media"]), bool(entry.get("in_turn", False)), bool(entry.get("all_cards", False)),
        _seconds(over["opposed"]) if "opposed" in over else piece,
        _shares(entry.get("media_opposed", {})), _rates(inline["rate"]), float(inline["below"]),
        _rates(entry.get("copied", [math.inf] * 3)),
    )  # fmt: skip


def _shares(media: Mapping[str, list[float]]) -> dict[str, Spread]:
    return {key: Spread(*map(float, values)) for key, values in media.items()}


def _rates(values: list[float]) -> Spread:
    return Spread(*(float(value) * 1e9 for value in values))


def _seconds(values: list[float]) -> Spread:
    return Spread(*(float(value) * 1e-6 for value in values))


@cache
def _data() -> Mapping[str, Any]:
    values: Mapping[str, Any] = load(*package_data.text("blocks", "software", "file of costs")).root.value
    return values
