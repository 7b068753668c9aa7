"""Causes that the names of typed rows say, and those of rows below what any device of their kind gives."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import late_re as re
from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.cards import without_time
from lanewise.checking.causes.conditions import SETTING
from lanewise.checking.causes.host_memory import MEMORY_STEP
from lanewise.checking.expectation import too_short
from lanewise.checking.references.gpus_of_a_name import without_slot
from lanewise.checking.references.latencies import FROM_HOST_MEMORY
from lanewise.checking.references.parts import THROUGH_TUNNEL
from lanewise.checking.references.paths import flows_of_drives
from lanewise.checking.references.side_by_side import OF_FEWER_GPUS
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, row_devices, value_text
from lanewise.checking.tolerances import TOLERANCES
from lanewise.results.figure_words import VERSION
from lanewise.results.observation import Observation

_WORK = re.compile(
    r"\b(?:batch\w*|threads?|jobs?|depth|qd|(?:single|one) stream|streams|connections?|concurren\w*|block\w*|"
    r"in flight)\b",
    re.I,
)
_COUNT = re.compile(
    r"\b\d{1,6} ?(?:threads?|jobs?|streams?|connections?|clients?)\b|"
    r"\b(?:batch|bs|qd|depth|jobs|threads) ?=?\d{1,6}\b", re.I,
)  # fmt: skip
_MORE = re.compile(r"\b(?:small|large|smaller|larger|bigger|big|few|many|single|multi\w*|one)\b", re.I)
_NUMBERS, _PLACES = re.compile(r"\d+"), re.compile(r"\b(?:trays?|nodes?|hosts?|racks?|servers?|machines?)\b.*\d", re.I)
_END = re.compile(r"gpu|host|cpu", re.I)
# A drive over USB 3.2 Gen 2 has 0.8 to 1.06 GB/s: a wire of 10 Gb/s less 128b/132b and the packets' frames carries 1.1
# (USB 3.2 specification; FrameworkComputer/SoftwareFirmwareIssueTracker#260, macformat July 2024: 0.8 to 1.0 GB/s).
_OF_USB = (0.8e9, 1.1e9)
# What a row's name says of the memory modules of its host.
_MODULES = re.compile(r"(?:\w+ )?(?:so-?)?(?:dimms?|modules?|channels?)\b[^,;]*", re.I)
_STEP = "change only that and measure again, twice each way"


def named_changes(symptom: RowSymptom) -> Iterator[Cause]:
    """What the names of this row and of a faster one of its path differ in: a version, how much is asked, a setting."""
    row = symptom.row
    faster = [other for other in symptom.better_rates() if other.flow == row.flow and other.scenario != row.scenario]
    if of_plain_text(row) or not faster or row.how.get("tool") not in ("typed in", "table"):
        return
    limit = symptom.result.expected.limit
    best = next((other for other in faster if f"'{other.scenario}" in limit), None)
    best = best or max(faster, key=lambda other: other.value or 0.0)
    mine, theirs = row.scenario.split(), best.scenario.split()
    only = " ".join([*(w for w in mine if w not in theirs), *(w for w in theirs if w not in mine)])
    evidence = f"'{best.scenario}' reached {value_text(best)}"
    counts = set(_COUNT.findall(row.scenario)) != set(_COUNT.findall(best.scenario))
    sizes = _MORE.search(only) and _WORK.search(row.scenario)
    if counts or sizes or _WORK.search(only):
        what = "less is asked for at once: the batch, the threads or the requests in flight"
        yield Cause(("requests",), what, "raise it until the rate no longer grows", evidence=evidence)
    if row.path == "host memory" and _MODULES.findall(row.scenario) != _MODULES.findall(best.scenario):
        what = "memory channels: the other row has other modules, or more of them"
        yield Cause(("memory channels",), what, MEMORY_STEP, evidence=evidence)
    # Rows that differ only in when they were measured may differ in anything of the machine.
    in_time = without_time(row.scenario) == without_time(best.scenario)
    if not in_time and (VERSION.search(only) or SETTING.search(only)):
        yield Cause(("software",), f"what differs between '{row.scenario}' and the other", _STEP, evidence=evidence)
    if SETTING.search(only):
        yield Cause(("setting",), "the setting in which the two rows differ", _STEP, evidence=evidence)


def shared_by_several(symptom: RowSymptom) -> Iterator[Cause]:
    """Several drives, each of which gets less at once than its share of one alone: they lie on one."""
    row = symptom.row
    flows = flows_of_drives(row)
    if row.metric != "goodput" or not flows:
        return
    alone = [other for other in symptom.better_rates() if other.how.get("flows", other.flow).replace(" ", "") in flows]
    if alone:
        what = f"what all {len(flows)} share: one real drive below them, a controller, or the way to it"
        step = "lsblk -o NAME,PKNAME,TRAN on the machine that has the drives; add up the rates of all at once"
        yield Cause(("shared",), what, step, evidence=f"one alone reached {value_text(alone[0])}")


def below_its_kind(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive that reads less than any of its kind: it fails, or its link or bus does."""
    row = symptom.row
    if row.path != "storage" or "least" not in symptom.result.expected.limit or not _alone(row):
        return
    drive = next((end for end in sorted(row_devices(row)) if not _END.match(end)), "the drive")
    health = symptom.posted.stated("drive health")
    what = f"{drive} itself or its cable: commands time out, sectors are read again, or DMA is off"
    step = "dmesg | grep -iE 'timeout|reset|error|ata|nvme'; smartctl -a; hdparm -d of an ATA disk"
    yield from () if health else (Cause(("drive", drive), what, step, devices=frozenset({drive})),)
    what = f"the link of {drive}: a bad cable, slot or adapter, or a much lower rate than it can"
    yield Cause(
        ("link", drive), what, "sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; lsusb -t", devices=frozenset({drive})
    )


