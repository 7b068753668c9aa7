"""Causes of slow rows of one drive: its link, the drive itself, and the program that reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lanewise.checking.cause import Cause, speed, speeds
from lanewise.checking.causes.cards import differ_in_time
from lanewise.checking.expectation import too_short
from lanewise.checking.references.drives import (
    DriveAbility,
    downgraded_link,
    half_of_a_link,
    lesser_drive_link,
    of_downgraded_link,
)
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, program_of, row_devices, value_text

# How near a share must be to that of half the lanes.
_NEAR_STEP = 0.12


def slow_drive(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive read into or written from host memory: its link where half or a quarter is left, else the program."""
    row = symptom.row
    drives = sorted(end for end in row_devices(row) if not re.match(r"gpu|host|cpu", end))
    if row.path != "storage" or symptom.gpu or row.metric != "goodput" or len(drives) != 1:
        return
    drive, share = drives[0], symptom.share
    what = "the program or the kernel: few requests in flight, one thread, the page cache or an I/O scheduler"
    step = "fio --direct=1 --iodepth=32 --numjobs=4; cat /sys/block/DEVICE/queue/scheduler"
    program = Cause(("software",), what, step)
    what_link = f"the link of {drive} has fewer lanes or a lower generation than the drive"
    step = "sudo lspci -vv | grep -A40 'Non-Volatile' | grep -E 'LnkCap:|LnkSta:'"
    link = Cause(("link", drive), what_link, step, devices=frozenset({drive}))
    if (stated := downgraded_link(symptom.posted)) and list(of_downgraded_link(row, symptom.posted)):
        gen, lanes, most, source = stated
        what = f"the link of {drive} runs at {speed(gen, lanes)}, and can {speed(most, lanes)}"
        yield Cause(("link", drive), what, step, devices=frozenset({drive}), evidence=source)
    if symptom.drive is not None:
        links, predicted = lesser_drive_link(row, symptom.drive)
        if links:
            what = f"the link of {drive} runs at {speeds(links)} ({symptom.drive.title} can {_best(symptom.drive)})"
            yield Cause(("link", drive), what, step, devices=frozenset({drive}), predicted=predicted, explains=True)
    better = [other for other in symptom.better_rates() if drive in row_devices(other)]
    if better and (generation := half_of_a_link(row, max(better, key=lambda other: other.value or 0.0))):
        evidence = f"both rates are those of such a link: {generation}"
        yield Cause(("link", drive), what_link, step, devices=frozenset({drive}), evidence=evidence)
    steps = any(abs(share / part - 1) < _NEAR_STEP for part in (0.5, 0.25, 0.125))
    if (own := _drive_unlike_others(symptom, drive)) is not None and not too_short(row):
        # Of other drives with the same requests the program is no cause.
        link = replace(link, evidence=own.evidence)
        yield from (link, own, program) if steps else (own, link, program)
        return
    yield from _over_time(symptom, drive)
    yield from (program,) if better or too_short(row) else (link, program) if steps else (program, link)


def _over_time(symptom: RowSymptom, drive: str) -> Iterator[Cause]:
    """The drive itself, if the same requests of the same program were faster at another time."""
    row = symptom.row
    if of_plain_text(row):
        return  # its words say what differs
    like = [
        other for other in symptom.better(same_flow=True)
        if other.settings == row.settings and other.scenario != row.scenario
        and (row.settings or differ_in_time(row.scenario, other.scenario))
        and all(other.how.get(key) == row.how.get(key) for key in ("tool", "engine", "mode", "pattern"))
    ]  # fmt: skip
    if like:
        evidence = f"'{like[0].scenario}' reached {value_text(like[0])} with the same requests"
        what = f"{drive} itself, later on: its write cache (SLC) is full, it is hot, or its blocks are not discarded"
        step = "nvme smart-log /dev/DEVICE (temperature, percentage used); fstrim; measure again after a pause"
        yield Cause(("drive", drive), what, step, evidence=evidence, devices=frozenset({drive}))


def _drive_unlike_others(symptom: RowSymptom, drive: str) -> Cause | None:
    """The drive itself, if another drive is faster with the same requests."""
    row = symptom.row
    reads = row.flow.startswith(drive)
    like = [
        other for other in symptom.better(same_flow=False)
        if other.settings == row.settings and program_of(other) == program_of(row) and "gpu" not in other.flow
        and drive not in row_devices(other) and other.flow.startswith("host") is not reads
    ]  # fmt: skip
    if not like:
        return None
    evidence = f"{like[0].flow} reached {value_text(like[0])} with the same requests"
    what = f"{drive} itself: worn, hot, another model, or full of blocks that nobody discarded"
    step = "nvme list; nvme smart-log /dev/DEVICE; fstrim, or blkdiscard if it is empty; compare LnkSta of both"
    return Cause(("drive", drive), what, step, evidence=evidence, devices=frozenset({drive}))


def _best(drive: DriveAbility) -> str:
    return speed(drive.gen, drive.lanes)
