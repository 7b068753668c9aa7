"""Rows that nothing judges: why, in plain words, what would settle it, and where to look first if they are too slow."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lanewise.checking.cause import Cause
from lanewise.checking.causes.commonest import COMMONEST, kind_of_path
from lanewise.checking.collective_rows import MISFIT
from lanewise.checking.expectation import HOST_MEMORY, NOTHING_DESCRIBED, too_short
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.notes import OTHER_GPU
from lanewise.checking.references.gpu_memory import DIAGONALS, GPU_MEMORY
from lanewise.checking.references.judged import COLLECTIVE, NO_COLLECTIVES, NOT_IN_CATALOGUE, UNNAMED
from lanewise.checking.references.side_by_side import COUNTS
from lanewise.checking.references.stated_limits import NO_MEASUREMENT
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_EARLIER = "compare with an earlier run (--expect EARLIER.json)"
_DESCRIBE = f"describe the machine with its parts (--system machine.yaml), or {_EARLIER}"
_NAME_THE_GPU = (
    "add what names the GPUs to the files (nvidia-smi -L, rocm-smi --showproductname; gpus: of figures typed in), or "
    "describe the machine with its parts (--system machine.yaml)"
)
# A file of facts alone goes beside what a tool printed (docs/guides/check.md).
_FACTS = "echo '{{lanewise-rows: 1, stated: {{{facts}}}}}' > facts.yaml, and check both files"
_LINE = f"state the network's rate: {_FACTS.format(facts='line: 100 Gb/s')}; or add ibstat, or describe the hosts"
_LISTS = (
    "add nvidia-smi -L, nvidia-smi topo -m and lscpu of that machine to the files: then it is predicted; or keep a run "
    "that was fine (lanewise check FINE.txt -o fine.json) and compare with it (--expect fine.json)"
)
_LINKS_OF_OTHERS = (
    f"state what joins them: {_FACTS.format(facts='slot: gen4 x16, bridge: none')} (bridge: none where no xGMI joins "
    "them); or describe the machine with its parts (--system machine.yaml)"
)
_LINKS_OF_PAIR = "add nvidia-smi topo -m and nvidia-smi nvlink -s: they show which links join the GPUs"
_READ_LINK = "read the link while it copies: nvidia-smi -q | grep -A10 'GPU Link Info'; sudo lspci -vv | grep LnkSta:"
_LONGER = "measure long requests, several at once (1 MiB, depth 32; threads), and compare again"
_OF_OTHERS = re.compile(r"\b(?:amd|instinct|radeon|mi\d{2,3}x?|intel|arc|gaudi|ascend|mthreads)\b", re.IGNORECASE)
_DRIVE = re.compile(r"(?:/dev/)?(?:nvme|sd[a-z]|hd[a-z]|mmcblk|ssd|hdd|emmc|disk|drive|optane)[\w-]*", re.IGNORECASE)
# A machine has many kinds of path; the first ones show what is meant.
_MOST_KINDS = 2


@dataclass(frozen=True, slots=True)
class Unjudged:
    """`why` a row has no verdict, in a clause, and the `step` that would give it one."""

    why: str
    step: str


@dataclass(frozen=True, slots=True)
class LookFirst:
    """The commonest causes of a `kind` of path, for `rows` of which nobody knows whether they are slow."""

    kind: str
    rows: tuple[Observation, ...]
    causes: tuple[Cause, ...]


def look_first(rows: Iterable[Observation], posted: PostedFacts) -> tuple[LookFirst, ...]:
    """The commonest causes of the first kinds of path among rows that nothing judges."""
    kinds: dict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if row.value is not None:
            kinds[kind_of_path(row, posted.title("gpu"))].append(row)
    known = [kind for kind in kinds if kind in COMMONEST][:_MOST_KINDS]
    return tuple(LookFirst(kind, tuple(kinds[kind]), tuple(_possible(kind, kinds[kind]))) for kind in known)


def _possible(kind: str, rows: Sequence[Observation]) -> Iterator[Cause]:
    """The commonest causes of a kind, but for peer copies that are off where rows have more than PCIe carries."""
    beyond_pcie = max(row.value or 0.0 for row in rows) > raw_rate(6, 16)
    return (cause for cause in COMMONEST[kind] if not (beyond_pcie and cause.key == ("peers",)))


def unjudged(result: PathResult, posted: PostedFacts) -> Unjudged:
    """Why a row that failed or is unknown was not judged."""
    row, note = result.row, result.note
    if "no peer access" in note:
        return Unjudged(note, "nvidia-smi topo -p2p r; look at ACS and IOMMU (lanewise check without files reads them)")
    if result.verdict is Verdict.FAILED:
        return Unjudged(note, "lanewise doctor")
    if note.startswith(OTHER_GPU):
        step = "lanewise discover -o machine.yaml on the machine that was measured; check with --system machine.yaml"
        return Unjudged(note, step)
    if note.startswith(MISFIT):
        step = "describe the machines that ran it (--system), or say which GPU is which (--as gpu0=DEVICE)"
        return Unjudged(note, step)
    if note in (NOTHING_DESCRIBED, NO_COLLECTIVES):
        return _undescribed(row, posted)
    if note == NO_MEASUREMENT:
        return Unjudged(note, "give the row another name if it was measured")
    return Unjudged(note or "nothing is known of it", _step(result))


def _step(result: PathResult) -> str:
    """What to do about a row whose note says why it could not be judged."""
    row, note = result.row, result.note
    if row.metric == COLLECTIVE:
        return _LISTS
    if row.value is None:
        return "measure longer (--seconds, or a larger --size)"
    if note.startswith("unknown device") and row.path == "network":
        return "describe both hosts and the network, or name the card that the data leaves by (--as host1=nic0)"
    if note.startswith("unknown device"):
        return "say which device it is (--as WORD=DEVICE), or name the machine that has it (--system machine.yaml)"
    if "are not judged" in note:
        device = next((end for end in row.flow.split("->") if not end.startswith("host")), "it")
        return (
            f"write the part of {device} and the speed of its link in the description (lanewise parts, lspci -vv), or "
            "keep a run that was fine (-o fine.json) and compare with it (--expect fine.json)"
        )
    if note.startswith(NOT_IN_CATALOGUE):
        return "write a part (lanewise parts template), name it in a description (--system), or --expect EARLIER.json"
    if note.startswith(UNNAMED):
        return _NAME_THE_GPU
    if "too little to call it fine" in note:
        return _between(row)
    return _DESCRIBE


def _between(row: Observation) -> str:
    """What tells whether a rate between slow and fine is slow."""
    if row.path == "storage":
        return f"{_LONGER}; read the drive's link: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'"
    if row.path.startswith("peer"):
        return _LINKS_OF_PAIR
    return _READ_LINK if "gpu" in row.flow and row.path != "network" else _DESCRIBE


def _undescribed(row: Observation, posted: PostedFacts) -> Unjudged:
    """Why a row is not judged where nothing says what the machine is: what would have to be known, by its path."""
    hosts = row.settings.get("hosts", 1)
    if row.metric == COLLECTIVE and hosts < 2 and row.path != "network":
        why = "the rate is possible; what it should be depends on what joins the GPUs, which nobody described"
        return Unjudged(why, _LISTS if _of_nvidia(posted) else _LINKS_OF_OTHERS)
    if row.path == "network" or hosts > 1:
        if row.how.get("line") or posted.stated("line") or posted.stated("network cards"):
            return Unjudged("less than the line carries, and nothing says what else limits it", _DESCRIBE)
        return Unjudged("nothing says what the network between these hosts carries", _LINE)
    if row.path == "storage":
        return _of_storage(row)
    if "gpu" in row.flow:
        return _of_gpus(row, posted)
    if not row.path:
        step = (
            "write beside it what you expect, or the same with one thing changed; or type it in with its flow "
            "(lanewise-rows: 1)"
        )
        return Unjudged("the text says nothing that it can be compared with", step)
    return Unjudged("nothing says what the machine is", _DESCRIBE)


def _of_nvidia(posted: PostedFacts) -> bool:
    """Whether no GPU has another maker's name: NVIDIA's tools list those."""
    return not any(_OF_OTHERS.search(title) for title in posted.devices.values())


def _of_storage(row: Observation) -> Unjudged:
    device = next((end.strip() for end in row.flow.split("->") if not re.match(r"host|gpu|cpu", end.strip())), "it")
    if row.how.get("device"):
        step = "write what its data sheet says (rated: 7 GB/s with figures typed in)"
        return Unjudged(f"no figures are known of '{row.how['device']}'", f"{step}, or {_EARLIER}")
    if _DRIVE.fullmatch(device):
        step = "name its model: add nvme list, or device: Samsung SSD 990 PRO 2TB with figures typed in"
        return Unjudged("nothing says which model the drive is", step)
    step = "add a run on one of its drives alone, or what it is rated at (rated: 7 GB/s with figures typed in)"
    return Unjudged("nothing says what the volume or file system lies on", f"{step}; or {_EARLIER}")


def _of_gpus(row: Observation, posted: PostedFacts) -> Unjudged:
    gpu = re.search(r"\bgpu\d*", row.flow)
    title = posted.title(gpu[0]) if gpu else ""
    if not title:
        return Unjudged("nothing names the GPU", _NAME_THE_GPU)
    if row.path.startswith("peer"):
        return Unjudged(f"nothing says how these {title} are joined", _LINKS_OF_PAIR)
    return Unjudged(f"nothing is known of such copies of {title}", _DESCRIBE)


def aside(row: Observation) -> Unjudged:
    """Why a row is left aside: nothing known here gives such a value."""
    of_requests = row.metric == COUNTS and (row.display_unit == "IOPS" or row.path == "storage")
    if row.unit == "1/s" and not of_requests:
        counted = "a second" if row.display_unit == "1/s" else row.display_unit
        step = (
            f"type in what you expect (expected: 25 {row.display_unit}), or the same program with one thing changed: a "
            "setting, a version, fewer GPUs"
        )
        return Unjudged(f"nothing says how many {counted} there should be", step)
    if of_requests:
        step = "state the size of a request (bytes: 4k with figures typed in), or measure long requests as well"
        return Unjudged("nothing says how many requests a second there should be", step)
    if row.unit == "s":
        step = f"add the same with one thing changed (another program, peer copies off), or {_EARLIER}"
        return Unjudged("nothing says how long it should take", step)
    if row.path == HOST_MEMORY:
        step = (
            "state the modules (stated: memory modules: 8 x DDR5-4800) or their rate (memory rate: 307 GB/s), "
            "or add the rate of another NUMA node"
        )
        return Unjudged("nothing says what the memory of this host carries", step)
    if row.path == GPU_MEMORY and row.how.get("tool", "").startswith(DIAGONALS):
        return Unjudged("a copy within one GPU says nothing of a path", "measure the GPU's memory itself (BabelStream)")
    if row.path == GPU_MEMORY:
        return Unjudged("nothing says what this GPU's memory carries", "name the GPU (gpus: NVIDIA H100 80GB HBM3)")
    if too_short(row):
        step = _LONGER if row.path == "storage" else "measure 64 MiB and more as well"
        return Unjudged("short requests show what each of them costs, not what the path carries", step)
    return Unjudged("nothing known here gives such a value", _EARLIER)


def aside_notes(rows: Sequence[Observation], *, alone: bool) -> tuple[str, ...]:
    """What was left aside and why: with the next step where no row is judged (`alone`), else in one line."""
    groups: dict[Unjudged, list[Observation]] = defaultdict(list)
    for row in rows:
        groups[aside(row)].append(row)
    if not alone:
        reasons = "; ".join(dict.fromkeys(each.why for each in groups))
        return (f"{_rows(rows)} left aside: {reasons}",) if rows else ()
    return tuple(f"{_rows(group)} left aside: {each.why}. To know: {each.step}" for each, group in groups.items())


def _rows(rows: Sequence[Observation]) -> str:
    return f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
