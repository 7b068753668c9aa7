"""NVLinks from classes, counts and bandwidths: bonded between two devices, or through NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from lanewise.catalog import Catalog
from lanewise.discovery.draft import DraftDevice, SystemDraft
from lanewise.discovery.facts import MachineFacts
from lanewise.discovery.pci_ids import is_nvswitch
from lanewise.topology.model import Kind
from lanewise.topology.ranges import fold

# GPUs of a socket where NVSwitches join them: HGX and DGX have eight on two sockets, DGX-2 sixteen.
_OF_A_SOCKET = 4
# No GPU has had more NVLinks than this.
_MOST = 18
# Those that NVSwitches join from five GPUs on, and those whose servers differ in how they wire several.
_SWITCHED, _WIRED = ("nvlink3", "nvlink4", "nvlink5"), ("nvlink1", "nvlink2", "xgmi-mi200")
# In what is said of the PCIe link to a device.
_TO_LINK = "the link to {}"
# Faster than any bundle of NVLinks, B/s.
_FASTEST = 1e15


def add_nvlinks(merged: MachineFacts, catalog: Catalog, draft: SystemDraft) -> None:
    """Add the NVLinks to the draft; a single NVSwitch represents all where the counts need one."""
    switches = nvswitches(merged)
    switched: dict[str, int] = defaultdict(int)
    for pair in merged.pairs:
        a, b = draft.names.get(pair.a, ""), draft.names.get(pair.b, "")
        through = pair.b if pair.a not in switches else pair.a
        if pair.word.startswith("bandwidth"):
            rate = float(pair.word.split()[1]) * 1e6
            count = _links(rate, [a, b], through in switches, catalog, draft) if rate < _FASTEST else 0
        else:
            count = int(pair.word[2:]) if pair.word.startswith("NV") else 0
        if count and (a or b) and through in switches:
            switched[a or b] += count
        elif count and a and b and a != b:
            key = (a, b) if (b, a) not in draft.nvlinks else (b, a)
            first_count = draft.nvlinks.setdefault(key, count)
            if first_count != count:
                draft.contradict(f"NVLinks between {a} and {b}: {first_count} and {count}; the first is taken")
    counts = _counts(merged, draft) or switched
    if counts:
        join_by_nvswitch(counts, switches, draft)
    else:
        _through_one(catalog, draft)
    if not draft.nvlinks:
        add_nvlinks_of_parts(merged, switches, catalog, draft)
    _compare(merged, draft)
    _add_c2c(catalog, draft)
    _tell_of_tenants(catalog, draft)


def _tell_of_tenants(catalog: Catalog, draft: SystemDraft) -> None:
    """Say that other tenants may use the socket where a machine has fewer GPUs than a socket of their board.

    A GPU alone, or all of whose links lead to one other device, is of a board with NVSwitches.
    """
    gpus = [gpu.name for gpu in draft.of_kind(Kind.GPU) if gpu.part and _links_of_board(catalog, gpu.part)]
    neighbours = {name: [pair for pair in draft.nvlinks if name in pair] for name in gpus}
    links = {name: _links_of_board(catalog, draft.devices[name].part or "") for name in gpus}
    all_to_one = all(
        len(pairs) == 1 and draft.nvlinks[pairs[0]] == links[name] for name, pairs in neighbours.items()
    )  # fmt: skip
    if 0 < len(gpus) < _OF_A_SOCKET and (len(gpus) == 1 or all_to_one):
        names = ", ".join(fold(gpus))
        draft.note(
            f"nobody else uses the socket of {names}, though it has {_OF_A_SOCKET} such GPUs on a board with "
            "NVSwitches: where other tenants have the others, write `shared: true` at the CPU"
        )


def _links_of_board(catalog: Catalog, name: str) -> int:
    """The NVLinks of a GPU that comes on boards with NVSwitches, 0 of others: cards with bridges, superchips."""
    part = catalog.get(name)
    figure = part.figure("nvlink.links")
    on_board = figure.known and "bridge" not in figure.condition and part.text("nvlink.part") in _SWITCHED
    return int(part.number("nvlink.links") or 0) if on_board and not part.number("c2c.links") else 0


def _add_c2c(catalog: Catalog, draft: SystemDraft) -> None:
    """Join the GPUs of superchips to their CPU by the links of their part, in place of a PCIe port without lanes."""
    for edge in list(draft.links):
        above, gpu = draft.devices[edge.a], draft.devices[edge.b]
        part = catalog.get(gpu.part) if gpu.part and gpu.kind is Kind.GPU else None
        links = part.number("c2c.links") if part else None
        stated = any({gpu.name, above.name} == {*pair} for pair in draft.nvlinks)
        if links and above.kind is Kind.CPU and not stated:
            draft.links.remove(edge)
            draft.c2c[above.name, gpu.name] = int(links)
            draft.remarks = [(text, name) for text, name in draft.remarks if name != gpu.name or _TO_LINK not in text]
            text = "{} is joined to its CPU by NVLink-C2C, as its part says; its PCIe port, without lanes, is left out"
            draft.remarks.append((text, gpu.name))


def nvswitches(merged: MachineFacts) -> list[str]:
    """The PCI functions of NVSwitches."""
    return [
        a
        for a in merged.addresses()
        if is_nvswitch(merged.number(a, "vendor"), merged.number(a, "device"), merged.number(a, "class"), "")
        or "NVSwitch" in merged.word(a, "name")
    ]


def join_by_nvswitch(counts: Mapping[str, int], switches: Sequence[str], draft: SystemDraft) -> None:
    """Join GPUs by one NVSwitch, which stands for those at the addresses `switches`."""
    for pair in [pair for pair in draft.nvlinks if pair[0] in counts and pair[1] in counts]:
        del draft.nvlinks[pair]
    switch = draft.add(Kind.NVSWITCH, "nvsw")
    switch.addresses = tuple(switches)
    draft.names.update(dict.fromkeys(switches, switch.name))
    draft.nvlinks.update({(gpu, switch.name): count for gpu, count in counts.items()})
    number = f"the {len(switches)}" if len(switches) > 1 else "all"
    draft.note(f"{switch.name} stands for {number} NVSwitches of the machine")


def _compare(merged: MachineFacts, draft: SystemDraft) -> None:
    """Name the GPUs of which another number of links is up than the dumps join them by."""
    for about in merged.facts:
        up, gpu = merged.number(about, "nvlinks"), draft.names.get(about, "")
        joined = sum(count for pair, count in draft.nvlinks.items() if gpu in pair)
        fact = merged.fact(about, "nvlinks")
        if gpu and fact and up is not None and joined and up != joined:
            draft.contradict(f"{gpu} has {up} NVLinks up ({fact.source}), the dumps join it by {joined}")


def _links(rate: float, ends: Sequence[str], switched: bool, catalog: Catalog, draft: SystemDraft) -> int:
    """How many links make up a bandwidth, by the GPU's kind of NVLink; one, if unknown, to an NVSwitch."""
    for name in ends:
        node = draft.devices.get(name)
        part = catalog.get(node.part) if node and node.part and node.kind is Kind.GPU else None
        link = part.text("nvlink.part") if part else None
        single = catalog.get(link).number("nvlink.link_rate") if link else None
        if single:
            return round(rate / single)
    known = next(filter(None, ends), "")
    if switched and known:
        text = f"the NVLinks of {{}} to each NVSwitch have {rate / 1e9:.0f} GB/s, of unknown number; one is assumed"
        draft.remarks += [(text, known)] if (text, known) not in draft.remarks else []
        return 1
    ends = [name for name in ends if name]
    text = f"NVLinks of {{}} of {rate / 1e9:.0f} GB/s lead to what no dump shows, or are of unknown number; left out"
    draft.remarks += [(text, name) for name in ends if (text, name) not in draft.remarks]
    return 0


