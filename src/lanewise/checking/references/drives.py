"""What a drive can do by its model and by the slot that was stated, as references of long reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanewise import units
from lanewise.catalog import Catalog
from lanewise.catalog.drive_models import drive_series
from lanewise.catalog.keys import GENERATIONS
from lanewise.checking.cause import speed
from lanewise.checking.named.abilities import ability, lesser_links, raw_rate, shares_host_memory
from lanewise.checking.references.parts import Reference
from lanewise.results.figure_words import RANDOM
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, SlotLink

# Gen4 drives in Gen3 slots read 0.47 to 0.51 of their data sheets; smaller models of a series and reads by a few
# threads 0.6 and more. Few bytes in flight take half again.
_FINE, _SLOW, _SLOW_WITH_FEW = 0.7, 0.55, 0.25
# A drive that nobody named may itself be slower than its slot: only what every NVMe drive exceeds is slow.
_SLOW_UNNAMED_WITH_FEW, _LEAST_NVME = 0.3, 0.5e9
# Drives of Gen4 and later are rated at 4.5 GB/s and more (Samsung PM9A3 as M.2, heise.de 4720224; WD SN770 5.15, the
# least of the catalogue): what reads no more than two lanes of Gen3 carry, 1.97 GB/s, has a lesser link.
_LEAST_OF_GEN4 = (3, 2)
# A rate no longer depends on what is in flight where that lasts five times as long as a request of a drive, 100 us.
_ENOUGH = 5 * 100e-6
# The slowest NVMe drives answer 35,000 random reads of 4 KiB a second with 32 in flight (Intel 600p, 128 GB).
_LEAST_READS, _MANY, _SMALL = 10_000, 32, 16 * 2**10
# Data sheets count reads of 4 KiB of the largest model of a series; small models have half of its chips.
_RATED_SIZE, _FINE_READS = 4096, 0.5
# Nobody asks for more at once (B): a larger size is a file's.
_REQUEST = 64 * 2**20
# Seconds of a random read: 8.5 ms to seek and half a turn, 4.2 ms, of a desktop's disk of 7,200 turns a minute
# (specification of Hitachi's Deskstar 7K1000.C); 14 ms at most and 5.5 of a laptop's of 5,400 (Travelstar 5K320). A
# queue in the drive that orders them brings some times as many; what is above that comes from a cache.
_SEEK, _ORDERED = (8.5e-3 + 4.2e-3, 14e-3 + 5.5e-3), 5
_DISK, _DISK_NAMED = re.compile(r"hdd", re.IGNORECASE), re.compile(r"\bhdds?\b|\bhard (?:disk|drive)", re.IGNORECASE)
# Part numbers of Seagate, WD, HGST and Toshiba, and series that have no SSDs.
_DISK_MODEL = re.compile(
    r"\bST\d{3,5}[A-Z]{2}\d{3,4}|\bWD\d{2,4}[A-Z]{4}\b|\bHU[ACHS]\d{6}|\bMG\d\d[A-Z]{3}\d|\bDT0\dACA|"
    r"\b(?:ironwolf(?! \d{3}| .*ssd)|exos|skyhawk|seagate archive|deskstar|caviar)\b", re.IGNORECASE,
)  # fmt: skip
# The fastest disks move 285 MB/s at their outer tracks, with two arms 554 (data sheets of Seagate's Exos X20 and 2X18),
# and half of that at the inner ones.
_FAST_DISK, _TWO_ARMS, _INNER = 285e6, 554e6, 0.5
# SSDs of SATA 6 Gb/s, of which 8b/10b leaves 600 MB/s (SATA 3.0): their data sheets say 540 to 560; at 3 Gb/s they
# read 270 to 285, which is slow.
_SATA = re.compile(
    r"\b8[4-7]0[ _-](?:evo|pro|qvo)\b|(?<![a-z])[mb]x[235]00(?:\b|ssd)|\bsata\b.*\bssd\b|\bssd\b.*\bsata\b|"
    r"\bwds\d{3}[gt]\d[bg]0[a-d]\b|\bsa400|\bpm8[3-9]3\b", re.IGNORECASE,
)  # fmt: skip
_SATA_SSD, SATA_WIRES, _SLOW_SATA = 560e6, 600e6, 0.52
# Of a link 8b/10b leaves eight in ten bits; drives that fill it read 0.9 and more of that (270 of 300 MB/s).
_OF_8B10B, _NEAR_SATA = 0.8, 0.85
# Engines that have one request in flight whatever their depth.
_ONE_AT_A_TIME = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
# What reads get of a link: 416 of 500 MB/s on one lane of Gen2, 3453 of 3938 on four of Gen3 (fio).
_SHARE_OF_OLD, _SHARE = 0.83, 0.87
_NEAR_LINK = 0.12
# A drive whose lanes no source states has what M.2 and U.2 connectors carry.
_LANES = 4
# What `posted.links` says of a link of a device without a name: '8 GT/s x4, can 16 GT/s'.
_LINK_NOW = re.compile(r"(?P<now>[\d.]+) GT/s x(?P<lanes>\d+), can (?P<most>[\d.]+) GT/s")
# Half of the least link: what is below it lacks requests, or has a fault.
_OF_LEAST = 0.5
_SHORT_WORDS = re.compile(r"random|\b4 ?k|\biops|\bqd ?\d|sync|journal|swap|small|cached|fuse|encrypt", re.IGNORECASE)
_DRIVE = re.compile(r"nvme|ssd|drive", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DriveAbility:
    """A drive by its model and slot: the PCIe link, its rates in B/s (infinite where unknown), their source.

    `reads`: how many small reads in no order it is rated at a second, 0 where nobody says it.
    """

    title: str
    gen: int
    lanes: int
    read: float
    write: float
    source: str
    reads: float = 0.0

    @property
    def of_series(self) -> bool:
        """Whether the catalogue has its series, even if not how fast it reads."""
        return self.source.startswith("part ")

    @property
    def link(self) -> float:
        """What long reads get of its link at its best, B/s."""
        return drive_link_rate(self.gen, self.lanes)

    @property
    def named(self) -> bool:
        """Whether its model says how fast it reads."""
        return self.read < raw_rate(6, 16)


def drive_link_rate(gen: int, lanes: int) -> float:
    """What long reads of a drive get of a link, B/s."""
    return (_SHARE if gen >= 3 else _SHARE_OF_OLD) * raw_rate(gen, lanes)


def is_disk(row: Observation, posted: PostedFacts | None = None) -> bool:
    """Whether a row of storage is named as one of a hard disk, whose arm seeks between several readers."""
    listed = _posted_model(drive_of(row), posted) if posted is not None and row.path == "storage" else ""
    names = f"{row.how.get('device', '')} {row.scenario} {listed}"
    model = _DISK_MODEL.search(names)
    return _DISK.match(drive_of(row)) is not None or model is not None or _DISK_NAMED.search(names) is not None


def drive_of(row: Observation) -> str:
    """The end of a row's only flow that is a drive, empty if none or several."""
    ends = [] if "," in row.flow else [end.strip() for end in row.flow.split("->")]
    drives = [end for end in ends if not re.match(r"gpu\d*$|host|cpu", end)]
    return drives[0] if row.path == "storage" and len(drives) == 1 else ""


