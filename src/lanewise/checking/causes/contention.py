"""Whatever else the machine does meanwhile as a cause: another copy on the path, kernels on the GPU, busy CPUs.

Nothing in a result says so; rates do. Made on purpose (benchmarks/runs/2026-11-27-four-gpus-and-faults): another copy
in the same direction leaves 0.50 to 0.53 of a link and the other direction as it is; busy CPUs, kernels on a GPU or a
second job make calls of a collective last 0.2 to 7 ms whatever their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.checking import changes
from lanewise.checking.cause import Cause
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.symptom import RowSymptom, row_devices
from lanewise.checking.verdict import PathResult, Verdict, lower_is_better
from lanewise.results.observation import Observation

if TYPE_CHECKING:
    from lanewise.checking.causes.modelled_symptom import Symptom

OTHERS = ("others",)
# Two copies that share a link evenly, by any copy engine, and what is less; CPUs that use all of the memory leave more.
_SHARE, _SHARE_OF_MEMORY = 0.6, 0.8
# The next lesser link carries half: more than that and a margin in one direction, and more than in the other.
_MORE_THAN_LESSER, _UNEQUAL = 0.65, 1.25
# The fastest PCIe link of GPUs without a name: Gen6 came with other links between GPUs.
_LATEST, _MOST_LANES = 5, 16
# Delays of this many times the expected latency are no longer the link's: something holds the GPU.
_HELD = 5.0
# A message this many times larger that takes at most this many times as long: neither takes its bytes' time.
_LARGER, _AS_LONG = 4, 1.3
_IDLE = "while it is idle: who uses the GPUs? measure again on an idle machine"
_STEP = f"nvidia-smi pmon -c 1 and dmon -s ut {_IDLE}"
_TOOLS = {"AMD": "amd-smi process", "Intel": "xpu-smi ps", "NVIDIA": "nvidia-smi pmon -c 1 and dmon -s ut"}
_SHARED = "another program copies over the same link, or uses the same memory, at the same time"
_BUSY = "the CPUs or the GPUs are busy with something else"
_BUSY_STEP = f"top -H; a core for each rank (numactl), CUDA graphs (nccl-tests -G 1) to compare; {_STEP}"
_HELD_GPU = "another program's kernels hold the GPU: copies and kernels wait for their turn"


def other_copies(symptom: Symptom) -> Iterator[Cause]:
    """Another program copies the same way, or two do: the model says what each gets."""
    flow, row = symptom.flow, symptom.row
    if flow is None or lower_is_better(row.unit) or row.path not in (*HOST_COPIES, "peer"):
        return
    back = f"{flow.dst}->{flow.src}"
    if any(each.verdict is Verdict.SLOW for each in symptom.results if each.row.flow.replace(" ", "") == back):
        return  # what halves both ways is more likely a lesser link than two other programs
    for count, what in enumerate(("another program copies", "two other programs copy"), 1):
        change = changes.other_copies(flow, count)
        predicted = symptom.model.value(row, change)
        if predicted is not None and symptom.result.reached_by(predicted):
            devices = frozenset(symptom.devices)
            key = (*OTHERS, flow.name)  # what copies on one path explains no other
            yield Cause(key, f"{what} {flow.name} at the same time", _step(symptom), change=change, devices=devices)
            return


def _step(symptom: Symptom) -> str:
    """Who else uses the GPUs, by the tool of the maker that the title of their part names."""
    parts = [symptom.model.system.part(device) for device in symptom.devices if device in symptom.model.system.devices]
    makers = {part.title.partition(" ")[0] for part in parts if part is not None and part.kind == "gpu"}
    return f"{_TOOLS.get(min(makers), 'the tool of its maker')} {_IDLE}" if makers else _STEP


def halved_one_way(symptom: RowSymptom) -> Iterator[Cause]:
    """Half of a link or less one way while the other is fine or far better: a lesser link would halve both."""
    if symptom.row.metric == "goodput" and _is_halved(symptom) and (back_is_fine(symptom) or _unequal(symptom)):
        yield Cause(OTHERS, _SHARED, _STEP)


def _is_halved(symptom: RowSymptom) -> bool:
    """Whether a copy, or that of the other direction, has half of its link or less."""
    return min(symptom.share, *(each.ratio or 1.0 for each in _back(symptom))) < _SHARE if _back(symptom) else False


def _unequal(symptom: RowSymptom) -> bool:
    """Whether one direction gets more than a lesser link would carry, and far more than the other."""
    both = [symptom.result, *_back(symptom)]
    rates, shares = [each.row.value or 0.0 for each in both], [each.ratio or 1.0 for each in both]
    return len(both) > 1 and max(shares) > _MORE_THAN_LESSER and max(rates) > _UNEQUAL * min(rates)


def memory_in_use(symptom: RowSymptom) -> Iterator[Cause]:
    """Less than a link carries in one direction while the other is fine: CPUs that use the memory do that as well."""
    if symptom.row.metric == "goodput" and symptom.share < _SHARE_OF_MEMORY and back_is_fine(symptom):
        yield Cause(OTHERS, _SHARED, _STEP)


def busy_cores(symptom: RowSymptom) -> Iterator[Cause]:
    """A core copies pageable memory: what else runs on it or uses its memory slows it."""
    if symptom.row.how.get("tool") != "typed in":
        yield Cause(OTHERS, "the CPUs or their memory are busy: a core copies pageable memory", _BUSY_STEP)


def back_is_fine(symptom: RowSymptom) -> bool:
    """Whether a tool copied between host and GPU at the full rate in the other direction, from the same memory."""
    back = _back(symptom)
    return bool(back) and all(each.verdict is Verdict.OK for each in back)


def _back(symptom: RowSymptom) -> list[PathResult]:
    """The copies of the row's GPU in the other direction by the same tool and engine, from the same kind of memory."""
    row = symptom.row
    if row.path not in HOST_COPIES or row.how.get("tool") == "typed in":
        return []
    back, same = "->".join(reversed(row.flow.split("->"))), ("tool", "engine", "host memory")
    return [
        each for each in symptom.table.between(row_devices(row))
        if each.row.flow == back and each.row.metric == row.metric
        and all(each.row.how.get(key) == row.how.get(key) for key in same)
    ]  # fmt: skip


