"""Tables that people and reports make of results: cells between bars, and kbench's comparison of two volumes.

A table is read only where no tool's own text is, and only its rates and IOPS. What moves is told by words: read and
write of storage, bits of a network, H2D and D2H of a GPU. A table that says none of these is not read.
Source of kbench: github.com/yasker/kbench, fio/iops.fio (4 KiB) and bandwidth.fio (128 KiB).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import LanewiseError, Location
from lanewise.readers.tables.gpu_cells import GpuCell, gpus_by_number, is_of_collectives, of_gpus
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.words.devices import memory_of
from lanewise.readers.words.directions import FROM_DEVICE, TO_DEVICE
from lanewise.readers.words.spellings import rate_or_time
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_UNIT = re.compile(r"(?<![A-Za-z])((?:[kKMGT]i?)?(?:B|b|[Bb]its?|[Bb]ytes?)(?:ps|/s(?:ec)?)|[kKM]?IOPS)(?![A-Za-z])")
_GIGABYTES = _UNIT.search("GB/s")
_NUMBER = re.compile(r"~? ?(\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d[\d,]*(?:\.\d+)?)(?: ?([kM]))?\b")
# A change or a ratio, which is no figure.
_RATIO = re.compile(r"[-+\u2212~]?[\d.,]{1,9} ?[x\u00d7](?![A-Za-z])|%|[\d.]{1,9}:1\b")
_RULE = re.compile(r"[\s|:+-]+$")
_READS = re.compile(r"\b(?:rd|download|rx)\b|(?<!th)(?<!sp)(?<!al)read(?!y)", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:wr|upload|tx)\b|write", re.IGNORECASE)
_TO_GPU, _FROM_GPU = re.compile(TO_DEVICE, re.IGNORECASE), re.compile(FROM_DEVICE, re.IGNORECASE)
_NETWORK = re.compile(r"\b(?:iperf\d?|bitrate|tcp|udp|netperf|rdma|roce|ib_\w+|ethernet|network|speedtest)\b", re.I)
_STORAGE = re.compile(r"\b(?:fio|disk|drive|nvme|ssd|hdd|volume|storage|seq\w*|rand\w*|rnd\w*|dd|iops|raid)\b", re.I)
# Words that say which test a figure is of; all others say what it was done with.
_TEST = re.compile(
    r"\b(?:(?:seq|rand)?(?:reads?|writes?)|seq(?:uential)?|rand(?:om)?|rnd|\d{1,4}(?:\.\d{1,3})? ?[kKmM](?:i?[bB])?|"
    r"q ?\d{1,4} ?t ?\d{1,3}|qd? ?\d{1,4}|t ?\d{1,3}|throughput|bandwidth|download|upload|iops)\b", re.IGNORECASE,
)  # fmt: skip
_SIZE = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?) ?([kKmM])(?:i?[bB])?\b")
_DEPTH = re.compile(r"\bqd? ?= ?(\d{1,4})|\bqd? ?(\d{1,4})", re.IGNORECASE)
_THREADS = re.compile(r"\bq ?\d{1,4} ?t ?(\d{1,3})\b", re.IGNORECASE)
_KBENCH = re.compile(r"\s*(Random|Sequential):\s+([\d,]+) / ([\d,]+)\s+vs\s+([\d,]+) / ([\d,]+)\s+:")
_KBENCH_KIND = re.compile(r"\s*(IOPS|Bandwidth in KiB/sec) \(Read/Write\)")
_KBENCH_NAMES = re.compile(r"\s*(\S.{0,40}?)\s+vs\s+(\S.{0,40}?)\s+:\s+Change\s*$")
# Heads of labels that say how something was done. Below any other head a label is a machine or device, which is no
# measure of another; so is what looks like a product's name.
_WAYS = re.compile(
    r"test|config|sett?ing|version|driver|mode|method|backend|tool|engine|scheduler|file ?system|variant|case|scenario|"
    r"run|option|kernel|metric|\bdir\b|direction|transfer|"
    r"copy|benchmark|workload|operation|protocol|path|type|before|after|^\W*$", re.IGNORECASE,
)  # fmt: skip
_PRODUCT = re.compile(
    r"\b(?!(?:QD?|T|RAID|MTU|NFSV?|V)\d)[A-Z]{1,4}-?\d{2,5}[A-Za-z]{0,3}\b|\b\d{3,4} (?:Pro|Evo|Plus)|Samsung|Intel|"
    r"Kingston|Crucial|Micron|Seagate|Toshiba|Kioxia|Western|SanDisk|NVIDIA|Radeon|EPYC|Xeon|Ryzen", re.IGNORECASE,
)  # fmt: skip
# Kinds of storage, which are no measure of each other where a label or head is nothing else; mixes of reads and writes.
_KIND = re.compile(
    r"(?:(?:sata|sas|usb|local|internal|external) )?(?:hdd|ssd|nvme|sata|sas|emmc|sd|"
    r"sd ?card|usb ?\d?|gp\d|io\d|st1|sc1|raid ?\d{1,2}|tmpfs|ram ?disk|optane)(?: drives?| disks?| volumes?)?$",
    re.IGNORECASE,
)
_MIX = re.compile(r"\b\d{1,2} ?(?:%|/ ?\d{1,2}\b)|\bmix", re.IGNORECASE)
# So many of something is a system of its own.
_COUNTED = re.compile(
    r"\b\d{1,6} ?(?:x )?(?:osds?|nodes?|servers?|drives?|disks?|ssds?|hdds?|hosts?|machines?|vms?|instances?|bricks?|"
    r"targets?|osts?|shards?|gpus?|replicas?)\b", re.IGNORECASE,
)  # fmt: skip
_INDEX = re.compile(r"(?:gpu ?)?(\d{1,2})$", re.IGNORECASE)
_POWERS = {"K": 1 << 10, "M": 1 << 20}
# A name; a cell and a line above a table, of whose words each cell is asked.
_LONGEST, _LONGEST_CELL, _LONGEST_LEAD = 60, 200, 400


@dataclass(frozen=True, slots=True)
class _PastedTable:
    """A table: the text above it, its heads, its rows with their lines."""

    lead: str
    heads: list[str]
    rows: list[tuple[int, list[str]]]


def is_text(lines: Sequence[str]) -> bool:
    """Whether some line is a row of cells, and some line has a unit of rates."""
    return any(_KBENCH.match(line) for line in lines) or any(
        "|" in line and (_UNIT.search(line) or is_of_collectives(line)) for line in lines
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each rate whose direction the table says; none where it says none."""
    rows = [*_kbench(lines, file)]
    for table in _tables(lines):
        for number, cells in table.rows:
            rows += _cells(table, cells, Location(file, number))
            check_rows(rows, Location(file, number))
    rows, models = gpus_by_number(rows)
    return ImportedResults(TABLE if rows else "", tuple(rows), posted=PostedFacts(models))


