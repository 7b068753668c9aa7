"""Causes of slow rows in the size and number of requests and messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.commonest import REQUESTS
from lanewise.checking.references.collectives import around_dip, smaller_message
from lanewise.checking.references.drives import enough_in_flight
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.paths import of_one_size, smaller_and_faster
from lanewise.checking.symptom import RowSymptom, value_text
from lanewise.results.observation import Observation

# Data sheets of drives rate 4 KiB reads with 32 and more in flight (Samsung 970 EVO Plus: QD 32, four threads).
_RATED_WITH = 32
_SMALL_REQUEST = 128 * 2**10
_CHOICE_STEP = "compare NCCL_ALGO=Ring and Tree, NCCL_PROTO=Simple and LL128; NCCL_DEBUG_SUBSYS=TUNING says the choice"


def small_requests(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive's rate is requests in flight times their size over the time of one: the link is not the limit."""
    row = symptom.row
    size = row.settings.get("bytes")
    large = size is not None and size >= _SMALL_REQUEST and not _one_at_a_time(symptom)
    if row.path != "storage" or large or symptom.share > 0.5:
        return
    if row.how.get("tool") == "hdparm":
        return  # reads 2 MiB at once, in order
    if row.metric == "iops" and row.settings.get("depth", 1) * row.settings.get("threads", 1) >= _RATED_WITH:
        return  # a count a second is rated with so many small ones
    if any(other.settings == row.settings for other in symptom.better(same_flow=True)) and size is not None:
        return  # the same requests were faster
    step = "read in pieces of 1 MiB, with 32 and more in flight: lanewise measure storage FILE --size 1MiB"
    if size is None or row.value is None:
        yield replace(REQUESTS, step=step)
        return
    flight = row.settings.get("depth", 1) * row.settings.get("threads", 1)
    each = units.readable(flight * size / row.value, "s", 3)
    what = f"requests of {size:,} B: {row.value / size:,.0f} of them a second, {each} each with {flight} in flight"
    yield Cause(("requests",), what, step, evidence="size and number of requests of the row")


def _one_at_a_time(symptom: RowSymptom) -> bool:
    """Whether one request follows another, so far below what the drive needs in flight that its time sets the rate."""
    row, drive = symptom.row, symptom.drive
    alone = {"depth", "threads"} & row.settings.keys() and row.settings.get("depth", 1) * row.settings.get(
        "threads", 1
    ) == 1
    return bool(alone) and drive is not None and drive.named and not enough_in_flight(row, drive.read)


def unaligned_size(symptom: RowSymptom) -> Iterator[Cause]:
    """The same requests are much faster in a size that differs by a few bytes: it is aligned and this one is not."""
    size = symptom.row.settings.get("bytes", 0)
    like = [
        other for other in symptom.better(same_flow=True)
        if of_one_size(other.settings.get("bytes", 0), size) and other.settings["bytes"] != size
        and _alignment(other.settings["bytes"]) > _alignment(size)
    ]  # fmt: skip
    if like:
        best = max(like, key=lambda other: other.value or 0.0)
        what = f"requests of {size:,} B, which end within a cache line or page: parts of them are read before a write"
        step = "use sizes and addresses that are multiples of 4 KiB, of 64 B at least"
        evidence = f"requests of {best.settings['bytes']:,} B reached {value_text(best)}"
        yield Cause(("requests",), what, step, evidence=evidence)


def _alignment(size: int) -> int:
    """The largest power of two, up to a page, that divides a size."""
    return min(size & -size, 4096)


def larger_messages(symptom: RowSymptom) -> Iterator[Cause]:
    """A rate that falls as messages grow: the network drops what its buffers do not hold, or NCCL's choice."""
    row = symptom.row
    rows = symptom.table.rows
    best = smaller_message(row, rows) if row.metric == COLLECTIVE else smaller_and_faster(row, rows)
    if best is None:
        yield from _choice_in_a_dip(row, rows)
        return
    evidence = f"{value_text(best)} with {units.size(best.settings['bytes'])}"
    if row.path == "network" or row.settings.get("hosts", 1) > 1:
        what = "congestion control or lost packets slow the network down once messages exceed its buffers"
        step = "ethtool -S DEVICE | grep -E 'pause|discard|out_of_buffer|cnp'; turn on PFC or ECN at cards and switch"
        yield Cause(("congestion",), what, step, evidence=evidence)
    if row.metric == COLLECTIVE:
        what = "NCCL takes an algorithm or protocol that does not suit these links from that size on"
        yield Cause(("algorithm",), what, _CHOICE_STEP, evidence=evidence)


def _choice_in_a_dip(row: Observation, rows: Sequence[Observation]) -> Iterator[Cause]:
    """NCCL's choice at a size that is slower than both smaller and larger ones: the network carries those."""
    best = around_dip(row, rows) if row.metric == COLLECTIVE else None
    if best is not None:
        what = "NCCL or its network plugin takes an algorithm or protocol that does not suit these links at that size"
        evidence = f"smaller and larger messages reached {value_text(best)} and more"
        yield Cause(("algorithm",), what, _CHOICE_STEP, evidence=evidence)
