"""NVLinks from classes, counts and bandwidths: bonded between two devices, or through NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.merge import Merged
    from lanewise.discovery.shape import Shape

# No GPU has had more NVLinks than this.
_MOST = 18


def bond(merged: Merged, catalog: Catalog, shape: Shape) -> None:
    """Add the NVLinks to the shape; an NVSwitch stands for all where the counts need one."""
    for pair in merged.pairs:
        a, b = shape.called.get(pair.a, ""), shape.called.get(pair.b, "")
        count = int(pair.word[2:]) if pair.word.startswith("NV") else 0
        if pair.word.startswith("bandwidth"):
            count = _links(int(pair.word.split()[1]) * 1e6, a, b, catalog, shape)
        if count and a and b and a != b:
            key = (a, b) if (b, a) not in shape.bonds else (b, a)
            known = shape.bonds.setdefault(key, count)
            if known != count:
                shape.against.append(f"NVLinks between {a} and {b}: {known} and {count}; the first is taken")
    if not _switched(merged, shape):
        _through_one(catalog, shape)
    _compare(merged, shape)


def _compare(merged: Merged, shape: Shape) -> None:
    """Name the GPUs of which another number of links is up than the dumps join them by."""
    for about in merged.facts:
        up, gpu = merged.number(about, "nvlinks"), shape.called.get(about, "")
        joined = sum(count for pair, count in shape.bonds.items() if gpu in pair)
        fact = merged.fact(about, "nvlinks")
        if gpu and fact and up is not None and joined and up != joined:
            shape.against.append(f"{gpu} has {up} NVLinks up ({fact.source}), the dumps join it by {joined}")


def _links(rate: float, a: str, b: str, catalog: Catalog, shape: Shape) -> int:
    """How many links make up a bandwidth, by the GPU's kind of NVLink."""
    for name in (a, b):
        node = shape.nodes.get(name)
        part = catalog.get(node.part) if node and node.part and node.kind is Kind.GPU else None
        link = part.text("nvlink.part") if part else None
        single = catalog.get(link).number("nvlink.link_rate") if link else None
        if single:
            return round(rate / single)
    shape.notes.append(f"{a} and {b} are joined by NVLinks of {rate / 1e9:.0f} GB/s, of unknown number; left out")
    return 0


def _switched(merged: Merged, shape: Shape) -> bool:
    """NVSwitches named in the dumps, joined into one; of several dumps the one that shows most links counts."""
    by_source: dict[tuple[str, str], int] = defaultdict(int)
    for about, facts in merged.facts.items():
        for key, fact in facts.items():
            if key.startswith("nvswitch:") and about in shape.called:
                by_source[shape.called[about], fact.source.what] += int(fact.value)
    counts: dict[str, int] = {}
    for (gpu, _), count in by_source.items():
        counts[gpu] = max(count, counts.get(gpu, 0))
    if counts:
        for pair in [pair for pair in shape.bonds if pair[0] in counts and pair[1] in counts]:
            del shape.bonds[pair]
        switch = shape.add(Kind.NVSWITCH, "nvsw")
        shape.bonds.update({(gpu, switch.name): count for gpu, count in counts.items()})
        shape.notes.append(f"{switch.name} stands for all NVSwitches of the machine")
    return bool(counts)


def _through_one(catalog: Catalog, shape: Shape) -> None:
    """Where every GPU shows the same NV# to more peers than it has links for, an NVSwitch joins them."""
    gpus = [gpu.name for gpu in shape.of_kind(Kind.GPU) if any(gpu.name in pair for pair in shape.bonds)]
    found = {shape.bonds.get((a, b)) or shape.bonds.get((b, a)) for a, b in combinations(gpus, 2)}
    count = next(iter(found)) if len(found) == 1 else None
    if count is None:
        return
    part = shape.nodes[gpus[0]].part
    most = int((catalog.get(part).number("nvlink.links") if part else None) or _MOST)
    if count * (len(gpus) - 1) > most:
        shape.bonds.clear()
        switch = shape.add(Kind.NVSWITCH, "nvsw")
        shape.bonds.update({(gpu, switch.name): count for gpu in gpus})
        shape.notes.append(
            f"all pairs show NV{count}, more than a GPU has links for: an NVSwitch is assumed, as {switch.name}"
        )
