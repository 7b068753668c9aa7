"""References of rows that nothing but their like can judge: counts a second, and copies within a host's memory.

Figures of one kind that somebody lays side by side are a question about the lower one. Which kernel read or wrote the
memory matters (STREAM's Triad moves other bytes than a read), so that kernels are compared with themselves alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from lanewise.checking.references.by_design import less_by_design
from lanewise.checking.references.parts import Reference, best_of, of_another_row, of_other_rows
from lanewise.checking.symptom import line_of
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample

OF_FEWER_GPUS = "of these GPUs in"
HOST_MEMORY = "host memory"
COUNTS = "iops"
# As for other rows of one path (TOLERANCES): repeated runs of STREAM and of Memory Latency Checker's local cells differ
# by a few per cent (90.9 and 90.9 GB/s, cncf/cnf-testbed#129).
_OF_LIKE = 0.75
# One program on one machine repeats its counts within a few per cent: a setting that brings 15 % more was missing.
OF_SETTING = 0.87
_SWITCH = re.compile(r"(?:with|without|on|off|enabled|disabled|no|default)$|-{1,2}[a-z][\w-]+|\w+=\w+", re.IGNORECASE)
_MOST_LIKE = 100
# Each GPU that trains has a part of the samples: that more of them count no more is no gain at all.
_OF_TRAINING, _TRAINING = 1.0, re.compile(r"\btrain\w*|\bepochs?\b|\bfine-?tun\w*", re.IGNORECASE)
# Two sockets reach each other's memory alike (34.5 and 34.4 GB/s, the same thread); half leaves room for a busy link.
_OF_OTHER_WAY = 0.5
# An ordinary store reads the line before it writes it: of stores that pass the caches by it keeps half.
_OF_NON_TEMPORAL = 0.45
_NON_TEMPORAL = re.compile(
    r"\bnon-?temporal\b|\bnt(?:[ -]?stores?)?\b|\bmovnt\w*|\bstream(?:ing)?(?: stores?)?\b", re.I
)
# By which instruction an operation writes is the program's choice: the bytes are the same.
_OPERATIONS, _STORES = frozenset(("memset", "memcpy", "memmove", "fill", "copy", "triad", "scale", "add")), "store"
# So do how much is asked for at once, how large a model is, and which part of the work is counted.
_WORK = re.compile(
    r"\b\d{1,5} ?(?:threads?|jobs?|clients?|streams?|connections?|cores?|ranks?|users?|workers?|proc\w*|gpus?)\b|"
    r"\b(?:concurren\w*|batch\w*|bs|threads?|clients?|users?|qps|rate|input|output|context|isl|osl) ?[=:]? ?\d{1,6}\b|"
    r"\b\d{1,4}(?:\.\d)?b\b|\b(?:prefill|decode|prompt|generat\w*|encod\w*|train\w*|infer\w*|ttft)\b|\b(?:pp|tg)\d+\b|"
    r"\b(?:peak|p\d{2}|median|soak|(?:output|input|total)(?= tok\w*))\b|"
    r"(?<!\S)/\w+|\b(?:(?:mx|nv)?fp|bf|nf|b?float|u?int|i?q)\d{1,2}\w*\b|\bw(?:4|8|16)(?:a\d{1,2})?\b|"
    r"\b(?:[2-8]|16)[- ]?bits?\b|@ ?d\d{1,7}\b|\b\d{1,4}k ?(?:context|ctx|tokens?|prompt)\b", re.IGNORECASE,
)  # fmt: skip
_KERNEL = re.compile(
    r"\b(copy|scale|add|triad|dot|mul|reads?|writes?|memcpy|memset|memmove|random|rand|seq\w*|sequential|ntstore|stores?|fill|"
    r"[1-4]:1)\b",
    re.IGNORECASE,
)
# Lines that carry less one way than the other.
_UNEVEN = re.compile(
    r"internet|cloud|\bwan\b|\bisp\b|speed ?test|wi-?fi|wlan|wireless|\blte\b|\b[45]g\b|dsl|modem|starlink|laptop|"
    r"phone",
    re.IGNORECASE,
)
_NODE = re.compile(r"host\d*:(\d+)->host\d*:(\d+)$")


def kinds_side_by_side(rows: Sequence[Observation]) -> dict[str, list[Observation]]:
    """The rows that only their like can judge, by what they must share: of many the fastest."""
    kinds: dict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if side_by_side(row):
            kinds[repr(_kind(row))].append(row)
    return {kind: sorted(like, key=lambda each: -(each.value or 0.0))[:_MOST_LIKE] for kind, like in kinds.items()}


def of_like(row: Observation, kinds: Mapping[str, Sequence[Observation]]) -> Iterator[Reference]:
    """The best of the rows of the same thing (`kinds_side_by_side`), and of the other NUMA nodes of a host."""
    if not side_by_side(row):
        return
    like = [each for each in kinds.get(repr(_kind(row)), ()) if each is not row and not less_by_design(row, each)]
    best = best_of(_nearest(row, [each for each in like if each.flow == row.flow]))
    if best is not None and best.settings == row.settings:
        share = OF_SETTING if row.metric == COUNTS and _one_word_apart(row, best) else _OF_LIKE
        if row.path == HOST_MEMORY and _NON_TEMPORAL.search(best.scenario) and not _NON_TEMPORAL.search(row.scenario):
            share = _OF_NON_TEMPORAL
        yield of_another_row(best.value or 0.0, share, f"'{best.scenario}'")
    yield from _other_nodes(row, like)


def _one_word_apart(row: Observation, other: Observation) -> bool:
    """Whether the names of two rows differ in one switch alone: with and without, --flag, key=value."""
    mine, theirs = row.scenario.split(), other.scenario.split()
    pairs = [word for word in mine if word not in theirs], [word for word in theirs if word not in mine]
    words = [word.strip(",;()") for words in pairs for word in words]
    return bool(words) and max(map(len, pairs)) == 1 and all(map(_SWITCH.match, words))


def of_fewer_gpus(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """A count a second of several GPUs beside that of fewer of them on the same work: more are not slower."""
    gpus = _gpus(row)
    if row.metric != COUNTS or len(gpus) < 2:
        return
    like = [
        each for each in rows
        if each.metric == row.metric and each.value and each.display_unit == row.display_unit
        and 0 < len(_gpus(each)) < len(gpus) and _gpus(each) <= gpus
        and each.how.get("tool") == row.how.get("tool") and _model(each) == _model(row)
    ]  # fmt: skip
    if (best := best_of(like)) is not None:
        share = _OF_TRAINING if _TRAINING.search(row.scenario) else _OF_LIKE
        yield of_another_row(best.value or 0.0, share, f"{len(_gpus(best))} {OF_FEWER_GPUS} '{best.scenario}'")


def _gpus(row: Observation) -> frozenset[str]:
    """The GPUs of a row that works within their memories; none of rows that copy from or to something else."""
    return _gpus_of(row.how.get("flows", row.flow))


@lru_cache(maxsize=2**12)
def _gpus_of(flows: str) -> frozenset[str]:
    ends = [end.strip() for flow in flows.split(",") for end in flow.split("->")]
    return frozenset(ends) if all(re.fullmatch(r"gpu\d+", end) for end in ends) else frozenset()


def _model(row: Observation) -> frozenset[str]:
    """What a row's name says of the work, but for the number of GPUs."""
    return frozenset(word for word in kind_of_work(row)[1] if not word.endswith(("gpu", "gpus")))


