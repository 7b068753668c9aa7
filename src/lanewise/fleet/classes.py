"""Classes of machine: nodes that should deliver the same, and what of a node's equipment its class has and it lacks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from lanewise.checking.earlier_runs import LEAST_MACHINES
from lanewise.fleet.node import SIBLINGS, NodeFinding, NodeReport

_HOST = ("cpu", "sockets", "NUMA nodes", "architecture")
# Firmware reserves a few percent of memory, and not the same on every board; the smallest module is 1/16 of most hosts.
_LESS_MEMORY = 0.05


def machine_classes(reports: Sequence[NodeReport]) -> dict[str, tuple[NodeReport, ...]]:
    """The nodes that answered, by class: CPU and sockets, then the GPUs' model; their number does not count.

    A node that shows no GPU belongs to the largest class of its CPU, unless LEAST_MACHINES show none.
    """
    hosts: dict[tuple[str, ...], dict[str, list[NodeReport]]] = defaultdict(lambda: defaultdict(list))
    for report in reports:
        if not report.failure:
            hosts[tuple(report.facts.get(key, "") for key in _HOST)][_gpu_model(report)].append(report)
    classes: dict[str, list[NodeReport]] = defaultdict(list)
    for host, by_model in hosts.items():
        largest = max(by_model, key=lambda model: len(by_model[model]))
        for model, members in by_model.items():
            few = not model and len(members) < LEAST_MACHINES
            classes[_class_name(host, largest if few else model)] += members
    return {name: tuple(members) for name, members in sorted(classes.items())}


def equipment_findings(members: Sequence[NodeReport]) -> dict[str, list[NodeFinding]]:
    """By node, what most of its class have and it lacks: GPUs, memory; none for fewer than LEAST_MACHINES."""
    findings: dict[str, list[NodeFinding]] = defaultdict(list)
    if len(members) < LEAST_MACHINES:
        return findings
    gpus, most = Counter(len(report.gpus) for report in members).most_common(1)[0]
    sizes = sorted(size for report in members if (size := _memory(report)))
    middle = sizes[len(sizes) // 2] if sizes else 0.0
    for report in members:
        if len(report.gpus) < gpus and 2 * most > len(members):
            findings[report.name].append(_fewer_gpus(len(report.gpus), gpus, most))
        size = _memory(report)
        if size and size < (1 - _LESS_MEMORY) * middle:
            findings[report.name].append(_less_memory(size, middle))
    return findings


def _fewer_gpus(count: int, of_class: int, most: int) -> NodeFinding:
    return NodeFinding(
        SIBLINGS, "fault", "gpus", "", f"{count} of {of_class} GPUs answer",
        "nvidia-smi -L; dmesg | grep -iE 'xid|fallen off'; lspci | grep -i nvidia; power the node off and on",
        evidence=f"{most} nodes of the class have {of_class}", share=count / of_class,
    )  # fmt: skip


def _less_memory(size: float, middle: float) -> NodeFinding:
    return NodeFinding(
        SIBLINGS, "fault", "memory size", "", f"{size:.0f} GiB of memory, the class has {middle:.0f} GiB",
        "sudo dmidecode -t memory | grep -E 'Locator|Size'; reseat or replace the module that is missing",
        evidence="MemTotal", share=size / middle,
    )  # fmt: skip


def _memory(report: NodeReport) -> float:
    match = re.match(r"([\d.]+) GiB", report.facts.get("memory", ""))
    return float(match[1]) if match else 0.0


def _gpu_model(report: NodeReport) -> str:
    return Counter(report.gpus).most_common(1)[0][0] if report.gpus else ""


def _class_name(host: tuple[str, ...], model: str) -> str:
    cpu, sockets = host[0] or "unknown CPU", host[1]
    cpu = f"{sockets} x {cpu}" if sockets not in ("", "1") else cpu
    return f"{cpu}, {model}" if model else cpu
