"""What the operating system calls the devices: PCI addresses, mlx5_0, eth0, nvme0n1."""

from __future__ import annotations

import re
from collections import defaultdict

from lanewise.discovery.draft import SystemDraft
from lanewise.discovery.facts import MachineFacts, address
from lanewise.topology.model import Kind
from lanewise.topology.ranges import NAME

# Of one device; a card with a thousand interfaces is known by the first.
_MOST = 16
_BY_TOOLS = re.compile(r"(?:GPU|NIC)\d+|node:.*")


def add_os_names(merged: MachineFacts, draft: SystemDraft) -> None:
    """Give each device its names: the first function's address, RDMA and network devices, drives, other addresses."""
    names: dict[str, list[str]] = defaultdict(list)
    others: dict[str, list[str]] = defaultdict(list)
    for word, device in draft.names.items():
        if device not in draft.devices or draft.devices[device].kind in (Kind.CPU, Kind.NVSWITCH):
            continue
        if address(word) and names[device]:
            others[device].append(word)
        elif NAME.fullmatch(word) and not _BY_TOOLS.fullmatch(word):
            names[device].append(word)
        blocks = [block.partition(" ")[0] for block in merged.word(word, "block").split(", ")]
        names[device] += [merged.word(word, "alias"), *merged.word(word, "netdev").split(), *blocks]
    for device, words in names.items():
        every = dict.fromkeys(word for word in (*words, *others[device]) if NAME.fullmatch(word))
        draft.devices[device].os_names = tuple(every)[:_MOST]
