"""NVLinks from classes, counts and bandwidths: bonded between two devices, or through NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from lanewise.catalog import Catalog
from lanewise.discovery.draft import SystemDraft
from lanewise.discovery.facts import MachineFacts
from lanewise.topology.model import Kind

# No GPU has had more NVLinks than this.
_MOST = 18
# Faster than any bundle of NVLinks, B/s.
_FASTEST = 1e15


def add_nvlinks(merged: MachineFacts, catalog: Catalog, draft: SystemDraft) -> None:
    """Add the NVLinks to the draft; a single NVSwitch represents all where the counts need one."""
    for pair in merged.pairs:
        a, b = draft.names.get(pair.a, ""), draft.names.get(pair.b, "")
        count = int(pair.word[2:]) if pair.word.startswith("NV") else 0
        if pair.word.startswith("bandwidth"):
            rate = float(pair.word.split()[1]) * 1e6
            count = _links(rate, a, b, catalog, draft) if rate < _FASTEST else 0
        if count and a and b and a != b:
            key = (a, b) if (b, a) not in draft.nvlinks else (b, a)
            first_count = draft.nvlinks.setdefault(key, count)
            if first_count != count:
                draft.contradict(f"NVLinks between {a} and {b}: {first_count} and {count}; the first is taken")
    if not _switched(merged, draft):
        _through_one(catalog, draft)
    _compare(merged, draft)


def _compare(merged: MachineFacts, draft: SystemDraft) -> None:
    """Name the GPUs of which another number of links is up than the dumps join them by."""
    for about in merged.facts:
        up, gpu = merged.number(about, "nvlinks"), draft.names.get(about, "")
        joined = sum(count for pair, count in draft.nvlinks.items() if gpu in pair)
        fact = merged.fact(about, "nvlinks")
        if gpu and fact and up is not None and joined and up != joined:
            draft.contradict(f"{gpu} has {up} NVLinks up ({fact.source}), the dumps join it by {joined}")


def _links(rate: float, a: str, b: str, catalog: Catalog, draft: SystemDraft) -> int:
    """How many links make up a bandwidth, by the GPU's kind of NVLink."""
    for name in (a, b):
        node = draft.devices.get(name)
        part = catalog.get(node.part) if node and node.part and node.kind is Kind.GPU else None
        link = part.text("nvlink.part") if part else None
        single = catalog.get(link).number("nvlink.link_rate") if link else None
        if single:
            return round(rate / single)
    draft.note(f"{a} and {b} are joined by NVLinks of {rate / 1e9:.0f} GB/s, of unknown number; left out")
    return 0


def _switched(merged: MachineFacts, draft: SystemDraft) -> bool:
    """NVSwitches named in the dumps, joined into one; of several dumps the one that shows most links counts."""
    by_source: dict[tuple[str, str], int] = defaultdict(int)
    for about, facts in merged.facts.items():
        for key, fact in facts.items():
            if key.startswith("nvswitch:") and about in draft.names:
                by_source[draft.names[about], fact.source.what] += int(fact.value)
    counts: dict[str, int] = {}
    for (gpu, _), count in by_source.items():
        counts[gpu] = max(count, counts.get(gpu, 0))
    if counts:
        for pair in [pair for pair in draft.nvlinks if pair[0] in counts and pair[1] in counts]:
            del draft.nvlinks[pair]
        switch = draft.add(Kind.NVSWITCH, "nvsw")
        draft.nvlinks.update({(gpu, switch.name): count for gpu, count in counts.items()})
        draft.note(f"{switch.name} stands for all NVSwitches of the machine")
    return bool(counts)


def _through_one(catalog: Catalog, draft: SystemDraft) -> None:
    """Where every GPU shows the same NV# to more peers than it has links for, an NVSwitch joins them."""
    gpus = [gpu.name for gpu in draft.of_kind(Kind.GPU) if any(gpu.name in pair for pair in draft.nvlinks)]
    counts = {draft.nvlinks.get((a, b)) or draft.nvlinks.get((b, a)) for a, b in combinations(gpus, 2)}
    count = next(iter(counts)) if len(counts) == 1 else None
    if count is None:
        return
    part = draft.devices[gpus[0]].part
    most = int((catalog.get(part).number("nvlink.links") if part else None) or _MOST)
    if count * (len(gpus) - 1) > most:
        draft.nvlinks.clear()
        switch = draft.add(Kind.NVSWITCH, "nvsw")
        draft.nvlinks.update({(gpu, switch.name): count for gpu in gpus})
        draft.note(f"all pairs show NV{count}, more than a GPU has links for: an NVSwitch is assumed, as {switch.name}")
