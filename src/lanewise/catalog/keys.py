"""The table of legal figure keys: which kinds of part may state them, in which unit, and what they mean."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import NamedTuple

from lanewise.errors import UnknownName, unknown_name

KINDS = ("gpu", "cpu", "switch", "nic", "ssd", "raid", "nvlink", "adapter")
# What a figure is based on, the weakest claim last; typical ones are computed (catalog/typical.py), not stated.
BASES = ("physics", "calibrated", "typical", "planning", "fitted")
GENERATIONS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # of PCIe, with the GT/s of a lane
TEXT = "text"
# A workload and a batch: a whole number of 1 or more, written one way only.
_TIMED = re.compile(r".+\.[1-9]\d{0,5}")


class Key(NamedTuple):
    """One legal key: the kinds it applies to, its SI unit ('text' for words), meaning, legal words."""

    kinds: tuple[str, ...]
    unit: str
    meaning: str
    choices: tuple[str, ...] = ()


_PCIE = ("gpu", "cpu", "switch", "nic", "ssd", "raid", "adapter")
_DISK = ("ssd", "raid")
_YES_NO = ("yes", "no")
_STAGES = ("overlap", "in turns")

_PLAIN: dict[str, Key] = {
    "pcie.gen": Key(_PCIE, "1", "highest PCIe generation"),
    "pcie.lanes": Key(_PCIE, "1", "lanes of the device, of one switch in all, or of one socket"),
    "pcie.max_payload": Key(_PCIE, "B", "largest max payload size the part supports"),
    "pcie.max_read_request": Key(_PCIE, "B", "max read request size as usually set"),
    "pcie.tags": Key(_PCIE, "1", "reads that may be outstanding at once"),
    "power.limit": Key(("gpu",), "W", "power of the board as delivered"),
    "memory.size": Key(("gpu",), "B", "device memory"),
    "memory.rate": Key(("gpu", "cpu"), "B/s", "memory bandwidth of the device, or of one socket"),
    "memory.dma_reads": Key(("cpu",), "1", "share of memory.rate that devices get which only read"),
    "memory.dma_writes": Key(("cpu",), "1", "share of memory.rate that devices get which only write"),
    "memory.dma_both": Key(
        ("cpu",), "1", "share of memory.rate that devices get which read and write, whatever the mix"
    ),
    "memory.node_reads": Key(
        ("cpu",), "1", "share of a NUMA node's part of memory.rate that devices get which only read"
    ),
    "memory.node_writes": Key(
        ("cpu",), "1", "share of a NUMA node's part of memory.rate that devices get which only write"
    ),
    "memory.step_reads": Key(
        ("cpu",),
        "1",
        "share of a NUMA node's memory that a device reads from across each border of nodes of the socket",
    ),
    "memory.step_writes": Key(
        ("cpu",), "1", "share of a NUMA node's memory that a device writes across each border of nodes of the socket"
    ),
    "memory.read_displaced": Key(
        ("cpu",), "1", "bytes that each device reads less of a memory for a byte written to it by any device"
    ),
    "memory.translated_writes": Key(
        ("cpu",), "B/s", "what GPUs below one root port write to host memory whose pages an IOMMU translates, measured"
    ),
    "memory.translated_reads": Key(
        ("cpu",), "B/s", "what GPUs below one root port read of such memory, measured; both directions share the walks"
    ),
    "memory.write_weight": Key(
        ("cpu",), "1", "rate of a device that writes over that of one that reads, where the memory limits both"
    ),
    "nvlink.part": Key(("gpu",), TEXT, "name of the NVLink part its links are"),
    "nvlink.links": Key(("gpu",), "1", "number of NVLinks"),
    "nvlink.rate": Key(("gpu",), "B/s", "raw rate of all its NVLinks together, one direction"),
    "engine.nvlink": Key(("gpu",), "B/s", "goodput of a copy over all NVLinks, one direction"),
    "c2c.part": Key(("gpu",), TEXT, "name of the nvlink part that its links to its CPU are (NVLink-C2C)"),
    "c2c.links": Key(("gpu",), "1", "number of its links to its CPU"),
    "engine.c2c_h2d": Key(("gpu",), "B/s", "goodput of a host-to-device copy over all links to its CPU"),
    "engine.c2c_d2h": Key(("gpu",), "B/s", "goodput of a device-to-host copy over all links to its CPU"),
    "copy.engines": Key(("gpu",), "1", "copy engines that programs can use; with one, both directions take turns"),
    "staging.rate": Key(
        ("gpu",), "B/s", "what the gaps between the chunks of a staged copy amount to: 1/x = max(1/B1, 1/B2) + 1/this"
    ),
    "staging.stages": Key(
        ("gpu",), TEXT, "whether a staged copy's stages overlap, or 1/x = 1/B1 + 1/B2 + 1/staging.rate", _STAGES
    ),
    "staging.port": Key(
        ("gpu",),
        TEXT,
        "how the stages of opposite copies pass a port that they share, below a CPU of AMD",
        _STAGES,
    ),
    "latency.api_p2p": Key(("gpu",), "s", "small CUDA copy between two GPUs, peer access on, whole figure"),
    "latency.api_nvlink": Key(("gpu",), "s", "small CUDA copy between two GPUs over NVLink, as measured in full"),
    "latency.api_staged": Key(("gpu",), "s", "the same with peer access off, so staged through the host"),
    "latency.chase_host": Key(("gpu",), "s", "pointer chase from a GPU through host memory, one load"),
    "latency.chase_peer": Key(("gpu",), "s", "pointer chase from a GPU through a peer's memory, one load"),
    "peer.access": Key(("gpu",), TEXT, "whether the stock driver offers peer access over PCIe", _YES_NO),
    "bar.above_4g": Key(("gpu",), TEXT, "whether BAR1 is mapped above 4 GiB as delivered", _YES_NO),
    "bar.size": Key(("gpu",), "B", "size of BAR1, the window peers reach its memory through"),
    "cpu.host_bridge_rate": Key(("cpu",), "B/s", "DMA through one host bridge, one direction"),
    "cpu.host_bridges": Key(("cpu",), TEXT, "how root ports are grouped", ("per-socket", "per-port")),
    "cpu.cores": Key(("cpu",), "1", "cores of one socket"),
    "cpu.sockets_max": Key(("cpu",), "1", "sockets that work without a node controller"),
    "completion.payload": Key(("cpu",), "B", "payload of the read completions the root complex returns"),
    "peer.payload": Key(("cpu",), "B", "payload to which the root ports split peer-to-peer writes"),
    "peer.both_ways": Key(
        ("cpu",), "1", "what peers of two root ports write both ways in all, of what they write one way alone"
    ),
    "peer.scope": Key(
        ("cpu",), TEXT, "how far peer writes are forwarded", ("root-complex", "socket", "system", "none")
    ),
    "intersocket.kind": Key(("cpu",), TEXT, "the link between sockets", ("qpi", "upi", "xgmi", "xbus", "none")),
    "intersocket.links": Key(("cpu",), "1", "inter-socket links of one socket"),
    "intersocket.raw": Key(("cpu",), "B/s", "raw rate of one inter-socket link, one direction"),
    "intersocket.rate": Key(("cpu",), "B/s", "what all I/O traffic between sockets got, measured, one direction"),
    "intersocket.link_rate": Key(("cpu",), "B/s", "data that one inter-socket link carries, measured, one direction"),
    "intersocket.peer_rate": Key(("cpu",), "B/s", "what peer writes between sockets got, measured, one direction"),
    "intersocket.memory_rate": Key(
        ("cpu",), "B/s", "what one root port's devices got of the far socket's memory, measured, both directions in all"
    ),
    "intersocket.memory_both": Key(
        ("cpu",), "B/s", "the same where both directions in all got more than one direction does"
    ),
    "intersocket.write_weight": Key(
        ("cpu",), "1", "rate of a device that writes far memory over that of one that reads it, where it is full"
    ),
    "intersocket.spread_writes": Key(
        ("cpu",), "1", "what a device's writes get of their rate where their pages are at both sockets in turn"
    ),
    "intersocket.planning": Key(("cpu",), "B/s", "planning figure of GPU traffic between sockets, one direction"),
    "latency.root_complex": Key(("cpu",), "s", "forwarding between two root ports, one way"),
    "latency.memory_read": Key(("cpu",), "s", "a root port's read of host memory, there and back"),
    "latency.intersocket": Key(("cpu",), "s", "crossing to the other socket, one way"),
    "switch.ports": Key(("switch",), "1", "ports of the switch"),
    "switch.uplink_gen": Key(("switch",), "1", "PCIe generation of a chipset's link to its CPU"),
    "switch.uplink_lanes": Key(("switch",), "1", "lanes of a chipset's link to its CPU"),
    "switch.slot_gen": Key(("switch",), "1", "PCIe generation of a chipset's slots"),
    "switch.slot_lanes": Key(("switch",), "1", "lanes of the widest slot that a chipset has"),
    "switch.cut_through": Key(("switch", "adapter"), "s", "time from a packet's head coming in to going out"),
    "switch.window_tags": Key(("switch", "adapter"), "1", "reads a fabric that proxies requesters keeps open"),
    "switch.window_payload": Key(("switch", "adapter"), "B", "bytes one such read carries"),
    "switch.read_rate": Key(("switch", "adapter"), "B/s", "all reads that cross a fabric's host link together"),
    "net.kind": Key(("nic",), TEXT, "the network's kind", ("infiniband", "ethernet", "efa")),
    "net.rate": Key(("nic",), "B/s", "data rate of one port after line encoding, one direction"),
    "net.ports": Key(("nic",), "1", "network ports"),
    "net.latency": Key(("nic",), "s", "small message from port to port, one way"),
    "net.message_rate": Key(("nic",), "1/s", "small messages a second"),
    "read.rate": Key(_DISK, "B/s", "sequential read"),
    "write.rate": Key(_DISK, "B/s", "sequential write"),
    "read.latency": Key(_DISK, "s", "one 4 KiB read at queue depth 1"),
    "read.iops": Key(_DISK, "1/s", "random 4 KiB reads a second"),
    "nvlink.link_rate": Key(("nvlink",), "B/s", "raw rate of one link, one direction"),
    "nvlink.goodput": Key(("nvlink",), "B/s", "goodput of a copy over one link, one direction"),
    "nvlink.both_ways": Key(("nvlink",), "1", "what both directions at once carry, of twice one direction"),
    "nvlink.switched_both_ways": Key(
        ("nvlink",), "1", "the same over NVSwitches, where they carry less of it than links between two GPUs"
    ),
    "nvlink.forwards": Key(
        ("nvlink",), TEXT, "whether GPUs with such links pass data on between two without a link of their own", _YES_NO
    ),
    "nvlink.practical": Key(("nvlink",), "B/s", "planning figure of one link, one direction"),
}

# One key per generation of the slot the part runs in: the same GPU is slower in an older host.
_PER_GENERATION: dict[str, Key] = {
    "engine.h2d": Key(("gpu",), "B/s", "ceiling of a pinned host-to-device copy"),
    "engine.d2h": Key(("gpu",), "B/s", "ceiling of a device-to-host copy into pinned memory"),
    "engine.p2p_write": Key(("gpu",), "B/s", "ceiling of a peer-to-peer write over PCIe"),
    "engine.p2p_read": Key(("gpu",), "B/s", "ceiling of a peer-to-peer read over PCIe"),
    "engine.duplex": Key(("gpu",), "B/s", "both directions together while H2D and D2H copies run at once"),
    "engine.duplex_h2d": Key(("gpu",), "B/s", "the H2D share of a duplex copy"),
    "engine.duplex_d2h": Key(("gpu",), "B/s", "the D2H share of a duplex copy"),
    "engine.duplex_h2d_amd": Key(("gpu",), "B/s", "the H2D share of a duplex copy at CPUs of AMD, where it differs"),
    "engine.duplex_d2h_amd": Key(("gpu",), "B/s", "the D2H share of a duplex copy at CPUs of AMD, where it differs"),
    "peer.rate": Key(("cpu",), "B/s", "peer-to-peer writes through this root complex, x16 ports"),
}


def _table() -> dict[str, Key]:
    table = dict(_PLAIN)
    for stem, key in _PER_GENERATION.items():
        for gen in GENERATIONS:
            table[f"{stem}.gen{gen}"] = key._replace(meaning=f"{key.meaning}, PCIe Gen{gen}")
    return dict(sorted(table.items()))


KEYS: MappingProxyType[str, Key] = MappingProxyType(_table())


def keys_of(kind: str) -> list[str]:
    """The legal keys of one kind of part, sorted."""
    return [name for name, key in KEYS.items() if kind in key.kinds]


def check_key(kind: str, name: str) -> Key:
    """The Key of that name; UnknownName if a part of this kind cannot state it."""
    key = KEYS.get(name) or _workload_key(name)
    if key is None or kind not in key.kinds:
        raise _illegal(kind, name)
    return key


def unit_of(name: str) -> str | None:
    """The SI unit of a figure key, None if no part can state it."""
    key = KEYS.get(name) or _workload_key(name)
    return key.unit if key else None


def _workload_key(name: str) -> Key | None:
    """Keys with a workload's name: service.NAME.server, .offline; service_time.NAME.BATCH; software.NAME; others."""
    stem, _, rest = name.partition(".")
    if stem == "service" and rest.rpartition(".")[2] in ("server", "offline") and rest.rpartition(".")[0]:
        return Key(("gpu",), "1/s", "queries of that workload one GPU answers a second")
    if stem == "service_time" and _TIMED.fullmatch(rest):
        return Key(("gpu",), "s", "time from the start of a batch of that many queries to its end, one GPU")
    if stem == "service_unsorted" and rest:
        return Key(("gpu",), "1", "time of a query in an unsorted batch, over that in Offline's sorted batches")
    if stem == "software" and rest:
        return Key(("gpu",), "s", "time a query's handling on the host adds when it comes over the network")
    return None


def _illegal(kind: str, name: str) -> UnknownName:
    if kind == "gpu" and name.partition(".")[0] == "service_time":
        hint = "write service_time.<workload>.<batch>, the batch a whole number of 1 or more: service_time.resnet50.8"
        return UnknownName(f"'{name}' names no workload and batch", hint=hint)
    return unknown_name(f"{kind} figure", name, keys_of(kind))