def _tables(lines: Sequence[str]) -> Iterator[_PastedTable]:
    lead = ""
    heads: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.count("|") and len(cells := _split(line)) > 1:
            if not heads:
                heads = cells
            elif not _RULE.match(line):
                rows.append((number, cells))
            continue
        if heads and rows:
            yield _PastedTable(lead, heads, rows)
        heads, rows = [], []
        lead = line.strip(" #*:`>")[:_LONGEST_LEAD] or lead


def _split(line: str) -> list[str]:
    return [cell.strip(" *`_")[:_LONGEST_CELL] for cell in line.strip().strip("|").split("|")]


def _cells(table: _PastedTable, cells: Sequence[str], at: Location) -> Iterator[Observation]:
    """The rates of a row, each by its head, its label and what stands above the table."""
    label = "" if _NUMBER.match(cells[0]) and _UNIT.search(cells[0]) else cells[0]
    others = [pair for pair in zip(table.heads, cells, strict=False) if not _UNIT.search(" ".join(pair))]
    for head, cell in zip(table.heads, cells, strict=False):
        unit = _UNIT.search(cell) or _UNIT.search(head) or _UNIT.search(label)
        unit = unit or (_GIGABYTES if is_of_collectives(head) else None)
        number = _NUMBER.match(cell)
        if cell == label or unit is None or number is None or _RATIO.search(cell):
            continue
        text = f"{''.join(number[1].split())}{number[2] or ''} {unit[1]}"
        words = f"{_UNIT.sub('', label)} {_UNIT.sub('', head)}"
        gpu = of_gpus(_UNIT.sub("", head), others, table.lead) if "IOPS" not in text else None
        if gpu is not None:
            yield _of_peers(gpu, text, at)
            continue
        device = _device(table.heads[0], label, head)
        value = _value(text, words, _UNIT.sub("", head), table.lead, device, at)
        if value is not None:
            yield value


def _of_peers(gpu: GpuCell, text: str, at: Location) -> Observation:
    """A figure of a pair of GPUs or of a collective as an observation, in GB/s."""
    number, unit = rate_or_time(text, bits=False)[0].split(" ", 1)
    value = figure(number.replace(",", ""), at) * units.parse(f"1 {unit}", "B/s") / 1e9
    flows = gpu.flow if "->" in gpu.flow else ""
    kind = ToolValue(gpu.flow, flows, gpu.metric, path=gpu.path)
    return observation(TABLE, gpu.name[:_LONGEST], kind, value, gpu.how, gpu.settings)


def _device(first_head: str, label: str, head: str) -> str:
    """The machine or device that a figure is of, by its label or its column; empty where these say how it was done."""
    named = label if not _WAYS.search(first_head) or _is_device(label) else ""
    named = named or (head if _is_device(head) else "")
    for what in (_TEST, _TO_GPU, _FROM_GPU):
        named = what.sub("", named)
    return re.sub(r"\W+", "_", named).strip("_")[:_LONGEST]