def drive_ability(
    row: Observation, posted: PostedFacts, slots: Sequence[SlotLink], catalog: Catalog
) -> DriveAbility | None:
    """What the drive of a row can do by its model and the stated slot; None where neither is known."""
    drive = drive_of(row)
    if not drive:
        return None
    title = row.how.get("device", "") or _posted_model(drive, posted)
    series = drive_series(title)
    if series is not None and series in catalog:
        part = catalog.get(series)
        gen, lanes = part.number("pcie.gen"), part.number("pcie.lanes")
        read, write = part.number("read.rate") or float("inf"), part.number("write.rate") or float("inf")
        if gen is None and part.number("read.rate"):
            gen = _least_generation(read)
        if gen:
            gen = min([int(gen), *(link.gen for link in slots if link.gen)])
            lanes = min([int(lanes or _LANES), *(link.lanes for link in slots if link.lanes)])
            return DriveAbility(title, gen, lanes, read, write, f"part {series}", part.number("read.iops") or 0.0)
    whole = [link.whole for link in slots if link.whole]
    if not whole or not _DRIVE.match(drive):
        return None
    gen, lanes = whole[0]
    return DriveAbility(f"the slot of {drive}", gen, lanes, float("inf"), float("inf"), "as stated")


def _least_generation(read: float) -> int | None:
    """The least generation whose four lanes carry a drive's own read rate in B/s, None if none does."""
    return next((gen for gen in range(1, 7) if raw_rate(gen, _LANES) > read), None)