def _nearest(row: Observation, like: Sequence[Observation]) -> Sequence[Observation]:
    """Of counts the rows whose names differ in one thing, if any do: of a table of two conditions one changes."""
    clauses = [clause.strip() for clause in row.scenario.split(",")]
    if row.metric != COUNTS or len(clauses) < 2:
        return like
    in_one = [
        each for each in like
        if sum(a != b.strip() for a, b in zip(clauses, each.scenario.split(","), strict=False)) == 1
        and each.scenario.count(",") < len(clauses)  # what a name leaves out may be the same
    ]  # fmt: skip
    return in_one or like


def _other_nodes(row: Observation, like: Sequence[Observation]) -> Iterator[Reference]:
    """Memory of a node read from itself compared with that of other nodes, and one way between two with the other."""
    ends = _NODE.match(row.flow)
    if ends is None:
        return
    local = ends[1] == ends[2]
    if not local and row.how.get("tool") not in ("MLC", "typed in"):
        # A matrix or table has far memory by design; a command that binds to it may be a mistake.
        near = [each for each in like if each.flow.endswith(f"host0:{ends[2]}") and _is_local(each)]
        if (best := best_of(near)) is not None:
            yield of_another_row(best.value or 0.0, _OF_LIKE, f"{best.flow}, the memory of those CPUs' own node")
    others = [each for each in like if each.flow != row.flow and (match := _NODE.match(each.flow)) and match]
    others = [each for each in others if _is_local(each) is local and each.scenario == row.scenario and each.value]
    best = best_of(others)
    if best is not None and (local or len(others) == 1):
        yield of_other_rows(best.value or 0.0, _OF_LIKE if local else _OF_OTHER_WAY, best.flow)


