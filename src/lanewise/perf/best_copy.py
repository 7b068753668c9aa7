"""The fastest copy of one GPU that anybody published over links of a PCIe generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lanewise.catalog import Catalog, Part
from lanewise.catalog.keys import GENERATIONS
from lanewise.catalog.typical import completed
from lanewise.perf import packets
from lanewise.perf.known_parts import maker
from lanewise.perf.resources import cite
from lanewise.topology.model import System


class BestRead(NamedTuple):
    """The rate in B/s, what it rests on, and its basis."""

    rate: float
    rests_on: str
    basis: str


def best_read(system: System, gen: int) -> BestRead | None:
    """The fastest host-to-device copy over a x16 link of that generation in B/s that anybody published, and whose.

    No publication shows copies of several GPUs pass a root port faster than the best copy of one. It is the GPUs' reads
    that differ, so only GPUs of the makers in the system count. Parts that the system itself uses count too, so that a
    user's own better figure is never limited by the catalogue's. Of makers that nobody measured it is the typical copy,
    which one of their GPUs is given alone: another maker's best says nothing of their reads.
    """
    parts = (system.part(name) for name in system.devices)
    used = {part.name: part for part in parts if part is not None and part.kind == "gpu"}
    kept, key = system.catalog.best_reads, (*used.values(), gen)
    if key not in kept:
        kept[key] = _best_read(system.catalog, used, gen)
    best: BestRead | None = kept[key]
    return best


def _best_read(catalog: Catalog, used: Mapping[str, Part], gen: int) -> BestRead | None:
    makers = {maker(part) for part in used.values()}
    key = f"engine.h2d.gen{gen}"
    gpus = [part for part in {**catalog.parts, **used}.values() if part.kind == "gpu"]
    near = [part for part in gpus if part.name in used or maker(part) in makers]
    same = [part for part in near if part.number(key)]
    newest = max((round(part.number("pcie.gen") or 0) for part in used.values()), default=0)
    if newest > gen and not any(part.number("pcie.gen") == newest for part in same):
        faster = [part for part in near if part.number(f"engine.h2d.gen{newest}")]
        if faster:  # a GPU of a newer generation fills an older link as it fills its own, not as older GPUs do
            return _best_copy(faster, newest, packets.raw_rate(gen, 16) / packets.raw_rate(newest, 16))
    others = {f"engine.h2d.gen{other}" for other in GENERATIONS} - {key}
    if not same and any(part.number(other) for part in near for other in others):
        return None  # their engines are scaled from another generation; those of other makers say nothing of them
    if same:
        return _best_copy(same, gen, 1.0)
    own = [completed(catalog, part) for part in near if part.name in used]
    return _typical_copy(own, gen) or _best_copy(gpus, gen, 1.0)


def _typical_copy(gpus: Sequence[Part], gen: int) -> BestRead | None:
    key = f"engine.h2d.gen{gen}"
    part = max(gpus, key=lambda gpu: gpu.number(key) or 0.0, default=None)
    if part is None or not part.number(key):
        return None
    return BestRead(part.number(key) or 0.0, cite(part, key, part.figure(key)), "typical")


def _best_copy(gpus: Sequence[Part], gen: int, scale: float) -> BestRead | None:
    key = f"engine.h2d.gen{gen}"
    copies = [(part.number(key) or 0.0, part) for part in gpus if part.number(key)]
    if not copies:
        return None
    # Of equal figures the measured one is cited, not one carried over from it.
    rate, part = max(copies, key=lambda pair: (pair[0], not pair[1].figure(key).carried_from))
    scaled = "" if scale == 1 else f", scaled by {scale:.3g}"
    rests_on = f"best single copy published over Gen{gen} x16: {cite(part, key, part.figure(key))}{scaled}"
    return BestRead(rate * scale, rests_on, "calibrated")