def _posted_model(drive: str, posted: PostedFacts) -> str:
    """The model that the text gives a drive: by its name, or of the only drive that it lists."""
    whole = re.match(r"nvme\d+", drive)
    if title := posted.title(whole[0] if whole else drive):
        return title
    listed = [model for name, model in posted.devices.items() if name.startswith(("nvme", "sd"))]
    # A job's name says nothing of the drive; another disk's name says that it is not this one.
    other = whole or re.match(r"(?:sd|hd|vd|md|dm|loop|xvd)[a-z\d-]*$", drive)
    return listed[0] if len(listed) == 1 and not other else ""


def drive_references(row: Observation, drive: DriveAbility) -> Iterator[Reference]:
    """What long reads and writes of a drive of that model in that slot reach; writes are never called slow."""
    if row.metric != "goodput" or row.how.get("mode") == "cached":
        return
    reads = row.flow.split("->")[0].strip() == drive_of(row)
    nominal = min(drive.read if reads else drive.write, drive.link)
    with_few = _SLOW_WITH_FEW if drive.named else _SLOW_UNNAMED_WITH_FEW
    slow = (_SLOW if enough_in_flight(row, nominal) else with_few) * nominal
    if not drive.named:
        modern = drive.of_series and drive.gen >= 4 and enough_in_flight(row, nominal)
        slow = raw_rate(*_LEAST_OF_GEN4) if modern else min(slow, _LEAST_NVME)
    # What a write costs depends on what the drive holds, its size and how long it is written to.
    slow = slow if reads else 0.0
    limit = f"{'reads' if reads else 'writes'} of {drive.title}, {speed(drive.gen, drive.lanes)}"
    fastest = raw_rate(drive.gen, drive.lanes)
    yield Reference("parts", nominal, _FINE * nominal, slow, fastest, limit, drive.source)


def of_gpu_host(row: Observation, posted: PostedFacts, catalog: Catalog) -> Iterator[Reference]:
    """Long reads, enough in flight, of an NVMe drive that nobody named beside a card of Gen3 or later.

    Hosts of such cards have four lanes for a drive; small boards have one of Gen2, clouds sell slow volumes as drives.
    """
    drive, titles = drive_of(row), [title for name, title in posted.devices.items() if name.startswith("gpu")]
    gpus = [gpu for title in titles if not shares_host_memory(title) and (gpu := ability(title, catalog)) is not None]
    reads = row.metric == "goodput" and re.match(r"nvme\d", drive) is not None and row.flow.startswith(drive)
    enough = _SMALL < row.settings.get("bytes", 0) <= _REQUEST and enough_in_flight(row, _LEAST_NVME)
    if reads and enough and any(gpu.gen >= 3 for gpu in gpus) and not posted.stated("virtual machine"):
        limit = "the least of long reads of NVMe drives of four lanes"
        yield Reference("parts", _LEAST_NVME, _LEAST_NVME, _LEAST_NVME, None, limit, "data sheets of drives", own=False)


def downgraded_link(posted: PostedFacts) -> tuple[int, int, int, str] | None:
    """Generation and lanes of the only link that a text shows downgraded, the generation it can, and its line."""
    found = [(match, each.source) for each in posted.stated("link now") if (match := _LINK_NOW.fullmatch(each.value))]
    if len(found) != 1:
        return None
    match, source = found[0]
    gens = [next((gen for gen, rate in GENERATIONS.items() if rate == float(match[key])), 0) for key in ("now", "most")]
    return (gens[0], int(match["lanes"]), gens[1], source) if 0 < gens[0] < gens[1] else None


