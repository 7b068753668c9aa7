"""What software costs that moves pieces of memory, from data/blocks/software.yaml. SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from lanewise import package_data
from lanewise.errors import InputError, unknown_name
from lanewise.yaml_positions import load


class Spread(NamedTuple):
    """A figure with the least and the most that it was measured to be."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BlockSoftware:
    """One way to move pieces: `start` s a transfer, `piece` s a piece (`read` where the destination reads).

    `share` is what long pieces reach of a path's rate, by medium. `in_turn`: a piece begins when the one before ends.
    `all_cards`: pieces are spread over all network cards near a GPU.
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
    piece = _seconds(entry["piece"])
    return BlockSoftware(
        name, entry["title"], entry["version"], entry["source"], _seconds(entry["start"]), piece,
        _seconds(entry["piece_read"]) if "piece_read" in entry else piece,
        {key: Spread(*map(float, values)) for key, values in entry["media"].items()}, bool(entry.get("in_turn", False)),
        bool(entry.get("all_cards", False)),
    )  # fmt: skip


def _seconds(values: list[float]) -> Spread:
    return Spread(*(float(value) * 1e-6 for value in values))


@cache
def _data() -> Mapping[str, Any]:
    values: Mapping[str, Any] = load(*package_data.text("blocks", "software", "file of costs")).root.value
    return values
