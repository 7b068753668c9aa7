"""Causes that runs of fio show themselves: a rate that was asked for, syncs, a queue that is none, a round number.

Source: fio's HOWTO ("rate", "sync", "fsync"; "libaio: Linux may only support queued behavior with non-buffered I/O").
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.symptom import RowSymptom, keeps_to, said_quantity

# How near a rate must be to the number that a limit has.
_NEAR = 0.007
# Limits of cloud volumes begin with these digits (3,000 requests a second and 125 MiB/s of AWS' gp3, EBS volume types;
# 500 and 5,000 requests, 25 to 250 MB/s of Azure's premium disks, managed disk types); other digits are often chance.
_DIGITS, _OTHER_LIMITS = (1, 2, 3, 5, 10), (125, 150, 250)
_SMALL, _LARGE = 16 * 2**10, 128 * 2**10


def drive_run_causes(symptom: RowSymptom) -> Iterator[Cause]:
    """What a run against a drive says of its own limit, the surest first."""
    if symptom.row.path == "storage" and symptom.row.metric in ("goodput", "iops") and symptom.row.value:
        for find in (_asked, _synced, _not_queued, _round_number):
            yield from find(symptom)


def _asked(symptom: RowSymptom) -> Iterator[Cause]:
    row = symptom.row
    asked = said_quantity(row, "asked for", "B/s") * row.settings.get("threads", 1)
    rate = row.value or 0.0
    rate = rate * row.settings.get("bytes", 0) if row.metric == "iops" else rate
    if keeps_to(rate, asked):
        what = f"the command asks for {row.how['asked for']} (--rate), and gets it"
        predicted = asked if row.metric == "goodput" else None
        yield Cause(("setting", "rate"), what, "run it without --rate", evidence="the command", predicted=predicted,
                    explains=True)  # fmt: skip


def _synced(symptom: RowSymptom) -> Iterator[Cause]:
    sync = symptom.row.how.get("sync", "")
    if sync and symptom.row.flow.startswith("host"):
        what = f"{sync}: the drive's cache may hold nothing back, so that each write takes as long as the drive itself"
        step = "without sync or fsync=1 for throughput; group commits; a drive whose cache survives a loss of power"
        yield Cause(("setting", "sync"), what, step, evidence="the command, or the syncs that fio counts")


def _not_queued(symptom: RowSymptom) -> Iterator[Cause]:
    row = symptom.row
    if row.how.get("cache") and row.how.get("engine") == "libaio" and row.settings.get("depth", 1) > 1:
        what = "libaio without direct=1: the page cache takes one request after the other, whatever iodepth says"
        yield Cause(("requests",), what, "fio --direct=1, or --ioengine=io_uring", evidence="the command")


def _round_number(symptom: RowSymptom) -> Iterator[Cause]:
    """A rate that several requests in flight reach and that is the number of a limit: clouds and groups have such."""
    row, value, size = symptom.row, symptom.row.value or 0.0, symptom.row.settings.get("bytes", 0)
    alone = row.settings.get("depth", 1) * row.settings.get("threads", 1) < 2 and size < _LARGE
    if alone or row.how.get("asked for") or not size:
        return  # one small request after another has the rate of its latency
    bytes_ = value if row.metric == "goodput" else value * size
    counts = [(value / size if row.metric == "goodput" else value, "requests a second")] if size <= _SMALL else []
    shown = next((f"{_limit(number):,.0f} {name}" for number, name in
                  (*counts, (bytes_ / 2**20, "MiB/s"), (bytes_ / 1e6, "MB/s")) if _limit(number)), "")  # fmt: skip
    step = "the data sheet of the volume; cat /sys/fs/cgroup/*/io.max; virsh blkdeviotune; ask the provider"
    if row.how.get("samples") == "all alike":
        what = "a limit by rate: the volume's own by contract, a quality of service, or a control group"
        yield Cause(("setting", "limit"), what, step, evidence="each half second of the run has the same rate")
    elif shown:
        what = f"a limit of {shown}: the volume's own by contract, a quality of service, or a control group"
        yield Cause(("setting", "limit"), what, step, evidence="a round number", inconclusive=True)


def _limit(number: float) -> float:
    """The round number that a rate is, 0 if it is none."""
    if number < 1:
        return 0.0
    digit = 10.0 ** math.floor(math.log10(number * (1 + _NEAR)))
    near = [*(each * digit for each in _DIGITS), *map(float, _OTHER_LIMITS)]
    return next((limit for limit in near if limit and abs(number / limit - 1) < _NEAR), 0.0)
