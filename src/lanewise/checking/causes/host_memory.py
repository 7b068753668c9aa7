"""Causes of slow rows of a host's own memory, of what a service counts a second, and of several drives at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.cards import without_time
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.memory_modules import OF_CHANNELS, modules_rate
from lanewise.checking.references.one_setting import one_setting
from lanewise.checking.references.side_by_side import COUNTS, HOST_MEMORY
from lanewise.checking.symptom import RowSymptom, row_devices, value_text

MEMORY_STEP = "sudo dmidecode -t memory | grep -E 'Locator|Size|Speed': which slots are empty; numactl -H"
_NODE, _NODES = re.compile(r"host\d*:\d"), re.compile(r"host0:(\d+)->host0:(\d+)")
# Programs get 0.55 to 0.9 of what modules carry (STREAM, `references.memory_modules`), and copies no more.
_LEAST_OF_MODULES = 0.55


def slow_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """Fewer channels or a lower clock, memory of another node, or the program that reads it."""
    row = symptom.row
    if row.path != HOST_MEMORY or row.metric != "goodput":
        return
    better = [other for other in symptom.better_rates() if _NODE.search(other.flow) or other.flow == row.flow]
    # Another kernel moves other bytes (`references.side_by_side`): that it is faster says nothing of this one.
    better = [other for other in better if other.how.get("pattern") == row.how.get("pattern")]
    evidence = f"{_name(better[0].scenario, better[0].flow)} reached {value_text(better[0])}" if better else ""
    nodes = _NODES.fullmatch(row.flow)
    if nodes and nodes[1] != nodes[2] and row.how.get("tool") not in ("MLC", "typed in"):
        what = f"the command takes memory of NUMA node {nodes[1]} for threads of node {nodes[2]}"
        step = f"numactl --cpunodebind={nodes[2]} --membind={nodes[2]}"
        yield Cause(("far NUMA node",), what, step, evidence="the command")
    modules = symptom.posted.stated("memory modules")
    if modules and OF_CHANNELS in symptom.result.expected.limit:
        what = f"memory channels without a module: {modules[0].value}"
        step = "fill every channel of the CPU with equal modules, in the slots that the board's manual names first"
        yield Cause(("memory channels",), what, step, evidence=modules[0].source)
    what = "memory channels: a module is missing or not trained, modules are unevenly placed, or run at a lower clock"
    channels = Cause(("memory channels",), what, MEMORY_STEP, evidence=evidence)
    what = "the program: its version, threads, size of a block (a small one stays in a cache) or kind of stores"
    step = "compare STREAM with arrays of four times the caches, one thread a core: OMP_PROC_BIND=spread ./stream"
    program = Cause(("software",), what, step, evidence=evidence)
    same = better and without_time(row.scenario) == without_time(better[0].scenario)
    elsewhere = _NODE.search(row.flow) and not (better and better[0].flow == row.flow)
    yield from (channels, program) if same or elsewhere else (program, channels)


def copies_of_few_modules(symptom: RowSymptom) -> Iterator[Cause]:
    """Copies between host and GPUs that together fill the modules which somebody states or dmidecode lists."""
    row = symptom.row
    rate, _, source = modules_rate(symptom.posted)
    if not rate or not set(row.path.split(", ")) <= set(HOST_COPIES) or row.metric not in ("goodput", "total"):
        return
    # Of copies at once a row has its own share.
    together = row.how.get("flows", row.flow).count("->") / row.flow.count("->")
    if _LEAST_OF_MODULES * rate <= (row.value or 0.0) * together <= rate:
        modules = symptom.posted.stated("memory modules")[0].value
        what = f"the host's memory: its modules carry {units.show(rate, 'GB/s', 3)} ({modules})"
        step = f"fill every channel of the CPU with equal modules; {MEMORY_STEP}"
        yield Cause(("memory channels",), what, step, evidence=source)


def slow_service(symptom: RowSymptom) -> Iterator[Cause]:
    """What is counted a second, compared with another way of doing the same."""
    row = symptom.row
    better = [other for other in symptom.better_rates() if other.flow == row.flow and not one_setting(row, other)]
    if row.metric != COUNTS or row.settings.get("bytes") or not better:
        return
    evidence = f"'{better[0].scenario}' reached {value_text(better[0])}"
    what = f"the software: '{row.scenario}' spends its time on what '{better[0].scenario}' does not do"
    step = "top -H, perf top and nvidia-smi dmon while it runs: which core, lock or copy is busy"
    yield Cause(("software",), what, step, evidence=evidence)
    if "gpu" in row.flow:
        what = "the link: more data crosses it than the other way of working needs"
        yield Cause(("link",), what, "nvidia-smi dmon -s t while it runs: GB/s of each GPU's link")


def several_drives(symptom: RowSymptom) -> Iterator[Cause]:
    """What several drives share on the way to the host, or the software that adds them up."""
    row = symptom.row
    ends = {end for end in row_devices(row) if not re.match(r"gpu|host|cpu", end)}
    if row.path != "storage" or row.metric != "total" or len(ends) <= 1:
        return
    alone = [other.row for other in symptom.results if other.row.path == "storage" and "," not in other.row.flow]
    alone = [other for other in alone if row_devices(other) & ends and other.how.get("flows", "").count("->") == 1]
    evidence = f"{alone[0].flow} alone reached {value_text(alone[0])}" if alone else ""
    what = f"the {len(ends)} drives share a link: chipset, PCIe switch, controller or a slot of fewer lanes than theirs"
    step = "lspci -tv; while it runs: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:' of the port above the drives"
    yield Cause(("link",), what, step, evidence=evidence)
    what = "the software that adds the drives up: RAID, its chunk size, one thread, few requests in flight"
    step = "fio with one job a drive in place of the array; cat /proc/mdstat; top -H"
    yield Cause(("software",), what, step, evidence=evidence)


def _name(scenario: str, flow: str) -> str:
    return f"'{scenario}'" if scenario != flow else flow


MEMORY_CAUSES = (slow_memory, slow_service)
STORAGE_CAUSES = (several_drives,)
