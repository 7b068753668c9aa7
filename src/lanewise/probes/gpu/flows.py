"""A flow of copies to be measured: what it may state, its ends, engine and kind of path, its host buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lanewise import units
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.probes.machine import UNKNOWN, numa_nodes

HOST = "host0"
ANY_NODE = -1


def is_host(end: str) -> bool:
    """Whether that end of a flow is host memory: host, host0, or host0:1 for NUMA node 1."""
    return end.partition(":")[0] in ("host", HOST)


def touches_host(flow: Flow) -> bool:
    """Whether host memory is at one end."""
    return is_host(flow.src) or is_host(flow.dst)


def is_pair(flow: Flow) -> bool:
    """Whether it joins two GPUs."""
    return not touches_host(flow) and flow.src != flow.dst


def measurable_flow(flow: Flow, node: int | None, sweep: bool) -> Flow:
    """The flow as rows name it: host0, or host0:N on NUMA node N, which is `node` where the flow names none.

    InputError for a flow that cannot be measured: between two hosts, with a start, weight, cap or repetition, of no
    bytes, or of some in a sweep.
    """
    if flow.size is not None and sweep:
        raise InputError(f"{flow.name} has a size, and a sweep takes many", hint="leave the size out, or --sweep")
    if flow.size == 0:
        raise InputError("a flow of no bytes cannot be timed", hint="leave the size out, or give one above zero")
    stated = {
        "start": flow.start != 0, "weight": flow.weight != 1, "cap": flow.cap != float("inf"), "every": flow.every != 0,
        "flow to wait for": bool(flow.after), "memory of alternating nodes": flow.interleaved,
    }  # fmt: skip
    for word, is_stated in stated.items():
        if is_stated:
            hint = "a measured flow may say read, sm and a size; the others are for predict"
            raise InputError(f"{flow.name} has a {word}, which no copy can be given", hint=hint)
    src, dst = (_host_name(end, node) if is_host(end) else end for end in (flow.src, flow.dst))
    if is_host(src) and is_host(dst):
        hint = "name a GPU at one end; memory copies are measured by: lanewise measure host"
        raise InputError(f"{flow.name} touches no GPU", hint=hint)
    return replace(flow, src=src, dst=dst)


def typed_text(flows: Sequence[Flow], sizes: bool = True) -> str:
    """The flows as users type them, and as predict reads them: 'gpu0->gpu1 read 4 GiB, host->gpu0'."""
    texts = []
    for flow in flows:
        size = f" {units.size(flow.size)}".replace(",", "") if flow.size and sizes else ""
        texts.append(flow.name + " read" * flow.read + " sm" * flow.sm + size)
    return ", ".join(texts)


def engine(flow: Flow) -> str:
    """What copies."""
    return "SM" if flow.sm else "copy engine"


def path_kind(flow: Flow) -> str:
    """The `path` of a row: what kind it is, in the words of predictions as far as the driver tells it."""
    if is_host(flow.src):
        return "host to device"
    if is_host(flow.dst):
        return "device to host"
    if flow.src == flow.dst:
        return "GPU memory"
    return "peer" if flow.p2p else "peer, staged"


def how_of_flows(flows: Sequence[Flow]) -> dict[str, str]:
    """What a sample's `how` says of all flows that ran together."""
    how = {}
    if all(flow.src != flow.dst for flow in flows):
        how["flows"] = typed_text(flows, sizes=False)
    pairs = [flow for flow in flows if is_pair(flow)]
    if pairs:
        how["p2p"] = "on" if all(flow.p2p for flow in pairs) else "off"
    return how


def buffer_node(pages: Mapping[int, int], node: int) -> tuple[str, str]:
    """The NUMA node of a host buffer as it is recorded, and a note if its pages are not on `node`."""
    text = numa_nodes(pages)
    if text == UNKNOWN:
        return text, "the kernel does not say where the host buffer's pages lie"
    if node == ANY_NODE or text == str(node):
        return text, ""
    return f"{text} (asked {node})", f"host buffer on NUMA node {text}, not on {node} as asked"


def _host_name(end: str, node: int | None) -> str:
    _, colon, number = end.partition(":")
    if colon and not number.isdigit():
        raise InputError(f"'{end}' names no NUMA node", hint="write host:0, host:1")
    if colon:
        return f"{HOST}:{int(number)}"
    return HOST if node is None else f"{HOST}:{node}"
