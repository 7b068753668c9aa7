"""Software that reads weights, from data/weights/loaders.yaml. SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lanewise import package_data
from lanewise.blocks.software import Spread
from lanewise.errors import unknown_name
from lanewise.yaml_loader import load

_KIB, _GB = 1024.0, 1e9


@dataclass(frozen=True, slots=True)
class WeightLoader:
    """One way to read weights: each process has `readers` with `window` B in flight each, with `read_ahead` those of
    the kernel's read-ahead.

    `cold` and `warm` (B/s) are the most that one process gets through, from the drive and from the page cache; None for
    no such limit; `warm_amd` is that of AMD's GPUs where it differs. `page_cache`: reads go through it. `lockstep`:
    cold, the readers of several processes do not add up. `reader` (B/s) is what one reader carries, where that is known
    outright. `to_gpu`: data goes from the drive straight to the GPU. `start` (s) is what a load takes that has nothing
    to read.
    """

    name: str
    title: str
    version: str
    source: str
    readers: int
    window: Spread
    start: Spread
    cold: Spread | None
    warm: Spread | None
    warm_amd: Spread | None
    reader: Spread | None
    read_ahead: bool
    lockstep: bool
    to_gpu: bool

    @property
    def page_cache(self) -> bool:
        """Whether a file that was read before is read from memory."""
        return self.warm is not None


def weight_loader_names() -> tuple[str, ...]:
    """Every loader whose figures are known."""
    return tuple(_data()["loaders"])


def weight_loader(name: str) -> WeightLoader:
    """The loader of that name; UnknownName if none is."""
    known = _data()["loaders"]
    if name not in known:
        raise unknown_name("loader", name, known)
    entry = known[name]

    def spread(key: str, unit: float) -> Spread | None:
        return Spread(*(float(value) * unit for value in entry[key])) if key in entry else None

    return WeightLoader(
        name, entry["title"], entry["version"], entry["source"], entry["readers"],
        window=spread("window", _KIB) or Spread(0.0, 0.0, 0.0), start=spread("start", 1.0) or Spread(0.0, 0.0, 0.0),
        cold=spread("cold", _GB), warm=spread("warm", _GB), warm_amd=spread("warm_amd", _GB),
        reader=spread("reader", _GB), read_ahead=bool(entry.get("read_ahead", False)),
        lockstep=bool(entry.get("lockstep", False)), to_gpu=bool(entry.get("gpu", False)),
    )  # fmt: skip


def drive_latency() -> tuple[Spread, str]:
    """The time (s) of one read of a drive that states none, and its source."""
    entry = _data()["latency"]
    return Spread(*map(float, entry["drive"])), str(entry["source"])


@cache
def _data() -> Mapping[str, Any]:
    values: Mapping[str, Any] = load(*package_data.text("weights", "loaders", "file of loaders")).root.value
    return values
