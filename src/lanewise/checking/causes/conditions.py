"""Conditions of a run that words name, and the cause that each is: in names of typed rows and in plain text."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.checking.cause import Cause

# A program's option or mode, whatever it is.
SETTING = re.compile(
    r"\b(?:with|without|w/o?|enabled?|disabled?|on|off|default|tuned|untuned|setting|config\w*|option|mode|api)\b|"
    r"(?<!\S)--?[a-z][\w-]+|=\w", re.I,
)  # fmt: skip


# A variable of the environment that turns something off.
TURNED_OFF = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_DISABLE)=(?i:1|y|yes|on|true)\b|"
    r"\b([A-Z][A-Z0-9]*(?:_(?!DISABLE)[A-Z0-9]+)+)=(?i:0|n|no|off|false|none)\b"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedCondition:
    """Words that name a condition, the key of the cause that it is, what to say, and what to type."""

    words: re.Pattern[str]
    key: tuple[str, ...]
    what: str
    step: str

    def cause(self, evidence: str = "") -> Cause:
        """The condition as a cause."""
        return Cause(self.key, self.what, self.step, evidence=evidence)

    def differs(self, one: str, other: str) -> bool:
        """Whether two texts say it otherwise: only one of them names it, or other words stand beside it."""
        return self._named(one) != self._named(other)

    def _named(self, text: str) -> list[str]:
        """The words with their neighbours: 'MTU 9000', 'other socket', 'without RDMA'."""
        # A setting beside them is no neighbour that says it otherwise: 'TCP tso=off'.
        words = [word for word in text.split() if "=" not in word or self.words.search(word)]
        found = self.words.finditer(" ".join(words))
        places = {match.string.count(" ", 0, match.start()) for match in found}
        return sorted(" ".join(words[max(0, at - 1) : at + 2]).lower().strip(",;.:()") for at in places)


def _condition(words: str, key: str, what: str, step: str) -> NamedCondition:
    return NamedCondition(re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE), (key,), what, step)


# What people call a processor's socket, where TCP's sockets are meant otherwise.
_OF_TCP = r"(?:over|by|via|tcp|network|bsd|unix|plain) sockets?|net/socket"
_AWAY = "different|other|another|remote|wrong|across|cross(?:ing)?|far"
_OTHER = rf"(?:{_AWAY}|right|same|near|local|own)"

MTU = _condition(
    r"mtu", "mtu", "the MTU: packets of 1500 B cost the CPU as much as those of 9000 B",
    "ip link set DEVICE mtu 9000 at both ends and the switch",
)  # fmt: skip
TRANSPORT = _condition(
    rf"(?<!_)(?:tcp(?: sockets?)?|rdma|roce|infiniband|ib(?!_)|efa|verbs)|{_OF_TCP}", "transport",
    "the transport: TCP sockets in place of RDMA, or another card",
    "NCCL_DEBUG=INFO must show NET/IB or the plugin, not NET/Socket; UCX_TLS, FI_PROVIDER",
)  # fmt: skip
FAR_DEVICE = _condition(
    rf"{_OTHER}[ -]?(?:pcie )?(?:root|switch|gpu|numa|socket|cpu)\w*|on another|(?-i:NODE|SYS|PHB|PIX|PXB)",
    "far device",
    "the GPU and what it exchanges data with hang below different switches, root complexes or sockets",
    "nvidia-smi topo -m: choose a pair of class PIX or PXB, and bind the process to that NUMA node",
)  # fmt: skip
FAR_NODE = _condition(
    rf"{_OTHER}[ -]?(?:numa(?: node)?|sockets?|cpus?)|numa|"
    r"(?<!tcp )(?<!over )(?<!by )(?<!via )(?<!/)sockets?|numactl|membind|nps\d?", "far NUMA node",
    "the host buffer or the program lies on a NUMA node away from the device",
    "run it under numactl --cpunodebind=N --membind=N for each node N, and compare",
)  # fmt: skip
VIRTUAL = _condition(
    r"vms?|guests?|virtual(?! memory| channel| lane)\w*|bare ?metal|hypervisor|kvm|qemu|esxi|hyper-?v|"
    r"proxmox|vmware|xen|wsl2?|virtio",
    "virtual machine", "the virtual machine: virtual devices, memory of any NUMA node, an IOMMU that translates",
    "pass the device through, with huge pages of its NUMA node; compare on the host",
)  # fmt: skip
LINK = _condition(
    r"risers?|slots?|m\.2|adapter|cable|chipset|pch|gen ?[1-6]|x(?:1|2|4|8|16)", "link",
    "the slot, riser or cable: a lesser link",
    "while copies run: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; the slot of the faster row",
)  # fmt: skip
PAGEABLE = _condition(
    r"pageable|malloc|pinned|page-locked|pin_?memory", "pageable",
    "the host memory is pageable: the driver copies it through a buffer of its own",
    "copy from pinned memory (cudaHostAlloc, pin_memory) that is allocated once",
)  # fmt: skip
DIRECT = _condition(
    r"gdr|gpu ?direct|(?:nvidia_)?peermem|nv_peer_mem", "staged",
    "GPUDirect is not in use: data of the GPU goes through host memory",
    "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; gdscheck -p; NCCL_DEBUG=INFO must show GDRDMA",
)  # fmt: skip
# GPUDirect that is slower than copies through host memory: root complexes forward reads between devices slowly
# (`gpudirect._faster_writes`), which UCX and NCCL avoid by their rules of distance (NCCL_NET_GDR_READ).
READ_BY_PEERS = NamedCondition(
    re.compile(""), ("far device",),
    "a device reads the GPU's memory across a root complex, which forwards reads slowly: staging is faster there",
    "nvidia-smi topo -m: a card of class PIX or PXB; NCCL_NET_GDR_READ=0, UCX_IB_GPU_DIRECT_RDMA=no to compare",
)  # fmt: skip
LESSER_LINK = _condition(
    r"risers?|chipset|pch|thunderbolt|oculink|usb ?2(?:\.0)?|(?:pcie|gen ?[1-6]|slots? of) x1|x1 slots?", "link",
    "the slot, riser, adapter or cable: a lesser link", LINK.step,
)  # fmt: skip
AWAY = _condition(
    rf"(?:{_AWAY})[ -]?(?:pcie )?(?:numa|socket|cpu|root)\w*", "far NUMA node", FAR_NODE.what, FAR_NODE.step
)
SHARED = _condition(
    r"at once|simultaneous\w*|concurrently|in parallel|at the same time",
    "shared",
    "what they share on the way: one real drive, a controller, a port, an uplink or the host's memory",
    "lspci -tv, lsblk -o NAME,PKNAME,TRAN, nvidia-smi topo -m: what is above all; add up the rates of all at once",
)
BUSY = _condition(
    r"threads? (?:also )?(?:read|write|cop(?:y|ies)|us(?:e|ing))(?:ing)?(?: the)? memory|"
    r"(?:cpus?|memory|gpus?) (?:under |in )?(?:load|stress|busy)|"
    r"(?:busy|loaded) (?:cpus?|memory|host|machine|system|gpus?)|stress(?:-ng)?|noisy neighbou?rs?|"
    r"background (?:load|traffic|cop(?:y|ies)|jobs?)|"
    r"while (?:\w+ ){1,4}(?:runs?|reads?|writes?|cop(?:y|ies)|trains?|streams?|loads?)",
    "shared",
    "what else the machine does at the same time: the host's memory, a link or the GPU is shared with it",
    "measure on an idle machine; top, nvidia-smi pmon, pcm-memory or perf stat for the memory's traffic",
)
# Linux' bonding driver and switches choose a port by a hash of each flow's addresses (kernel, networking/bonding).
BOND = _condition(
    r"bond(?:ed|ing)?\d?|lacp|lag|link aggregation|802\.3ad|teaming", "port",
    "a bond: each connection stays on one of its ports, and few connections use few of them",
    "cat /proc/net/bonding/*; xmit_hash_policy=layer3+4; more connections than ports; ethtool -S of each port",
)  # fmt: skip
NVLINK = _condition(
    r"nvlinks?(?: bridges?)?", "nvlink", "the NVLinks are not in use, or some are down: a bridge that is not seated",
    "nvidia-smi nvlink -s; nvidia-smi topo -m; systemctl status nvidia-fabricmanager",
)  # fmt: skip
# Monitors sample and average, and their scales end: `nvidia-smi dmon` and such show less than what a copy reaches.
COUNTER = _condition(
    r"sampled|sampling|a monitor|(?:nvidia-smi )?dmon|nvtop|powermetrics|(?:task|activity) (?:manager|monitor)",
    "counting",
    "the monitor: it samples and averages, and may not show more than its scale",
    "time a copy of known size: lanewise measure, nvbandwidth, or the program's own clock",
)  # fmt: skip
# In the order in which they are told where a row and a faster one differ in several.
CONDITIONS = (
    MTU,
    _condition(r"iommu|vt-?d|passthrough", "iommu", "the IOMMU translates each access of a device",
               "boot with iommu=pt, or turn the IOMMU off in the BIOS"),
    _condition(r"acs", "acs", "ACS redirects traffic between devices up to the root complex",
               "turn ACS off in the BIOS, or sudo setpci -s PORT ECAP_ACS+6.w=0000 at each bridge"),
    _condition(r"(?:re)?bar1?|resizable", "bar", "the window to the GPU's memory (BAR1) is small",
               "turn on Above 4G Decoding and Resizable BAR in the BIOS; nvidia-smi -q -d MEMORY"),
    DIRECT,
    _condition(r"relaxed[ _]ordering|relax(?:ed)? order", "relaxed ordering",
               "PCIe relaxed ordering is off: writes wait for each other", "mlxconfig -d DEVICE set PCI_WR_ORDERING=1"),
    TRANSPORT,
    FAR_NODE,
    _condition(r"hot|thermal|throttl\w*|heatsink|power (?:cap|limit)", "throttling",
               "the device is hot, or its power is capped",
               "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; nvme smart-log /dev/DEVICE"),
    _condition(r"confidential|tdx|sev(?:-snp)?|(?<!\w)cc(?!\w)", "confidential",
               "confidential computing: copies are encrypted through a bounce buffer", "nvidia-smi conf-compute -f"),
    VIRTUAL,
    LINK,
    PAGEABLE,
    BUSY,
)  # fmt: skip
# Told of a slow row alone, whatever others reach: words that nobody writes of a path without that.
OWN_CONDITIONS = (
    SHARED, BUSY, VIRTUAL, LESSER_LINK, BOND, COUNTER,
    AWAY,
    _condition(r"pageable|unpinned|not pinned|mmap\w*|mapped files?|memory[- ]mapped", "pageable",
               PAGEABLE.what, PAGEABLE.step),
)  # fmt: skip