def _is_device(words: str) -> bool:
    """Whether words are a product's name, or a kind of storage with no more than tests and units beside it."""
    return (
        _PRODUCT.search(words) is not None
        or _COUNTED.search(words) is not None
        or _KIND.match(_TEST.sub("", _UNIT.sub("", words)).strip(" ,()")) is not None
    )


def _value(text: str, words: str, head: str, lead: str, device: str, at: Location) -> Observation | None:
    """One figure as an observation; None where nothing says what moved from where to where."""
    path, flow = _moved(words, lead, text)
    if not path:
        return None
    number, unit = rate_or_time(text, bits=path == "network")[0].split(" ", 1)
    figure(number.replace(",", ""), at)
    try:
        rate = units.parse(f"{number} {unit}", "1/s" if unit == "IOPS" else "B/s")
    except LanewiseError:
        return None
    flow = _of_device(flow, path, device)
    settings = _settings(words)
    # Of a column that says the test, a label is how it was done: 'big writes on | Write MB/s'.
    told = head if _READS.search(head) or _WRITES.search(head) else words
    test = " ".join(sorted(word.lower().replace(" ", "") for word in _TEST.findall(told)))
    program = re.sub(r"\W+", " ", _TEST.sub("", words)).strip()
    name = (" ".join(filter(None, (program, test))) if program else f"{test}, {lead}".strip(", "))[:_LONGEST]
    metric, shown = "total" if "," in flow else "goodput", "GB/s"
    if unit == "IOPS" and settings.get("bytes"):
        rate *= settings["bytes"]
    elif unit == "IOPS":
        metric, shown = "iops", "IOPS"
    kind = ToolValue(flow, flow, metric, shown, path)
    how = {"pattern": test}
    if "gpu" in flow and path != "network":
        how["host memory"] = _memory(words) or _memory(lead)
    return observation(TABLE, name, kind, units.from_si(rate, shown), how, settings)


def _memory(words: str) -> str:
    """'pageable' or 'pinned' as words say outright; malloc and new do not say of what."""
    return memory_of(words) if re.search(r"\bpageable|pinned|page-?locked", words, re.IGNORECASE) else ""


def _moved(words: str, lead: str, text: str) -> tuple[str, str]:
    """Path and flow by what the head, the label and the text above say; empty where they do not."""
    for said in (words, f"{words} {lead}"):
        if _TO_GPU.search(said) or _FROM_GPU.search(said):
            to_gpu = _TO_GPU.search(said) is not None
            if to_gpu and _FROM_GPU.search(said):
                return "host to device", "host0->gpu0, gpu0->host0"
            return ("host to device", "host0->gpu0") if to_gpu else ("device to host", "gpu0->host0")
        bits = re.search(r"b(?:its?|ps|/s)", text) is not None
        reads, writes = _READS.search(words) is not None, _WRITES.search(words) is not None
        storage = reads is not writes and not bits and not _MIX.search(words)
        if storage and (_STORAGE.search(words) or (said != words and not _NETWORK.search(said))):
            return "storage", "drive->host0" if reads else "host0->drive"
        if bits or _NETWORK.search(said):
            return "network", "host1->host0" if reads else "host0->host1"
    return "", ""


def _of_device(flow: str, path: str, device: str) -> str:
    """A flow of the device that a table names: a GPU by its number, a drive or far host by its name."""
    if not device:
        return flow
    if index := _INDEX.match(device):
        name = {"storage": f"drive{index[1]}", "network": f"host{index[1]}"}.get(path, f"gpu{index[1]}")
    else:
        name = f"gpu_{device}" if path not in ("storage", "network") else f"{device}_"
    return re.sub(r"\b(?:drive|host1|gpu0)\b", name, flow)


def _settings(words: str) -> dict[str, int]:
    """Size, requests in flight and threads that the words name: 4K, Q32T1, QD=8."""
    settings = {}
    if match := _SIZE.search(words):
        settings["bytes"] = int(float(match[1]) * _POWERS[match[2].upper()])
    if match := _DEPTH.search(words):
        settings["depth"] = int(match[1] or match[2])
    if match := _THREADS.search(words):
        settings["threads"] = int(match[1])
    return settings


def _kbench(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """IOPS and bandwidth of two volumes, read and written."""
    names, kind = ("first", "second"), ""
    for number, line in enumerate(lines, 1):
        if match := _KBENCH_NAMES.match(line):
            names = (match[1], match[2])
        elif match := _KBENCH_KIND.match(line):
            kind = match[1]
        elif kind and (match := _KBENCH.match(line)):
            size = 4096 if kind == "IOPS" else 128 * 1024
            for at, word in enumerate(match.groups()[1:]):
                flow = "host0->volume" if at % 2 else "volume->host0"
                value = figure(word.replace(",", ""), Location(file, number))
                rate = value * (size if kind == "IOPS" else 1024) / 1e9
                how = {"pattern": match[1].lower(), "mode": "direct"}
                name = f"{names[at // 2]}, {match[1].lower()}"
                yield observation("kbench", name, ToolValue(flow, flow, path="storage"), rate, how, {"bytes": size})
