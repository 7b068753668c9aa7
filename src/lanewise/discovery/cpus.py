"""The CPUs of a machine: one for each NUMA node, identified by model names or by PCI functions that only they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lanewise.catalog import Catalog
from lanewise.discovery.cards import ids
from lanewise.discovery.draft import SystemDraft
from lanewise.discovery.facts import MACHINE, MachineFacts
from lanewise.discovery.identify import cpu_part, cpu_part_of_id
from lanewise.discovery.pci_ids import AMD, cpus_of, is_chipset
from lanewise.errors import InputError
from lanewise.topology.model import Kind

_BRIDGES = 0x06
# NUMA nodes of one machine.
_MAX_NODES = 256
_THREADRIPPERS = ("threadripper", "ryzen")
# AMD's sockets show their data fabric as devices 18h and 19h of the first bus.
_FABRICS = {(AMD, device) for device in (0x1460, 0x1490, 0x1650, 0x14AD, 0x12C0)}


def nodes_with_cpus(merged: MachineFacts) -> list[int]:
    """The NUMA nodes of which a dump says more than their memory: those with CPUs."""
    return sorted(
        int(about[5:]) for about, facts in merged.facts.items() if about.startswith("node:") and {*facts} - {"memory"}
    )


def add_cpus(merged: MachineFacts, used: set[int], catalog: Catalog, draft: SystemDraft) -> dict[int, str]:
    """A CPU for every NUMA node that has cores or devices, by node."""
    stated = nodes_with_cpus(merged)
    numbers = sorted({*used, *(stated or _nodes_of_bridges(merged))})
    if len(numbers) > _MAX_NODES:
        cause = f"the dumps show more than {_MAX_NODES} NUMA nodes with CPUs or devices"
        raise InputError(cause, hint="name the dumps of one machine")
    by_ids, why = _part_by_ids(merged, catalog)
    cpus = {}
    for nodes in _sockets(numbers, merged):
        about = f"node:{nodes[0]}"
        model, cpu_id = (merged.word(about, key) or merged.word(MACHINE, key) for key in ("model", "cpu_id"))
        cpu = draft.add(Kind.CPU, "cpu", cpu_part(model, catalog), nodes[0])
        if cpu.part is None:
            by_number = cpu_part_of_id(cpu_id, catalog)
            cpu.part = by_number or (by_ids if not model or "Neoverse" in model else None)
            reason = f"{cpu_id} in CPUID" if by_number else why
            draft.remarks += [(f"{{}} taken as {cpu.part}: {reason}", cpu.name)] if cpu.part else []
        cpu.label, cpu.numa_nodes = model, len(nodes)
        cpus.update(dict.fromkeys(nodes, cpu.name))
        draft.names.update({f"node:{node}": cpu.name for node in nodes})
    return cpus


def _sockets(numbers: list[int], merged: MachineFacts) -> list[list[int]]:
    """The NUMA nodes of each socket, where the dumps tell sockets and all have as many nodes, one after the other."""
    by_socket: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        by_socket[merged.word(f"node:{number}", "socket")].append(number)
    groups = list(by_socket.values())
    fabrics = sum(1 for about in merged.addresses() if ids(about, merged)[:2] in _FABRICS)
    stated = merged.number(MACHINE, "sockets") or fabrics
    if set(by_socket) == {""} and stated and len(numbers) % stated == 0:
        share = len(numbers) // stated
        groups = [numbers[first : first + share] for first in range(0, len(numbers), share)]
    alike = len({len(group) for group in groups}) == 1
    if "" in by_socket and len(groups) == 1 and not stated:
        alike = False
    in_order = all(group == list(range(group[0], group[0] + len(group))) for group in groups)
    return groups if alike and in_order else [[number] for number in numbers]


def _nodes_of_bridges(merged: MachineFacts) -> set[int]:
    """The NUMA nodes that host bridges and ports state, as memory alone has none of them."""
    bridges = (about for about in merged.facts if (merged.number(about, "class") or 0) >> 8 == _BRIDGES)
    return {node for about in bridges if (node := merged.number(about, "numa")) is not None}


def _part_by_ids(merged: MachineFacts, catalog: Catalog) -> tuple[str | None, str]:
    """The part that the PCI functions of CPUs tell, and the reason in words; None where they tell none or several."""
    functions = [(about, *ids(about, merged)) for about in merged.addresses()]
    chipset = any(is_chipset(*each[1:]) for each in functions)
    shows: dict[tuple[str, ...], str] = {}
    for about, vendor, device, name in functions:
        parts = cpus_of(vendor, device, merged.number(about, "revision"), name)
        if parts:
            shows.setdefault(parts, f"{about} {name}".rstrip())
    candidates = _common(shows)
    if chipset:
        candidates = [part for part in candidates if part.startswith(_THREADRIPPERS)] or candidates
    else:
        candidates = [part for part in candidates if not part.startswith(_THREADRIPPERS)] or candidates
    known = [part for part in candidates if part in catalog]
    if not known:
        return None, ""
    where = next(place for parts, place in shows.items() if known[0] in parts)
    which = f"the PCI ids of its functions, such as {where}"
    others = f", are those of {' and '.join(candidates)}; lscpu tells which" if len(candidates) > 1 else ""
    return catalog.get(known[0]).name, which + (others or " tell")


def _common(shows: Iterable[tuple[str, ...]]) -> list[str]:
    """The parts that all functions agree on, the more common first; none if they contradict each other."""
    every = list(shows)
    return [part for part in every[0] if all(part in parts for parts in every)] if every else []