def fallen_back_to_usb(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive in a box for USB4 or Thunderbolt that has no tunnel: over such a cable or port it is one of USB 3.2."""
    row, (least, most) = symptom.row, _OF_USB
    if row.path == "storage" and symptom.result.expected.limit.startswith(THROUGH_TUNNEL):
        near = least < (row.value or 0.0) < most
        what = "the cable or the port: without a tunnel the box is a drive of USB 3.2 at 10 Gb/s (/dev/sd*, no nvme)"
        step = "a cable for 40 Gb/s in a port of USB4 or Thunderbolt; boltctl list; lsusb -t; lsblk -o NAME,TRAN"
        yield Cause(("link", "cable"), what, step, predicted=most if near else None, explains=near)


def copied_by_the_driver(symptom: RowSymptom) -> Iterator[Cause]:
    """Small messages of GPU memory over a network that take far longer than those of host memory."""
    limit = symptom.result.expected.limit
    if limit == FROM_HOST_MEMORY:
        expected = units.show(symptom.result.expected.value or 0.0, symptom.row.display_unit, 3)
        what = "the driver copies small messages out of GPU memory: no GDRCopy (gdrdrv), or no GPUDirect RDMA"
        step = "lsmod | grep -E 'gdrdrv|nvidia_peermem'; ucx_info -d | grep -E 'gdr_copy|cuda'; UCX_LOG_LEVEL=info"
        yield Cause(("software",), what, step, evidence=f"{limit} takes {expected}")


def hosts_that_differ(symptom: RowSymptom) -> Iterator[Cause]:
    """The hosts or trays by whose numbers alone a row is called otherwise than a faster one: a link of one is down."""
    row = symptom.row
    if row.path not in ("network", "collective") and not row.path.startswith("peer"):
        return
    numbers = [
        other for other in symptom.better_rates()
        if _NUMBERS.sub("", other.scenario) == _NUMBERS.sub("", row.scenario) != row.scenario
    ]  # fmt: skip
    if numbers and _PLACES.search(row.scenario):
        evidence = f"'{numbers[0].scenario}' reached {value_text(numbers[0])}"
        step = "measure each pair of these hosts by itself; nvidia-smi nvlink -s and ibstat of each"
        if "gpu" in row.flow:
            yield Cause(("nvlink",), "an NVLink of a GPU of these hosts is down", step, evidence=evidence)
        yield Cause(("link",), "a card, cable or port of one of these hosts", step, evidence=evidence)


def more_gpus(symptom: RowSymptom) -> Iterator[Cause]:
    """Several GPUs that count less a second than fewer of them: they wait for each other, or for their links."""
    if symptom.row.metric != "iops" or OF_FEWER_GPUS not in symptom.result.expected.limit:
        return
    what = "the program: the GPUs wait for each other more than they save (synchronizations of each layer or token)"
    yield Cause(
        ("software",), what, "fewer GPUs a copy of the model, or pipeline parallel; nsys profile shows the gaps"
    )
    if symptom.posted.slot_links():  # who says what the slots have has looked at them
        what = "peer access between the GPUs: ACS, an IOMMU or the driver leads what they exchange over host memory"
        yield Cause(("peers",), what, "nvidia-smi topo -p2p rw; sudo lspci -vvv | grep ACSCtl; p2pBandwidthLatencyTest")
    what = "the links between the GPUs: what they exchange goes over PCIe or host memory, not over NVLink"
    yield Cause(("link",), what, "nvidia-smi topo -m; nvidia-smi nvlink -s; all_reduce_perf of the same GPUs")


def lesser_slot(symptom: RowSymptom) -> Iterator[Cause]:
    """The same work on a GPU of the same name whose slot, as rows' names say, is another: what is copied waits."""
    row = symptom.row
    named = [
        each for each in symptom.better_rates()
        if without_slot(each.scenario) == without_slot(row.scenario)
        and (f"'{each.scenario}' on" in symptom.result.expected.limit if each.flow != row.flow
             else each.scenario != row.scenario)
    ]  # fmt: skip
    if row.metric != "iops" or "," in row.flow or not symptom.gpu or not named:
        return
    other = named[0]
    stated = f"the row says {row.how['slot']}" if "slot" in row.how else ""
    evidence = f"'{other.scenario}' reached {value_text(other)}" if other.scenario != row.scenario else stated
    what = f"the link of {symptom.gpu}: its slot has fewer lanes, and the work copies over it"
    yield Cause(
        ("link",), what, "the other slot; nvidia-smi dmon -s t shows what goes over the link", evidence=evidence
    )
    what = f"power, heat or other work of {symptom.gpu}"
    yield Cause(("throttling",), what, "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE on both while they work")


def one_at_a_time(symptom: RowSymptom) -> Iterator[Cause]:
    """One request at a time: the cores sleep or clock down while they wait for each."""
    row = symptom.row
    waits = row.settings.get("depth") == 1 and row.path in ("storage", "network") and row.metric in ("iops", "latency")
    if waits and symptom.result.tolerance is TOLERANCES["same path"]:
        what = "the cores sleep or clock down between the requests: idle states, governor"
        yield Cause(("host",), what, "cpupower idle-set -D 0; cpupower frequency-set -g performance; then again")


def costly_messages(symptom: RowSymptom) -> Iterator[Cause]:
    """Short messages of which so many are in flight that what each of them costs is the limit (`by_line_in_bulk`)."""
    row = symptom.row
    by_line = symptom.result.tolerance is TOLERANCES["line"]
    if by_line and row.path == "network" and row.how.get("tool") == "typed in" and too_short(row):
        size, many = units.size(row.settings["bytes"]), (row.value or 0.0) / row.settings["bytes"]
        what = f"messages of {size}: {many:,.0f} of them a second, each costs the program more than its bytes the line"
        step = "merge neighbours into larger messages, post them in batches, use more threads or queue pairs"
        yield Cause(("requests",), what, step, evidence="so many are in flight that none waits for an answer")


def _alone(row: Observation) -> bool:
    return row.how.get("flows", row.flow).count("->") == 1


KIND_CAUSES = (
    lesser_slot, named_changes, shared_by_several, below_its_kind, fallen_back_to_usb, copied_by_the_driver,
    hosts_that_differ, more_gpus, one_at_a_time, costly_messages,
)  # fmt: skip