def of_downgraded_link(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """Reads of a drive that fill the downgraded link in the same text, by what the link carries as it should."""
    link = downgraded_link(posted)
    if link is None or row.metric != "goodput" or not drive_of(row) or row.how.get("mode") == "cached":
        return
    gen, lanes, most, source = link
    if abs((row.value or 0.0) / drive_link_rate(gen, lanes) - 1) <= _NEAR_LINK:
        nominal, limit = drive_link_rate(most, lanes), f"a link of {speed(most, lanes)}"
        yield Reference("parts", nominal, _FINE * nominal, _SLOW * nominal, None, limit, source)


def small_reads(row: Observation) -> Iterator[Reference]:
    """Small reads of an NVMe drive with many in flight: every such drive answers more than that many a second."""
    drive, size = drive_of(row), row.settings.get("bytes", 0)
    depth = 1 if row.how.get("engine") in _ONE_AT_A_TIME else row.settings.get("depth", 1)
    many = depth * row.settings.get("threads", 1) >= _MANY
    if many and 0 < size <= _SMALL and re.match(r"nvme\d", drive) and row.flow.startswith(drive):
        least = _LEAST_READS * size
        limit = f"{_LEAST_READS:,} reads a second, less than any NVMe drive does with {_MANY} in flight"
        yield Reference("parts", least, least, least, None, limit, "data sheets of drives", own=False)


def rated_reads(row: Observation, drive: DriveAbility) -> Iterator[Reference]:
    """Small reads of a drive whose data sheet says how many it answers a second: fewer may be the program's limit."""
    size = row.settings.get("bytes", 0)
    if drive.reads and 0 < size <= _RATED_SIZE and row.flow.startswith(drive_of(row)):
        nominal = drive.reads * size
        limit = f"{drive.reads:,.0f} reads a second of {drive.title}"
        yield Reference("parts", nominal, _FINE_READS * nominal, 0.0, None, limit, drive.source)


def random_disk(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """Small requests of a hard disk in no order: each waits for the arm and for half a turn of the plate."""
    size, pattern = row.settings.get("bytes", 0), f"{row.how.get('pattern', '')} {row.scenario}"
    usual, least = (size / seconds for seconds in _SEEK)
    many = row.value is None or row.value > _ORDERED * usual
    if is_disk(row, posted) and 0 < size <= _SMALL and row.metric == "goodput" and RANDOM.search(pattern) and not many:
        limit = f"{1 / _SEEK[0]:.0f} requests a second of a hard disk of 7,200 turns a minute, one at a time"
        yield Reference("parts", usual, least, 0.0, None, limit, "data sheets of disks")


def long_disk(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """Long reads and writes of a hard disk in order: fine where the fastest one would be at its inner tracks."""
    pattern = f"{row.how.get('pattern', '')} {row.scenario}"
    if (
        is_disk(row, posted)
        and row.metric == "goodput"
        and row.how.get("mode") != "cached"
        and not RANDOM.search(pattern)
    ):
        limit = "the outer tracks of the fastest disks"
        yield Reference("parts", _FAST_DISK, _INNER * _FAST_DISK, 0.0, _TWO_ARMS, limit, "data sheets of disks")


def sata_ssd(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """Long reads and writes of an SSD that its name says is of SATA; writes are never called slow."""
    model = row.how.get("device") or _posted_model(drive_of(row), posted)
    names = f"{model} {row.scenario} {row.how.get('pattern', '')}"
    drive, uncached = drive_of(row), row.metric == "goodput" and row.how.get("mode") != "cached"
    if drive and uncached and _SATA.search(names) and not RANDOM.search(names) and not drive.startswith("nvme"):
        slow = (
            (_SLOW_SATA if keeps_busy(row, _SATA_SSD) else _SLOW_WITH_FEW) * _SATA_SSD
            if row.flow.startswith(drive)
            else 0.0
        )
        limit = "SSDs of SATA 6 Gb/s"
        yield Reference("parts", _SATA_SSD, _FINE * _SATA_SSD, slow, SATA_WIRES, limit, "data sheets of drives")


def of_sata_link(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """Long reads that fill a SATA link of a lower rate than drive and port can, by a link of 6 Gb/s."""
    links = posted.stated("sata link")
    drive = drive_of(row)
    if len(links) != 1 or row.metric != "goodput" or not drive or drive.startswith("nvme"):
        return
    payload = units.parse(links[0].value, "B/s") * _OF_8B10B
    if _NEAR_SATA * payload <= (row.value or 0.0) <= payload < SATA_WIRES:
        limit = f"SATA 6 Gb/s, now {links[0].value}"
        yield Reference("parts", _SATA_SSD, _FINE * _SATA_SSD, _SLOW_SATA * _SATA_SSD, None, limit, links[0].source)


def any_nvme_drive(row: Observation) -> Iterator[Reference]:
    """What every NVMe drive reaches behind the least link there is, if nobody says that its requests are short."""
    words = f"{row.how.get('pattern', '')} {row.scenario}"
    sized = any(row.settings.get(key) for key in ("bytes", "depth", "threads"))
    reads = drive_of(row).startswith("nvme") and row.flow.startswith("nvme")  # writes may fill a drive's fast cells
    if reads and row.metric == "goodput" and not sized and not _SHORT_WORDS.search(words):
        rate, limit, source = (
            drive_link_rate(2, 1),
            "Gen2 x1, the least link of an NVMe drive",
            "the PCIe specification",
        )
        yield Reference("parts", rate, _OF_LEAST * rate, _OF_LEAST * rate, None, limit, source, own=False)


def unknown_drive(row: Observation, drive: DriveAbility | None) -> str:
    """What to say of a drive whose model the row names and the catalogue does not have; empty for others."""
    model = row.how.get("device", "") if row.path == "storage" and drive is None and drive_of(row) else ""
    return f"'{model}': give its row what the data sheet says, such as rated: 190 MB/s" if model else ""


def enough_in_flight(row: Observation, rate: float) -> bool:
    """Whether so many bytes are in flight that they do not limit a rate in B/s; False where it is not known."""
    depth = 1 if row.how.get("engine") in _ONE_AT_A_TIME else row.settings.get("depth", 1)
    return depth * row.settings.get("threads", 1) * row.settings.get("bytes", 0) >= _ENOUGH * rate


def keeps_busy(row: Observation, rate: float) -> bool:
    """Whether a drive of that rate in B/s is read with enough in flight, as by hdparm, which reads 2 MiB ahead."""
    return enough_in_flight(row, rate) or "hdparm" in f"{row.scenario} {row.how.get('tool', '')}".lower()


def lesser_drive_link(row: Observation, drive: DriveAbility) -> tuple[tuple[tuple[int, int], ...], float]:
    """The lesser links whose rate a read has, and what one of them gives in B/s; none where no such link is near it."""
    value = row.value or 0.0
    for links in lesser_links(drive.gen, drive.lanes):
        rates = [drive_link_rate(*link) for link in links]
        near = min(rates, key=lambda rate: abs(value / rate - 1))
        if abs(value / near - 1) <= _NEAR_LINK:
            return links, near
    return (), 0.0


def half_of_a_link(row: Observation, faster: Observation) -> str:
    """Two rates of one drive that are those of two generations of one link: the lesser one's name, else empty."""
    value, best = row.value or 0.0, faster.value or 0.0
    if not value or not 1.6 < best / value < 2.4:
        return ""
    for gen in (1, 2, 3, 4):
        for lanes in (1, 2, 4):
            slower, better = drive_link_rate(gen, lanes), drive_link_rate(gen + 1, lanes)
            if abs(value / slower - 1) <= _NEAR_LINK and abs(best / better - 1) <= 1.25 * _NEAR_LINK:
                return f"{speed(gen, lanes)} instead of {speed(gen + 1, lanes)}"
    return ""
