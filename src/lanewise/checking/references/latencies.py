"""Latencies where no model predicts them: compared with the same copy in other rows, and of other GPUs."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from functools import lru_cache

from lanewise.checking.expectation import expectation
from lanewise.checking.references.lines import uses_rdma
from lanewise.checking.references.parts import FASTEST_LINKS
from lanewise.checking.symptom import name_of_test, row_devices
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.figure_words import VERSION
from lanewise.results.observation import Observation

# A time of one call, of a copy and of a collective.
TIMES = ("latency", "time")
# Tools whose mean is the time of one message after another, however long they run.
_OF_MESSAGES = ("sockperf", "qperf", "netperf", "perftest", "OSU")
# Programs time the same copy differently, up to this many times. A socket link on the way adds less than a
# microsecond to the one or two of a copy to host memory.
_LATE = 3.0
# Small messages of other sizes too: 4 KiB more take 33 us at 1 Gb/s and 3.3 at 10, a round trip of sockets 30 and more.
_LATE_OF_SIZES = 10.0
# The time of one collective of one size that somebody typed in twice: as its rate is (`collectives`, 0.75).
_LATE_COLLECTIVE = 1 / 0.75
# A time of so many seconds is of a piece of work, not of one access.
_NO_LATENCY = 0.1
FROM_HOST_MEMORY = "the same message from host memory"
# Small writes of peers last 0.36 to 3.5 us on 23 of the 25 machines of data/evidence that have them (7 and 10 us on the
# two oldest), through host memory 10 to 29 us (46 under Windows, a kept question); twice that is slow.
# Shown as expected are the medians of both.
_FINE_PEERS, _FINE_STAGED, _SLOW_PEERS = 4e-6, 30e-6, 90e-6
_MEDIAN_PEERS, _MEDIAN_STAGED, _MEDIAN_NETWORK = 1.4e-6, 16.5e-6, 1.9e-6
# RDMA of small messages takes 0.9 to 3.4 us over InfiniBand, Slingshot and Aries, 40 over a busy Ethernet (kept
# questions); ten times what is fine leaves room for long routes, EFA and cores that sleep.
_FINE_NETWORK, _SLOW_RDMA = 5e-6, 50e-6
# A step of a collective of one GPU a host takes 20 us by RDMA, 46 to 80 over sockets and 177 between two instances of a
# cloud (five kept questions); 0.5 ms and more is a wait for a timer or a core.
_STEP, _SLOW_STEP = 60e-6, 0.5e-3
# GPUDirect adds 1 to 4 us to RDMA's latency; five times that of host memory is a copy by the driver (19.7 us for 3.3
# without GDRCopy, the same kept questions).
_OF_HOST = 5.0
_SMALL, _RDMA_LATENCY = 4096, re.compile(r"\b(?:read|write|send|atomic)_lat\b", re.IGNORECASE)
# A size of a message that is not small, in a row's name.
_LONG = re.compile(r"\d ?[MG](?:i?B|bytes?)?\b")
# A commit by the first letters of its hash.
_COMMIT = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
# What a time of a row typed in is of, where its name says that: a statistic, a part of a request, no copy at all.
_KIND_OF_TIME = re.compile(
    r"\b(?:mean|average|avg|median|p\d{2}(?:\.\d+)?|\d{2}(?:\.\d+)?(?:th)? ?(?:percentile|%)|max(?:imum)?|min(?:imum)?|"
    r"tail|worst|best|ttft|tpot|itl|e2el?|first token|per token|end[ -]to[ -]end|launch\w*|context creation|"
    r"init(?:iali[sz]\w+)?|start-?up|first call|alloc\w*|malloc|synchron\w*|compil\w*|warm-?up)\b", re.IGNORECASE,
)  # fmt: skip
# What a call of less (B) counts is its start.
_LEAST_OF_CALL = 10**6
# Of so many other GPUs the median says what such a copy takes.
_LEAST_OTHERS = 2


def is_time(row: Observation) -> bool:
    """Whether a row is the time of one call or message: of tools of networks their mean."""
    tool = row.how.get("tool", "")
    return row.metric in TIMES or (row.metric == "latency_mean" and row.path == "network" and tool in _OF_MESSAGES)


def slower_than_others(result: PathResult, between: Sequence[Observation], rows: Sequence[Observation]) -> PathResult:
    """The result of a latency, slow if it is far above that of the same copy in another row or of other GPUs.

    `between`: those of all `rows` that have the same ends.
    """
    row = result.row
    best, limit = _same_copy(row, between), "the same copy in another row"
    small = 0 < row.settings.get("bytes", 0) <= _SMALL  # of which two differ as latencies do
    whole = (row.metric == "time" and not small) or (row.value or 0.0) >= _NO_LATENCY
    late_by = _LATE_COLLECTIVE if whole and row.how.get("tool") == "typed in" else _LATE
    if (version := _of_another_version(row, between)) and row.value and row.value > _LATE_COLLECTIVE * version:
        best, limit, late_by = version, "the same by another version", _LATE_COLLECTIVE
    if not best or row.value is None or row.value <= late_by * best:
        best, limit, late_by = _of_small_sizes(row, between), "small messages between the same ends", _LATE_OF_SIZES
    if not best or row.value is None or row.value <= late_by * best:
        best, limit, late_by = _of_other_gpus(row, rows), "the same copy of the other GPUs", _LATE
    if row.path == "network" and "gpu" in row.flow and not best:
        best, limit, late_by = _of_host_memory(row, rows), FROM_HOST_MEMORY, _OF_HOST
    if not best or row.value is None or row.value <= late_by * best:
        return result
    expected = expectation(row, basis="same path", value=best, limit=limit).expected
    return PathResult(row, expected, TOLERANCES["same path"], Verdict.SLOW, None, late_by * best)


def _of_another_version(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency of the same program in another version, as the names of rows typed in tell; 0 if none."""
    if row.how.get("tool") != "typed in" or row.metric != "latency":
        return 0.0
    alike = [
        each.value for each in rows
        if each.value and each.metric == row.metric and each.settings == row.settings and _method(each) == _method(row)
        and each.scenario != row.scenario and _without_version(each.scenario) == _without_version(row.scenario)
    ]  # fmt: skip
    return min(alike, default=0.0)


