"""Causes that typed rows show which differ in one thing alone: a setting, threads, the number of rails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import MTU
from lanewise.checking.references.lines import ports_of_bond, uses_rdma
from lanewise.checking.references.one_setting import better_by_one_setting, is_amount, one_setting
from lanewise.checking.references.rails import ADDED, AT_ONCE, lesser_line_filled, over_fewer, parts_of_the_line, rails
from lanewise.checking.references.side_by_side import COUNTS
from lanewise.checking.references.texts import OF_FEWER_THREADS, of_plain_text, rate_of_each, threads_of
from lanewise.checking.symptom import RowSymptom, line_of, quantity_in, value_text
from lanewise.results.observation import Observation

_NUMBERED = re.compile(r"\b([A-Za-z]{2,}) (\d{1,6})\b(?![.\w%/])")
# Words before the number of one of several things, not of a setting; an MTU is a cause of its own.
_ONE_OF_SEVERAL = re.compile(
    r"mtu|numa|servers?|trays?|racks?|switch|pairs?|slots?|machines?|kernels?|drivers?|release|gen\w*|board|chips?|dies?|"
    r"links?|lanes?|groups?|zones?|regions?|tests?|lines?|models?|table|figure|case|of|at|by|for|after|and|to|from|in|the",
    re.IGNORECASE,
)
_STEP = "change only that and measure again, twice each way"
# Linux' CFS throttles a group that has used its quota (kernel, scheduler/sched-bwc): a thread that the others wait for
# at a barrier may be one of the throttled (ollama/ollama#17916: nr_throttled 3115 of 4567).
_THREADS_STEP = (
    "nproc in the container; cat /sys/fs/cgroup/cpu.max and cpu.stat (nr_throttled); as many threads as cores, no more"
)
# Words of a row that went over several cards, which share no slot.
_SEVERAL_CARDS = re.compile(r"\b(?:cards|nics|adapters|hcas)\b", re.IGNORECASE)
_TWO_SOCKETS = re.compile(r"\b(?:2 ?x|two|dual|2(?= (?:amd|intel|epyc|xeon)))\b", re.IGNORECASE)


def setting_that_differs(symptom: RowSymptom) -> Iterator[Cause]:
    """The only setting in which a faster row of the same path differs."""
    row = symptom.row
    faster = symptom.better(same_flow=True)
    best = better_by_one_setting(row, faster)
    if best is None:
        yield from _setting_of_its_name(row, faster)
        return
    key = one_setting(row, best)
    evidence = f"{key}={best.settings[key]} reached {value_text(best)}, all else alike"
    if key == "threads":
        yield Cause(("setting", key), _too_many(symptom, row.settings[key]), _THREADS_STEP, evidence=evidence)
    elif key == "mtu" and not uses_rdma(row):
        yield Cause(MTU.key, MTU.what, MTU.step, evidence=evidence)
    else:
        kind = ("mtu",) if key == "mtu" else ("setting", key)
        yield Cause(kind, f"the setting {key}={row.settings[key]}", _STEP, evidence=evidence)


def _setting_of_its_name(row: Observation, faster: Sequence[Observation]) -> Iterator[Cause]:
    """The setting in words (`tso: off` of figures typed in) in which alone the name of a faster row differs."""
    for other in faster if row.how.get("tool") == "typed in" else ():
        pairs = [pair for pair in zip(row.scenario.split(), other.scenario.split(), strict=False) if pair[0] != pair[1]]
        mine, theirs = pairs[0] if len(pairs) == 1 else ("", "")
        key = mine.partition("=")[0]
        alike = row.settings == other.settings and len(row.scenario.split()) == len(other.scenario.split())
        if alike and "=" in mine and theirs.startswith(f"{key}=") and not key.isupper() and not is_amount(key):
            evidence = f"{theirs} reached {value_text(other)}, all else alike"
            yield Cause(("setting", key), f"the setting {mine}", _STEP, evidence=evidence)
            return


def number_in_its_name(symptom: RowSymptom) -> Iterator[Cause]:
    """The number of a setting in which alone the name of a faster row differs: traffic class 0 in place of 224."""
    row = symptom.row
    for other in symptom.better(same_flow=True) if row.how.get("tool") == "typed in" else ():
        pairs = [pair for pair in zip(_NUMBERED.findall(row.scenario), _NUMBERED.findall(other.scenario), strict=False)
                 if pair[0] != pair[1]]  # fmt: skip
        alike = _NUMBERED.sub("", row.scenario) == _NUMBERED.sub("", other.scenario)
        if len(pairs) == 1 and alike and row.settings == other.settings and pairs[0][0][0] == pairs[0][1][0]:
            word, number = pairs[0][0]
            if not is_amount(word) and not _ONE_OF_SEVERAL.fullmatch(word):
                evidence = f"'{other.scenario}' reached {value_text(other)}"
                yield Cause(("setting", word.lower()), f"the setting {word} {number}", _STEP, evidence=evidence)
                return


def threads_of_a_text(symptom: RowSymptom) -> Iterator[Cause]:
    """More threads than a faster figure of a text has, where all else is alike."""
    row, limit = symptom.row, symptom.result.expected.limit
    if not of_plain_text(row) or row.metric != COUNTS:
        return
    threads, evidence = threads_of(row), ""
    if limit.endswith(OF_FEWER_THREADS):
        evidence = f"{limit.removesuffix(OF_FEWER_THREADS)}threads is faster"
    for other in symptom.better_rates():
        if limit == f"'{other.scenario}'" and 0 < threads_of(other) < threads and not rate_of_each(row):
            evidence = f"{threads_of(other)} threads reached {value_text(other)}"
    if evidence:
        yield Cause(("setting", "threads"), _too_many(symptom, threads), _THREADS_STEP, evidence=evidence)


def _too_many(symptom: RowSymptom, threads: int) -> str:
    """What to say of a number of threads, with the number of CPUs where it is stated and less."""
    if symptom.row.path == "storage":
        return f"{threads} threads: they wait for each other or for CPUs, or the drive seeks between their requests"
    stated = [re.match(r"\d+", each.value) for each in symptom.posted.stated("cpus")]
    least = min((int(match[0]) for match in stated if match), default=threads)
    cpus = f"{least} CPUs" if least < threads else "the CPUs that the program may use"
    return f"{threads} threads, more than {cpus}: they wait for each other, or a quota stops some of them"


def shared_by_rails(symptom: RowSymptom) -> Iterator[Cause]:
    """Several rails that are no faster than fewer: they share a card with its slot, or one alone is in use."""
    row = symptom.row
    best = over_fewer(row, (other.row for other in symptom.results))
    limit = symptom.result.expected.limit
    if best is None or not limit.endswith(f"in place of {rails(best)}"):
        return
    evidence = f"{rails(best)} of them reached {value_text(best)}"
    what = f"the {rails(row)} rails share a card and its slot, a switch or an uplink, which carries no more"
    step = "sudo lspci -tv: are they ports of one card? take one port each of two cards; LnkSta of each card"
    yield Cause(("shared", "network card"), what, step, evidence=evidence)
    what = "the choice of the rails: the library takes ports of one card, or sends all over one rail"
    step = "UCX_NET_DEVICES or NCCL_IB_HCA with one port of each card; UCX_LOG_LEVEL=info, NCCL_DEBUG=INFO"
    yield Cause(("setting",), what, step, evidence=evidence)


def shared_by_ports(symptom: RowSymptom) -> Iterator[Cause]:
    """The ports or cards of a line that bring hardly more than a part of them, which fills its own line."""
    row = symptom.row
    part = lesser_line_filled(row, symptom.results)
    if part is None or ports_of_bond(symptom.posted, quantity_in(line_of(row), "B/s")):
        return
    evidence = f"'{part.row.scenario}' fills {line_of(part.row)} ({value_text(part.row)})"
    step = "sudo lspci -tv and -vv: which bridge is above all ports, and LnkSta of each link on the way"
    uplink = Cause(
        ("uplink",), "all cards hang below one switch or bridge, whose link to the CPU carries no more", step,
        evidence=evidence,
    )  # fmt: skip
    what = "all ports are of one card, whose link has too few lanes or too low a generation for their sum"
    slot = Cause(("link", "network card"), what, step, evidence=evidence)
    yield from (uplink, slot) if _SEVERAL_CARDS.search(row.scenario) else (slot, uplink)


def away_from_their_cards(symptom: RowSymptom) -> Iterator[Cause]:
    """All cards of a host of two sockets at once are slow, one alone is fine: what crosses sockets shares their link.

    The memory of a program that nothing binds is where the scheduler put it; one card's data fits between the sockets.
    """
    row, cpus = symptom.row, " ".join(stated.value for stated in symptom.posted.stated("cpu"))
    alone = next(parts_of_the_line(row, symptom.results), None)
    if alone is None or "gpu" in row.flow or not (AT_ONCE.search(row.scenario) and _TWO_SOCKETS.search(cpus)):
        return
    if (row.value or 0.0) >= ADDED * (alone.row.value or 0.0):  # else one slot or uplink carries all
        what = "programs and their buffers on the socket away from their cards, so that all share the link between both"
        step = "cat /sys/class/infiniband/*/device/numa_node; numactl --cpunodebind=N --membind=N for each card's N"
        yield Cause(("far NUMA node",), what, step, evidence=f"'{alone.row.scenario}' reached {value_text(alone.row)}")


OWN_SETTINGS = (
    setting_that_differs,
    number_in_its_name,
    threads_of_a_text,
    shared_by_rails,
    shared_by_ports,
    away_from_their_cards,
)
