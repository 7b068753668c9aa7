"""Where data goes as a cause, judged by the model: a far NUMA node, host memory, the root port, PCIe beside NVLinks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking import changes
from lanewise.checking.cause import Cause
from lanewise.checking.causes.modelled_symptom import Symptom
from lanewise.checking.causes.nvlinks import some_nvlinks, unused_nvlinks
from lanewise.checking.verdict import lower_is_better
from lanewise.perf.translation import LEAST
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import Kind


def wrong_node(symptom: Symptom) -> Iterator[Cause]:
    """The host buffer was on another NUMA node than the one that the flow names, else than the device's."""
    # As probes.gpu.flows.buffer_node writes it: '1', '0 (75 %), 1 (25 %)', either with ' (asked 0)'.
    pages, copy = symptom.row.how.get("NUMA node", "").partition(" (asked ")[0], symptom.host_copy()
    nodes = [int(node) for node in re.findall(r"(?:^|, )(\d+)", pages)]
    if copy is not None and copy[2] is not None and nodes not in ([], [copy[2]]):
        host, device, wanted = copy
        reason = f"not on {wanted} as asked" if ":" in symptom.row.flow else f"{device} hangs at node {wanted}"
        what = f"the host buffer lay on NUMA node {pages}, {reason}"
        step = f"lanewise measure gpu --flows '{host}:{wanted}->{device}', or run it under numactl --membind={wanted}"
        change = changes.host_memory_on(nodes[0]) if len(nodes) == 1 else None
        devices = frozenset({device})
        yield Cause(("far NUMA node", pages), what, step, evidence="pages looked up", change=change, devices=devices)


def compat_mode(symptom: Symptom) -> Iterator[Cause]:
    """cuFile did not read straight into the GPU but through host memory."""
    if symptom.row.how.get("mode") == "cuFile compat":
        what = "the data took the way through host memory: cuFile ran in its compatibility mode"
        step = "gdscheck -p; load nvidia-fs, or set allow_compat_mode false in cufile.json to see the reason"
        yield Cause(("compat",), what, step, evidence="said by the probe", change=changes.no_peer_access())


def nvlinks_not_in_use(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs that exchange data over PCIe though NVLinks join them."""
    if symptom.peer_flow is not None and not lower_is_better(symptom.row.unit):
        yield from unused_nvlinks(symptom.model, symptom.result, symptom.peer_flow)


def fewer_nvlinks(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs that use a part of their NVLinks."""
    if symptom.peer_flow is not None:
        yield from some_nvlinks(symptom.model, symptom.result, symptom.peer_flow)


def peer_route(symptom: Symptom) -> Iterator[Cause]:
    """Two GPUs whose traffic goes up to the root port, or through host memory, or over PCIe in place of NVLinks."""
    flow, system = symptom.peer_flow, symptom.model.system
    if flow is None:
        return
    ends = frozenset({flow.src, flow.dst})
    step = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type"
    for name in sorted(symptom.model.route_devices(symptom.row)):
        if system.device(name).kind is Kind.SWITCH:
            what = f"ACS at {name} sends peer traffic up to the root port and back"
            change = changes.acs_redirection(frozenset({name}))
            yield Cause(("acs", name), what, step, change=change, devices=ends)
    what = "the IOMMU translates, and peer traffic goes up to the root port and back"
    yield Cause(("iommu",), what, step, change=changes.iommu_translation(), devices=ends)
    if flow.p2p and route(system, flow.src, flow.dst).via is not Via.STAGED:
        what = "these GPUs exchange data through host memory: P2P is off or not possible between them"
        change = changes.no_peer_access(frozenset({ends}))
        yield Cause(("peer",), what, "nvidia-smi topo -p2p r", change=change, devices=ends)


def translated_copy(symptom: Symptom) -> Iterator[Cause]:
    """A copy of host memory whose pages of 4 KiB the IOMMU translates, where nobody states that it does not."""
    copy = symptom.host_copy()
    if copy is not None and not symptom.model.is_iommu_stated and (symptom.row.value or 0.0) >= LEAST:
        what = "the IOMMU translates pages of 4 KiB, which the description does not say"
        step = "cat /sys/kernel/iommu_groups/*/type (DMA translates); boot with iommu=pt"
        yield Cause(("iommu",), what, step, change=changes.iommu_translation(), devices=frozenset({copy[1]}))


def slow_staging(symptom: Symptom) -> Iterator[Cause]:
    """A copy through host memory that is slower than its stages let it: what is left where no link explains it."""
    flow = symptom.peer_flow
    if flow is None or lower_is_better(symptom.row.unit):
        return
    if route(symptom.model.system, flow.src, flow.dst, flow.p2p).via is Via.STAGED:
        what = "copies through host memory lose time between their two stages, and no one link would explain it"
        step = (
            f"time both stages: lanewise measure gpu --flows '{flow.src}->host, host->{flow.dst}'; if they are fine, "
            "run the tool bound to one NUMA node (numactl), the CPU's clock fixed"
        )
        yield Cause(("staging",), what, step)
