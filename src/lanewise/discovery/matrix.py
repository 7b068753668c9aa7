"""From `nvidia-smi topo -m` to devices and links: the smallest machine that shows these classes.

What the devices are comes from the lists of nvidia-smi, lscpu and numactl, where these are there.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.catalog import Catalog
from lanewise.discovery.cpus import add_cpus
from lanewise.discovery.draft import DraftDevice, DraftLink, SystemDraft
from lanewise.discovery.facts import MachineFacts
from lanewise.topology.model import Kind

_PIX, _PXB, _PHB, _NODE = ("PIX",), ("PIX", "PXB"), ("PIX", "PXB", "PHB"), ("PIX", "PXB", "PHB", "NODE")
Near = Callable[[str, str], bool]


def matrix_names(merged: MachineFacts) -> list[str]:
    """The names of the matrix, `GPU0`, `NIC0`, in its order."""
    return [about for about, facts in merged.facts.items() if "listed" in facts]


def draft_from_matrix(merged: MachineFacts, catalog: Catalog) -> SystemDraft:
    """Devices, switches and CPUs that give the matrix; what it hides is noted.

    Other dumps name what the matrix numbers: lists of nvidia-smi the GPUs, lscpu and numactl the CPUs.
    """
    draft = SystemDraft()
    names = matrix_names(merged)
    words = {frozenset((pair.a, pair.b)): pair.word for pair in merged.pairs}
    cpus = _cpus(_sockets(names, words, merged), merged, catalog, draft)
    for name in names:
        kind = Kind.GPU if name.startswith("GPU") else Kind.NIC
        title = merged.word(name, "name")
        node = draft.add(kind, kind.value, _gpu_part(title, catalog))
        node.label = " ".join(filter(None, (merged.word(name, "alias"), title))) or name
        draft.names[name] = node.name
    number = 0
    for cpu, group in cpus:
        for bridge in _groups(group, _within(words, _PHB)):
            for tree in _groups(bridge, _within(words, _PXB)):
                _tree(tree, cpu, f"b{number}", words, draft)
            number += 1
    draft.note("generation and width of all PCIe links unknown: the matrix does not show them")
    if any(word.startswith("NV") for word in words.values()):
        draft.note("NV# hides how GPUs are joined over PCIe; a root port each is assumed where nothing else is said")
    return draft


def _within(words: dict[frozenset[str], str], classes: tuple[str, ...]) -> Near:
    return lambda a, b: words.get(frozenset((a, b))) in classes


def _groups(names: list[str], near: Near) -> list[list[str]]:
    """The names in groups that `near` joins, over several steps if need be, in their order."""
    groups: list[list[str]] = []
    for name in names:
        joined = [group for group in groups if any(near(name, second) for second in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(name for group in joined for name in group), name])
    return sorted((sorted(group, key=names.index) for group in groups), key=lambda group: names.index(group[0]))


def _sockets(names: list[str], words: dict[frozenset[str], str], merged: MachineFacts) -> list[list[str]]:
    """Groups of one NUMA node: by class, and by affinity where a class hides it."""

    def near(a: str, b: str) -> bool:
        word = words.get(frozenset((a, b)), "")
        first, second = merged.number(a, "numa"), merged.number(b, "numa")
        return word in _NODE or (word.startswith("NV") and first is not None and first == second)

    groups = _groups(names, near)
    if not any(word == "SYS" for word in words.values()) and len(groups) > 1:
        return [names] if len({merged.number(name, "numa") for name in names} - {None}) <= 1 else groups
    return groups


def _gpu_part(name: str, catalog: Catalog) -> str | None:
    part = catalog.get(name) if name in catalog else None
    return part.name if part and part.kind == "gpu" else None


def _cpus(
    groups: list[list[str]], merged: MachineFacts, catalog: Catalog, draft: SystemDraft
) -> list[tuple[str, list[str]]]:
    """The CPU of each group of devices."""
    taken: set[int] = set()
    by_node = {}
    for group in groups:
        nodes = [node for name in group if (node := merged.number(name, "numa")) is not None]
        free = next(number for number in range(len(groups) + len(taken) + 1) if number not in taken)
        node = nodes[0] if nodes and nodes[0] not in taken else free
        taken.add(node)
        if not nodes:
            draft.note(f"no NUMA node in the dumps for {', '.join(group)}; node {node} is assumed")
        elif node != nodes[0]:
            draft.contradict(f"{', '.join(group)} are SYS away from others of NUMA node {nodes[0]}; taken as {node}")
        by_node[node] = group
    cpus = add_cpus(merged, set(by_node), catalog, draft)
    return [(cpus[node], group) for node, group in by_node.items()]


def _tree(names: list[str], cpu: str, bridge: str, words: dict[frozenset[str], str], draft: SystemDraft) -> None:
    """Below one root port: a device, a switch of devices, or a switch of switches."""
    groups = _groups(names, _within(words, _PIX))
    if len(names) == 1:
        return draft.links.append(DraftLink(cpu, draft.names[names[0]], bridge=bridge))
    top = draft.add(Kind.SWITCH, "sw") if len(groups) > 1 else None
    if top:
        draft.links.append(DraftLink(cpu, top.name, bridge=bridge))
    for group in groups:
        switch = draft.add(Kind.SWITCH, "sw")
        draft.links.append(DraftLink(top.name if top else cpu, switch.name, bridge="" if top else bridge))
        draft.links += [DraftLink(switch.name, draft.names[name]) for name in group]
        if all(draft.devices[draft.names[name]].kind is Kind.NIC for name in group):
            draft.note(f"{' and '.join(draft.names[name] for name in group)} may be ports of one card, not two")
    return None


def name_devices(merged: MachineFacts, draft: SystemDraft) -> None:
    """Give the names of the matrix to the devices of the tree: GPUs in the order of addresses, cards by name."""
    rows_only = [about for about, facts in merged.facts.items() if "row" in facts and "listed" not in facts]
    names = [name for name in (*matrix_names(merged), *rows_only) if name not in draft.names]
    gpus = [node for node in draft.of_kind(Kind.GPU) if not _foreign(node, merged)]
    cards = [
        a for node in draft.of_kind(Kind.NIC) for a in node.addresses if merged.number(a, "vendor") in (0x15B3, None)
    ]
    rows = [name for name in names if name.startswith("GPU")]
    nic_names = [name for name in names if not name.startswith("GPU")]
    if len(rows) == len(gpus):
        draft.names.update(zip(rows, (gpu.name for gpu in gpus), strict=True))
    elif rows:
        draft.contradict(f"the matrix has {len(rows)} GPUs, the other dumps {len(gpus)}; it is not compared")
    by_name = {name: merged.aliases.get(merged.word(name, "alias") or name) for name in nic_names}
    mellanox = [a for a in cards if merged.number(a, "vendor") == 0x15B3 or "Mellanox" in merged.word(a, "name")]
    if all(by_name.values()):
        draft.names.update({name: draft.names.get(str(a), "") for name, a in by_name.items()})
    elif len(mellanox) == len(nic_names):
        draft.names.update({name: draft.names[a] for name, a in zip(nic_names, mellanox, strict=True)})
        draft.note(f"{', '.join(nic_names)} of the matrix are taken in the order of their PCI addresses")
    elif nic_names:
        draft.contradict(f"{', '.join(nic_names)} of the matrix cannot be told among the network cards")


def _foreign(node: DraftDevice, merged: MachineFacts) -> bool:
    """Whether nvidia-smi would not list this GPU."""
    return merged.number(node.addresses[0], "vendor") not in (0x10DE, None)