def _is_local(row: Observation) -> bool:
    match = _NODE.match(row.flow)
    return match is not None and match[1] == match[2]


def kinds_of_ends(row: Observation | Sample) -> tuple[str, ...]:
    """The kinds of the devices of a row's flow, 'host', 'gpu': over a network between hosts in either direction."""
    ends = [re.sub(r"\d+$", "", end.strip()) for end in re.split(r"->|,", row.flow)]
    return tuple(ends if row.path != "network" or "gpu" in ends else sorted(ends))


def unlike(row: Observation, other: Observation) -> bool:
    """Whether two devices or directions differ on a healthy machine: models of drives, ways to the internet."""
    if row.path == "storage":
        return len({each.how.get("device", "") for each in (row, other)} - {""}) > 1
    both_ways = row.path == "network" and set(row.flow.split("->")) == set(other.flow.split("->"))
    return both_ways and _UNEVEN.search(f"{row.flow} {row.scenario} {other.scenario}") is not None


def side_by_side(row: Observation) -> bool:
    """Whether only its like can judge a row: counts a second (IOPS with a size are a rate), and memory of a host."""
    # A tool's own IOPS of storage stand beside the rate that is judged.
    own = row.path == "storage" and row.how.get("tool") not in ("typed in", "table")
    counts = row.metric == COUNTS and not row.settings.get("bytes") and not own
    return counts or (row.path == HOST_MEMORY and row.metric == "goodput")


def kind_of_work(row: Observation) -> tuple[frozenset[str], frozenset[str]]:
    """Which kernel a row's name says, and how much of what work."""
    return _named_work(row.scenario)


@lru_cache(maxsize=2**14)
def _named_work(name: str) -> tuple[frozenset[str], frozenset[str]]:
    kernel = frozenset(word.lower().rstrip("s") for word in _KERNEL.findall(name))
    if kernel & _OPERATIONS:
        kernel = frozenset(word for word in kernel if not word.endswith(_STORES))
    work = frozenset(re.sub(r"\W", "", word.lower()) for word in _WORK.findall(name))
    return kernel, work


def _kind(row: Observation) -> tuple[object, ...]:
    """What rows must share: how they were measured, with what settings, by which kernel."""
    how = tuple(row.how.get(key, "") for key in ("tool", "pattern", "mode"))
    note = frozenset(re.findall(r"\w+", row.how.get("note", "").lower()))
    kernel_and_work = map(sorted, kind_of_work(row))
    counted = row.display_unit if row.metric == COUNTS else ""  # requests are not tokens
    what = (row.metric, counted, row.path)
    return *what, how, sorted(row.settings.items()), line_of(row), sorted(note), *kernel_and_work