@lru_cache(maxsize=2**12)
def _without_version(name: str) -> str:
    """What a row is called, without commits, versions, before and after."""
    return " ".join(VERSION.sub(" ", _COMMIT.sub(" ", name)).lower().split())


def is_median_of_a_network(row: Observation) -> bool:
    """Whether a row is the median latency of a tool that measures RDMA alone."""
    return row.metric == "latency_p50" and row.how.get("tool") == "perftest"


def of_small_messages(result: PathResult) -> PathResult:
    """The result of a latency typed in, or perftest's median, by what such small messages take on other machines."""
    row = result.row
    small = is_median_of_a_network(row) and row.settings.get("bytes", 0) <= _SMALL and row.flow.count("->") == 1
    if result.verdict is not Verdict.UNKNOWN or not (small or _is_small_message(row)) or not row.value:
        return result
    if row.path.startswith("peer"):
        staged = row.how.get("p2p") == "off"
        median, fine = (_MEDIAN_STAGED, _FINE_STAGED) if staged else (_MEDIAN_PEERS, _FINE_PEERS)
        slow, limit = _SLOW_PEERS, "small copies between GPUs"
    elif row.path == "network" and "gpu" not in row.flow:
        rdma = uses_rdma(row) or _RDMA_LATENCY.search(row.scenario) is not None
        median, fine, limit = _MEDIAN_NETWORK, _FINE_NETWORK, "small messages of RDMA"
        slow = _SLOW_RDMA if rdma else math.inf
    else:
        return result
    verdict = Verdict.OK if row.value <= fine else Verdict.SLOW if slow < row.value < _NO_LATENCY else Verdict.UNKNOWN
    if verdict is Verdict.UNKNOWN:
        return result
    expected = expectation(row, basis="latency", value=median, limit=f"{limit} on other machines").expected
    return PathResult(row, expected, TOLERANCES["latency"], verdict, None, slow if verdict is Verdict.SLOW else fine)


def of_small_collectives(result: PathResult) -> PathResult:
    """The result of the typed time of a small collective, slow if its steps wait for something."""
    row, ranks = result.row, result.row.settings.get("ranks", 0)
    small = row.metric in TIMES and row.path in ("network", "peer") and 0 < row.settings.get("bytes", 0) <= _SMALL
    steps = 2 * (ranks - 1)  # of a ring (nccl-tests, doc/PERFORMANCE.md); a tree has no more
    if result.verdict is not Verdict.UNKNOWN or not small or steps < 1 or (row.value or 0.0) <= steps * _SLOW_STEP:
        return result
    expected = expectation(row, basis="same path", value=steps * _STEP, limit="a step over TCP sockets").expected
    return PathResult(row, expected, TOLERANCES["same path"], Verdict.SLOW, None, steps * _SLOW_STEP)


