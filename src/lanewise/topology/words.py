"""The words of the format that say what an entry is."""

from __future__ import annotations

from lanewise.topology.model import Kind

# What a word of the format makes, and the kinds of part it may be.
WORDS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "cpu": (Kind.CPU, ("cpu",)),
    "gpu": (Kind.GPU, ("gpu",)),
    "switch": (Kind.SWITCH, ("switch",)),
    "adapter": (Kind.SWITCH, ("adapter", "switch")),
    "nvswitch": (Kind.NVSWITCH, ("nvlink", "switch")),
    "nic": (Kind.NIC, ("nic",)),
    "ssd": (Kind.SSD, ("ssd",)),
    "raid": (Kind.RAID, ("raid",)),
    "netswitch": (Kind.NETSWITCH, ("switch",)),
}
# How an entry of links: says what it joins, and its speed; `from_` is `from` in the file.
SHAPES = ("chain", "from_", "mesh")
MEDIA = ("pcie", "fabric", "socket", "nvlink", "network")
# What a CPU forwards between devices below it.
PEER_SCOPES = ("none", "root-complex", "socket", "system")
