"""Causes that typed rows show which differ in one thing alone: a setting, threads, the number of rails."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import MTU
from lanewise.checking.references.one_setting import better_by_one_setting, one_setting
from lanewise.checking.references.rails import over_fewer, rails
from lanewise.checking.references.texts import OF_FEWER_THREADS, of_plain_text, threads_of
from lanewise.checking.symptom import RowSymptom, value_text

_STEP = "change only that and measure again, twice each way"
# Linux' CFS throttles a group that has used its quota (kernel, scheduler/sched-bwc): a thread that the others wait for
# at a barrier may be one of the throttled (ollama/ollama#17916: nr_throttled 3115 of 4567).
_THREADS_STEP = (
    "nproc in the container; cat /sys/fs/cgroup/cpu.max and cpu.stat (nr_throttled); as many threads as cores, no more"
)


def setting_that_differs(symptom: RowSymptom) -> Iterator[Cause]:
    """The only setting in which a faster row of the same path differs."""
    row = symptom.row
    best = better_by_one_setting(row, symptom.better(same_flow=True))
    if best is None:
        return
    key = one_setting(row, best)
    evidence = f"{key}={best.settings[key]} reached {value_text(best)}, all else alike"
    if key == "threads":
        yield Cause(("setting", key), _too_many(symptom, row.settings[key]), _THREADS_STEP, evidence=evidence)
    elif key == "mtu":
        yield Cause(MTU.key, MTU.what, MTU.step, evidence=evidence)
    else:
        yield Cause(("setting", key), f"the setting {key}={row.settings[key]}", _STEP, evidence=evidence)


def threads_of_a_text(symptom: RowSymptom) -> Iterator[Cause]:
    """More threads than a faster figure of a text has, where all else is alike."""
    limit = symptom.result.expected.limit
    if of_plain_text(symptom.row) and limit.endswith(OF_FEWER_THREADS):
        evidence = f"{limit.removesuffix(OF_FEWER_THREADS)}threads is faster"
        yield Cause(("setting", "threads"), _too_many(symptom, threads_of(symptom.row)), _THREADS_STEP,
                    evidence=evidence)  # fmt: skip


def _too_many(symptom: RowSymptom, threads: int) -> str:
    """What to say of a number of threads, with the number of CPUs where it is stated and less."""
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


OWN_SETTINGS = (setting_that_differs, threads_of_a_text, shared_by_rails)
