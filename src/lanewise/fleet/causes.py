"""What a node's slow rows have in common, named as a cause with the command to type next."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise import units
from lanewise.checking.expectation import HOST_MEMORY
from lanewise.fleet.node import (
    ALONE,
    DRIVE,
    NETWORK,
    RECEIVE,
    SEND,
    SHARED_ALONE,
    SHARED_TOGETHER,
    SIBLINGS,
    TOGETHER,
    NodeFinding,
)
from lanewise.fleet.siblings import SlowRow

_GPU = re.compile(r"\bgpu\d+\b")
_STEPS = {
    "memory": "sudo dmidecode -t memory | grep -E 'Locator|Speed|Size'; sudo ras-mc-ctl --summary; lanewise measure "
    "host",
    "link": "read the link under load: sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'; reseat the card or its cable",
    "host copies": "lanewise check; look at the IOMMU, the power profile and the switch uplink that the GPUs share",
    "peer copies": "nvidia-smi nvlink -s; nvidia-smi topo -p2p r; lanewise measure gpu",
    "throttle": "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER under load; look at fans, inlets and power caps",
    "network": "ethtool NIC | grep Speed (ibstat for InfiniBand); reseat or replace the cable, try another switch port",
    "network send": "look at the node's transmitter and the switch's receiver: ethtool -S NIC | grep -iE 'err|drop'; "
    "swap the cable",
    "network receive": "look at the switch's transmitter, the node's receiver: ethtool -S NIC | grep -iE 'err|drop'; "
    "swap the cable",
    "drive": "sudo nvme smart-log /dev/nvme0; sudo lspci -vv | grep LnkSta; lanewise measure storage FILE",
    "shared storage": "compare mount options and client versions with a sibling: mount | grep -E 'nfs|lustre|gpfs'",
    "shared storage load": "the share of this client under load: its NIC's queue and the servers that it is bound to",
}
_WHAT = {
    "memory": "host memory is slow: a channel is empty, slow or corrects errors",
    "link": "{about}'s link or slot is slow",
    "host copies": "copies between the host and all GPUs are slow",
    "peer copies": "copies between GPUs are slow",
    "throttle": "slow only while everything is busy: clocks are throttled by heat or power",
    "network": "its network card, cable or switch port is slow both ways",
    "network send": "sends slowly and receives as it should",
    "network receive": "receives slowly and sends as it should",
    "drive": "its own drive is slow",
    "shared storage": "reads the shared storage slowly, alone too",
    "shared storage load": "gets less than its share of the shared storage under load",
}


def row_findings(slow: Sequence[SlowRow], basis: str, gpus: int) -> list[NodeFinding]:
    """One finding for each cause of the slow rows of a node with so many GPUs; the one that explains the most first."""
    by_cause: dict[tuple[str, str], list[SlowRow]] = defaultdict(list)
    for key, entry in _causes(slow, gpus):
        by_cause[key].append(entry)
    findings = [_finding(cause, about, rows, basis) for (cause, about), rows in by_cause.items()]
    return sorted(findings, key=lambda finding: (-finding.rows, finding.share or 0.0))


def _causes(slow: Sequence[SlowRow], gpus: int) -> Iterator[tuple[tuple[str, str], SlowRow]]:
    """Each slow row with its cause and what that is about."""
    alone = {entry.row.flow for entry in slow if entry.row.table == ALONE}
    host_gpus = {name for entry in slow if entry.row.table == ALONE for name in _host_gpu(entry)}
    directions = {entry.row.scenario for entry in slow if entry.row.table == NETWORK}
    shared_alone = any(entry.row.table == SHARED_ALONE for entry in slow)
    memory = any(entry.row.path == HOST_MEMORY and entry.row.table == ALONE for entry in slow)
    for entry in slow:
        row, names = entry.row, _GPU.findall(entry.row.flow)
        if row.table == NETWORK:
            yield ("network" if directions >= {SEND, RECEIVE} else row.scenario, ""), entry
        elif row.table == DRIVE:
            yield ("drive", ""), entry
        elif row.table in (SHARED_ALONE, SHARED_TOGETHER):
            yield ("shared storage" if shared_alone else "shared storage load", ""), entry
        elif row.table == TOGETHER and row.flow not in alone:
            yield ("throttle", ""), entry
        elif row.path == HOST_MEMORY or not names:
            yield ("memory", ""), entry
        elif len(set(names)) > 1:
            yield ("peer copies", ""), entry
        elif len(host_gpus) > 1 and len(host_gpus) == gpus:
            yield ("memory" if memory else "host copies", ""), entry
        else:
            yield ("link", names[0]), entry


def _host_gpu(entry: SlowRow) -> set[str]:
    names = set(_GPU.findall(entry.row.flow))
    return names if len(names) == 1 else set()


def _finding(cause: str, about: str, rows: Sequence[SlowRow], basis: str) -> NodeFinding:
    worst = min(rows, key=lambda entry: entry.share)
    row = worst.row
    value, expected = (units.show(number, row.display_unit) for number in (row.value or 0.0, worst.expected))
    against = f"the median of {worst.count} siblings" if basis == SIBLINGS else f"earlier runs ({worst.count})"
    evidence = f"{row.scenario} {row.flow}: {value}, {against} is {expected}" if basis == SIBLINGS else (
        f"{row.scenario} {row.flow}: {value}, {against} had {expected}"
    )  # fmt: skip
    return NodeFinding(
        basis, "slow", cause, about, _WHAT[cause].format(about=about), _STEPS[cause], evidence, worst.share, len(rows)
    )
