"""Causes of slow copies of GPUs in their links: a rate that only a lesser link explains, of one GPU or of a pair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from lanewise import units
from lanewise.checking.cause import Cause, speed, speeds
from lanewise.checking.expectation import too_short
from lanewise.checking.flow_rates import WIRE_SHARE
from lanewise.checking.named.abilities import GpuAbility, is_coherent, lesser_links, link_rate, raw_rate
from lanewise.checking.references.gpu_memory import GPU_MEMORY, measured_memory
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.parts import LEAST_OF_STRONG, LEAST_RATE, LEAST_SHORT_COPY, START, STRONG
from lanewise.checking.symptom import RowSymptom, row_devices, value_text
from lanewise.checking.verdict import Verdict, lower_is_better
from lanewise.results.figure_words import OWN_PROGRAM
from lanewise.results.observation import Observation

# How near a rate must be to that of a lesser link.
_NEAR_LINK = 0.12
# What one core copies at most of pageable memory, B/s (`references.parts.BY_ONE_CORE`).
_BY_ONE_CORE = 14e9
# How near the quotient of two rates must be to a power of two, in doublings: 6 %.
_NEAR_DOUBLING = 0.085
# Copies that reach this much of the wires fill their link.
_FILLS_LINK = 0.85


def lesser_link(symptom: RowSymptom) -> Iterator[Cause]:
    """The rate is that of a link of a lower generation or fewer lanes than the GPU has."""
    row, part = symptom.row, symptom.ability
    if part is None or row.path not in HOST_COPIES or row.metric not in ("goodput", "total"):
        return
    if too_short(row) and (row.settings["bytes"] < LEAST_SHORT_COPY or row.how.get("host memory") != "pinned"):
        return
    ways = 2 if row.metric == "total" else 1
    if row.how.get("flows", row.flow).count("->") != ways:
        return
    up = row.path == "host to device"
    links, predicted = _link_of_rate(part, _without_start(row) / ways, part.host_rate(up), up)
    earlier = _other_state(symptom)
    if not links or (symptom.best_host_copy() > 1.25 * predicted and earlier is None):
        return
    both = any(
        other.row.flow != row.flow and sorted(other.row.flow.split("->")) == sorted(row.flow.split("->"))
        and row.value and other.row.value and 0.8 < other.row.value / row.value < 1.25
        for other in symptom.table.between(row_devices(row))
    )  # fmt: skip
    evidence = ""
    if earlier is not None:
        evidence = f"'{earlier.scenario}' reached {value_text(earlier)}, which another link gives"
    elif both:
        evidence = "both directions have the rate of such a link"
    elif row.how.get("host memory") == "pinned" and row.how.get("tool") != OWN_PROGRAM:
        evidence = "pinned memory, and the rate is that of such a link"
    cause = _lesser_link(part, (symptom.gpu,), links, evidence, ways * predicted)
    # A core copies pageable memory at such a rate, and a program's author seldom says which memory it is.
    by_a_core = row.how.get("tool") == OWN_PROGRAM and (row.value or 0.0) <= _BY_ONE_CORE
    known = (symptom.slot_is_stated or by_a_core) and not evidence
    yield replace(cause, explains=False, predicted=None) if known else cause


def _without_start(row: Observation) -> float:
    """The rate of a copy in B/s; of a short one that of its bytes alone, without what it takes to start it."""
    value, size = row.value or 0.0, row.settings.get("bytes", 0)
    return size / (size / value - START) if value and too_short(row) and size / value > 2 * START else value


def _other_state(symptom: RowSymptom) -> Observation | None:
    """The same copy of pinned memory under another name, faster by as much as a link of twice the lanes, or more.

    What a program counts or waits for is no power of two.
    """
    row = symptom.row
    if row.how.get("host memory") != "pinned":
        return None
    faster = [
        other for other in symptom.better(same_flow=True)
        if other.settings == row.settings and other.scenario != row.scenario
        and other.how.get("host memory") == "pinned" and other.how.get("engine") == row.how.get("engine")
    ]  # fmt: skip
    best = max(faster, key=lambda other: other.value or 0.0, default=None)
    steps = math.log2((best.value or 0.0) / row.value) if best is not None and best.value and row.value else 0.0
    return best if round(steps) >= 1 and abs(steps - round(steps)) < _NEAR_DOUBLING else None


def riser(symptom: RowSymptom) -> Iterator[Cause]:
    """A rate that only a link of one lane or of Gen1 would explain, of a GPU that nobody named."""
    row = symptom.row
    if lower_is_better(row.unit) or symptom.ability is not None:
        return
    if not (row.path.startswith("peer") or row.path in HOST_COPIES):
        return
    memory = measured_memory(symptom.gpu, [result.row for result in symptom.table.on_path(GPU_MEMORY)])
    least = LEAST_OF_STRONG if memory > STRONG else LEAST_RATE
    if (row.value or 0.0) >= least:
        return
    gpus = sorted(row_devices(row) - {"host0"})
    if not is_coherent(symptom.posted.title(symptom.gpu)) and symptom.best_host_copy() < least:
        evidence = f"its memory reached {units.show(memory, 'GB/s', 3)}" if memory > STRONG else ""
        what = f"the link of {' or '.join(gpus)} has one lane, as risers do, or runs at Gen1"
        step = "nvidia-smi -q | grep -A10 'GPU Link Info'; sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'"
        yield Cause(("link", *gpus), what, step, evidence=evidence, devices=frozenset(gpus))


def lesser_link_of_peers(symptom: RowSymptom) -> Iterator[Cause]:
    """The same of two GPUs: one of their links is the narrow one."""
    row, part = symptom.row, symptom.ability
    gpus = sorted(row_devices(row))
    if part is None or not row.path.startswith("peer") or len(gpus) != 2 or symptom.over_nvlink or too_short(row):
        return
    ways = 2 if row.metric == "total" else 1
    links, predicted = _link_of_rate(part, (row.value or 0.0) / ways, part.peer_rate(), False)
    if not links:
        return
    slow = [
        other.row for other in symptom.table.on_path(*HOST_COPIES)
        if other.verdict is Verdict.SLOW and row_devices(other.row) & set(gpus)
    ]  # fmt: skip
    named = sorted({gpu for other in slow for gpu in row_devices(other) & set(gpus)}) or gpus
    evidence = f"{slow[0].flow} is slow as well" if slow else ""
    yield _lesser_link(part, tuple(named), links, evidence, ways * predicted)


def _link_of_rate(
    part: GpuAbility, value: float, best: float, to_device: bool
) -> tuple[tuple[tuple[int, int], ...], float]:
    """The lesser links of that rate in B/s and what one of them would give; none where no such link is near it."""
    scale = best / link_rate(part.gen, part.lanes, to_device)
    distances = [
        (min(abs(value / (scale * link_rate(*link, to_device)) - 1) for link in same_rate), same_rate)
        for same_rate in lesser_links(part.gen, part.lanes)
    ]
    distance, links = min(distances, default=(math.inf, ()))
    # Some GPUs reach more of a link than the typical one: 3.6 of the 3.94 GB/s of Gen3 x4.
    near = distance <= _NEAR_LINK or any(_FILLS_LINK * raw_rate(*link) < value < WIRE_SHARE * raw_rate(*link)
                                         for link in links)  # fmt: skip
    return (links, scale * link_rate(*links[0], to_device)) if near else ((), 0.0)


def _lesser_link(
    part: GpuAbility, gpus: tuple[str, ...], links: tuple[tuple[int, int], ...], evidence: str, predicted: float
) -> Cause:
    best = f"{part.title} can {speed(part.gen, part.lanes)}"
    what = f"{' or '.join(gpus)}'s link runs at {speeds(links)} ({best})"
    step = "read it under load: nvidia-smi -q | grep -A10 'GPU Link Info'; sudo lspci -vv | grep LnkSta"
    if gens := [gen for gen, lanes in links if lanes == part.lanes]:
        step += f"; a host or slot of Gen{gens[0]} gives no more"
    devices = frozenset(gpus)
    return Cause(("link", *gpus), what, step, evidence=evidence, devices=devices, predicted=predicted, explains=True)