def shared_nvlinks(symptom: RowSymptom) -> Iterator[Cause]:
    """A pair of GPUs without a name copies faster than any PCIe link, and others still faster: they share links."""
    row = symptom.row
    if row.path == "peer" and symptom.ability is None and faster_than_pcie(row) and symptom.better(same_flow=False):
        yield Cause(OTHERS, _SHARED, _STEP)


def faster_than_pcie(row: Observation) -> bool:
    """Whether GPUs exchange more than a PCIe link carries, so that no root complex is on the way."""
    return (row.value or 0.0) > (2 if row.metric == "total" else 1) * raw_rate(_LATEST, _MOST_LANES)


def unexplained_calls(result: PathResult) -> Iterator[Cause]:
    """A slow collective within a host that nothing else explains."""
    if result.verdict is Verdict.SLOW and result.row.settings.get("hosts", 1) == 1:
        yield Cause(OTHERS, _BUSY, _BUSY_STEP, inconclusive=True)


def unexplained(symptom: Symptom) -> Iterator[Cause]:
    """A copy of a GPU that nothing else explains."""
    if symptom.row.path in (*HOST_COPIES, "peer") and not lower_is_better(symptom.row.unit):
        yield Cause(OTHERS, _SHARED, _STEP, inconclusive=True)


def gpu_busy_for_others(symptom: RowSymptom) -> Iterator[Cause]:
    """A latency far above what any path takes."""
    if symptom.row.metric == "latency" and symptom.share > _HELD and "gpu" in symptom.row.flow:
        yield Cause(OTHERS, _HELD_GPU, _STEP)


def calls_of_one_length(result: PathResult, results: Sequence[PathResult]) -> Iterator[Cause]:
    """Calls of a collective that last as long though they carry far more: what is slow is to begin them."""
    run = [
        (other.row.settings["bytes"], other.row.settings["bytes"] / other.row.value, other)
        for other in results
        if other.row.scenario == result.row.scenario and other.row.flow == result.row.flow and other.row.value
        and other.row.settings.get("bytes") and other.row.metric == result.row.metric
    ]  # fmt: skip
    run.sort(key=itemgetter(0))
    for size, time, other in run:
        larger = [bytes_ for bytes_, longer, _ in run if bytes_ >= _LARGER * size and longer <= _AS_LONG * time]
        if other.verdict is Verdict.SLOW and larger:
            sizes = f"{units.size(size)} and {units.size(max(larger))}"
            what = f"{_BUSY}: calls wait to begin, whatever they carry"
            yield Cause(OTHERS, what, _BUSY_STEP, evidence=f"{sizes} take the same time")
            return
