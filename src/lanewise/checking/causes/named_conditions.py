"""Causes that the names of rows say: two rows of one path whose names differ in a condition that somebody changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lanewise.checking.cause import Cause
from lanewise.checking.symptom import RowSymptom, value_text


@dataclass(frozen=True, slots=True)
class _Condition:
    """Words that name a condition, the key of the cause that it is, what to say, and what to type."""

    words: re.Pattern[str]
    key: tuple[str, ...]
    what: str
    step: str


def _condition(words: str, key: str, what: str, step: str) -> _Condition:
    return _Condition(re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE), (key,), what, step)


_CONDITIONS = (
    _condition(r"mtu", "mtu", "the MTU: packets of 1500 B cost the CPU as much as those of 9000 B",
               "ip link set DEVICE mtu 9000 at both ends and the switch"),
    _condition(r"iommu|vt-?d|passthrough", "iommu", "the IOMMU translates each access of a device",
               "boot with iommu=pt, or turn the IOMMU off in the BIOS"),
    _condition(r"acs", "acs", "ACS redirects traffic between devices up to the root complex",
               "turn ACS off in the BIOS, or sudo setpci -s PORT ECAP_ACS+6.w=0000 at each bridge"),
    _condition(r"(?:re)?bar1?|resizable", "bar", "the window to the GPU's memory (BAR1) is small",
               "turn on Above 4G Decoding and Resizable BAR in the BIOS; nvidia-smi -q -d MEMORY"),
    _condition(r"gdr|gpu ?direct|(?:nvidia_)?peermem|nv_peer_mem", "staged",
               "GPUDirect is not in use: data of the GPU goes through host memory",
               "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; gdscheck -p; NCCL_DEBUG=INFO must show GDRDMA"),
    _condition(r"relaxed[ _]ordering|relax(?:ed)? order", "relaxed ordering",
               "PCIe relaxed ordering is off: writes wait for each other", "mlxconfig -d DEVICE set PCI_WR_ORDERING=1"),
    _condition(r"(?<!_)(?:tcp(?: sockets?)?|rdma|roce|infiniband|ib|efa|verbs)", "transport",
               "the transport: TCP sockets in place of RDMA, or another card",
               "NCCL_DEBUG=INFO must show NET/IB or the plugin, not NET/Socket; UCX_TLS, FI_PROVIDER"),
    _condition(r"numa|(?<!tcp )sockets?|numactl|membind|nps\d?", "memory",
               "the host buffer or the program lies on a NUMA node away from the device",
               "run it under numactl --cpunodebind=N --membind=N for each node N, and compare"),
    _condition(r"hot|thermal|throttl\w*|heatsink|power (?:cap|limit)", "throttling",
               "the device is hot, or its power is capped",
               "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; nvme smart-log /dev/DEVICE"),
    _condition(r"confidential|tdx|sev(?:-snp)?|cc", "confidential",
               "confidential computing: copies are encrypted through a bounce buffer", "nvidia-smi conf-compute -f"),
    _condition(r"vm|guest|virtual|bare ?metal|hypervisor|kvm|virtio", "virtual machine",
               "the virtual machine: virtual devices, memory of any NUMA node, an IOMMU that translates",
               "pass the device through, with huge pages of its NUMA node; compare on the host"),
    _condition(r"riser|slot|m\.2|adapter|cable|chipset|pch|gen ?[1-6]", "link",
               "the slot, riser or cable: a lesser link",
               "while copies run: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; the slot of the faster row"),
    _condition(r"pageable|malloc|pinned|page-locked", "pageable",
               "the host memory is pageable: the driver copies it through a buffer of its own",
               "copy from pinned memory (cudaHostAlloc, pin_memory) that is allocated once"),
)  # fmt: skip

# Variables of the environment, as NCCL, UCX and CUDA have them, with their value.
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b(?: ?= ?\S+)?")

_OFF = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_DISABLE)=(?:1|y|yes|on|true)\b|"
    r"\b([A-Z][A-Z0-9]*(?:_(?!DISABLE)[A-Z0-9]+)+)=(?:0|n|no|off|false|none)\b"
)


def named_conditions(symptom: RowSymptom) -> Iterator[Cause]:
    """The conditions that the names of this row and of a faster one of the same path have, and that differ."""
    row = symptom.row
    if off := _OFF.search(row.scenario):
        what = f"a setting turns something off: {off[0]}"
        yield Cause(("setting",), what, f"run it again without {off[1] or off[2]}", evidence="the row's name")
    faster = [other for other in symptom.better_rates() if other.flow == row.flow and other.scenario != row.scenario]
    if not faster:
        if row.metric == "time" and (own := _VARIABLE.findall(row.scenario)):  # the faster time is no row of the answer
            yield Cause(("setting",), f"a setting: {', '.join(own)}", "run it again without", evidence="the row's name")
        return
    best = max(faster, key=lambda other: other.value or 0.0)
    for condition in _CONDITIONS:
        names = [_around(condition.words, name) for name in (row.scenario, best.scenario)]
        if any(names) and names[0] != names[1]:
            evidence = f"'{best.scenario}' reached {value_text(best)} on the same path"
            yield Cause(condition.key, condition.what, condition.step, evidence=evidence)
    # What a tool calls its own mode (CPU_GPU of gdsio) is no variable.
    modes = {word for each in (row, best) for key in ("mode", "engine") for word in each.how.get(key, "").split()}
    if variables := (set(_VARIABLE.findall(best.scenario)) ^ set(_VARIABLE.findall(row.scenario))) - modes:
        what = f"a setting that differs between the two: {', '.join(sorted(variables))}"
        evidence = f"'{best.scenario}' reached {value_text(best)} on the same path"
        step = "run both with NCCL_DEBUG=INFO, and set what the faster one has"
        yield Cause(("setting",), what, step, evidence=evidence)


def _around(words: re.Pattern[str], name: str) -> str:
    """The name if it has such a word, else nothing."""
    return name if words.search(name) else ""