def faster_than_any_link(result: PathResult) -> PathResult:
    """The result of the typed time of a collective, too fast if its bytes by that time are more than GPUs exchange."""
    row, size = result.row, result.row.settings.get("bytes", 0)
    collective = row.metric == "time" and row.path in ("peer", "collective", "network") and "," in row.flow
    if result.verdict is not Verdict.UNKNOWN or not collective or size < _LEAST_OF_CALL or not row.value:
        return result
    least = size / FASTEST_LINKS
    if row.value >= least:
        return result
    limit = "the NVLinks of the fastest GPUs, both ways"
    expected = expectation(row, basis="parts", value=least, limit=limit).expected
    return PathResult(row, expected, TOLERANCES["parts"], Verdict.FAST, least, None)


def _same_copy(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency of `rows` between the same ends, for P2P also that through host memory; 0 if none."""
    alike = [each for each in rows if each.metric == row.metric]
    if row.how.get("tool") == "typed in":
        alike = [each for each in alike if _kind_of_time(each.scenario) == _kind_of_time(row.scenario)]
    if row.metric not in TIMES:  # of a tool's tests each has a latency of its own
        alike = [each for each in alike if name_of_test(each) == name_of_test(row)]
    # Reads cross the way twice, so that they are compared with reads.
    return min(
        (each.value for each in alike
         if each.value and each.settings == row.settings and (_method(each) == _method(row)
         or (row.how.get("p2p"), each.how.get("p2p")) == ("on", "off"))),
        default=0.0,
    )  # fmt: skip


@lru_cache(maxsize=2**12)
def _kind_of_time(name: str) -> frozenset[str]:
    """The words of a name that say what of a request or call its time is."""
    return frozenset(word.lower() for word in _KIND_OF_TIME.findall(name))


def _of_small_sizes(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency of small messages typed in between the same ends, of this size or not; 0 if none."""
    if row.path != "network" or not _is_small_message(row):
        return 0.0
    return min((each.value for each in rows if each.value and _is_small_message(each)
                and _method(each) == _method(row) and _but_size(each) == _but_size(row)), default=0.0)  # fmt: skip


def _is_small_message(row: Observation) -> bool:
    """Whether a row typed in is the latency of one message of few bytes, or of a size that nobody states."""
    lone = row.flow.count("->") == 1 and row.how.get("tool") == "typed in" and not _LONG.search(row.scenario)
    return lone and row.metric == "latency" and row.settings.get("bytes", 0) <= _SMALL


def _but_size(row: Observation) -> dict[str, int]:
    return {key: value for key, value in row.settings.items() if key != "bytes"}


def _of_other_gpus(row: Observation, rows: Sequence[Observation]) -> float:
    """The median latency of the same copy between host memory and other GPUs, by the same program; 0 for too few."""
    if row.path not in ("host to device", "device to host"):
        return 0.0
    others: dict[frozenset[str], float] = {}
    for each in rows:
        if each.path != row.path or each.metric != row.metric or each.settings != row.settings or not each.value:
            continue
        if (pair := row_devices(each)) != row_devices(row) and each.how.get("tool") == row.how.get("tool"):
            others[pair] = min(each.value, others.get(pair, each.value))
    return statistics.median(others.values()) if len(others) >= _LEAST_OTHERS else 0.0


def _of_host_memory(row: Observation, rows: Sequence[Observation]) -> float:
    """The least latency of the same small message from host memory over a network; 0 if none."""
    return min(
        (each.value for each in rows
         if each.path == row.path and each.metric == row.metric and each.value and "gpu" not in each.flow
         and each.settings == row.settings and each.how.get("tool") == row.how.get("tool")
         and row.settings.get("bytes", 0) <= _SMALL),
        default=0.0,
    )  # fmt: skip


def _method(row: Observation) -> tuple[str | None, ...]:
    """How a copy went: the flows with their marks (read, sm), and P2P on or off."""
    return row.how.get("flows"), row.how.get("p2p")