def _counts(merged: MachineFacts, draft: SystemDraft) -> dict[str, int]:
    """NVLinks to NVSwitches by GPU; of several dumps the one that shows most counts."""
    by_source: dict[tuple[str, str], int] = defaultdict(int)
    for about, facts in merged.facts.items():
        for key, fact in facts.items():
            if key.startswith("nvswitch:") and about in draft.names:
                by_source[draft.names[about], fact.source.what] += int(fact.value)
    counts: dict[str, int] = {}
    for (gpu, _), count in by_source.items():
        counts[gpu] = max(count, counts.get(gpu, 0))
    return counts


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


def add_nvlinks_of_parts(merged: MachineFacts, switches: Sequence[str], catalog: Catalog, draft: SystemDraft) -> None:
    """Add the NVLinks that the GPUs' parts have built in, where no dump can show any; say what was done."""
    by_part: dict[str, list[DraftDevice]] = defaultdict(list)
    for gpu in draft.of_kind(Kind.GPU):
        if gpu.part and catalog.get(gpu.part).number("nvlink.links"):
            by_part[gpu.part].append(gpu)
    unknown = [gpu.name for gpu in draft.of_kind(Kind.GPU) if not gpu.part and not gpu.label]
    if unknown and not any("nvlinks" in facts for facts in merged.facts.values()):
        text = f"what {', '.join(fold(unknown))} are is not in the dumps, so neither are their NVLinks"
        draft.note(f"{text}: name their part in the description, or add lspci -nn and nvidia-smi topo -m")
    matrix = next((fact.source.file for facts in merged.facts.values() if (fact := facts.get("listed"))), "")
    for name, gpus in by_part.items():
        figure = catalog.get(name).figure("nvlink.links")
        links, names = int(catalog.get(name).number("nvlink.links") or 0), ", ".join(fold([g.name for g in gpus]))
        if matrix:
            if "bridge" not in figure.condition and len(gpus) > 1:
                draft.note(f"{name} has {links} NVLinks, {matrix} shows none between {names}: none is taken")
        elif "bridge" in figure.condition:
            if len(gpus) > 1:
                draft.note(f"{names} may have NVLink bridges, which the dump cannot show; none is assumed")
        elif len(gpus) > 1:
            _join(name, links, gpus, switches, catalog, draft)


def _join(
    name: str, links: int, gpus: Sequence[DraftDevice], switches: Sequence[str], catalog: Catalog, draft: SystemDraft
) -> None:
    """Join GPUs of one part: by NVSwitches that the dumps show or the number of GPUs needs, or each with each."""
    generation, others = str(catalog.get(name).text("nvlink.part")), len(gpus) - 1
    words = "NVLinks are taken from the part: the dump cannot show them"
    if switches or (generation in _SWITCHED and others > 3):
        join_by_nvswitch({gpu.name: links for gpu in gpus}, switches, draft)
        draft.note(f"{words}; {links} of each {name} to NVSwitches")
    elif links % others == 0 and (generation not in _WIRED or others == 1):
        share = links // others
        draft.nvlinks.update({(a.name, b.name): share for a, b in combinations(gpus, 2)})
        board = "; through NVSwitches each pair would have all" if generation in _SWITCHED and others > 1 else ""
        draft.note(f"{words}; {links} of each {name}, {share} to each of the others{board}")
    else:
        names = ", ".join(fold([gpu.name for gpu in gpus]))
        text = f"{name} has {links} NVLinks; how they join {names} is not in the dump, and none is taken"
        draft.note(f"{text}: add nvidia-smi topo -m")
