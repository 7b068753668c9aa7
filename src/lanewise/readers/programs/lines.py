"""What a program of one's own prints of its copies: 'H2D 256 MB: 4.9 ms, 52.2 GB/s', and tables, logs and JSON lines.

A line counts where size over time is its rate, in powers of ten or of two, so that no other figures of a text are
taken for it; else where a key names a rate and what moved (h2d_GBps, busbw), or where something of a size took so
long. The words of the line say what moved, else the sentence above. A collective may give its bus bandwidth beside the
algorithm's, whose quotient tells the ranks (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.programs.records import ProgramQuantity, ProgramRecord, ranks_in, records, with_plain_words
from lanewise.readers.texts import is_prose
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.words.devices import bus_share, copy_of, memory_of, named_collective, without_peers
from lanewise.readers.words.directions import FROM_DEVICE, TO_DEVICE
from lanewise.readers.words.gpus import gpus_in
from lanewise.results.figure_words import OWN_PROGRAM, count_in
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# How far rounded figures of one line are apart: 0.34 GB/s of 4096 B in 12.06 us.
_ROUNDED = 0.03
# Bus bandwidth over the algorithm's: from half (two ranks gather) to nearly twice (many reduce).
_BUS_SHARES = 0.4, 2.0
_MOST_OF_A_KIND = 3
_DEVICE = re.compile(r"\bgpu(\d{1,2})\b", re.IGNORECASE)
_BOTH = re.compile(
    rf"{TO_DEVICE} (?:and|\+|&) {FROM_DEVICE}|"
    r"\bboth (?:ways|directions)\b|\bbi-?dir\w*|\bduplex\b|<->",
    re.IGNORECASE,
)
_KERNEL = re.compile(r"\bkernels?\b|\bsm copy\b", re.IGNORECASE)
_HOST = re.compile(r"\bhost memory\b|\bzero-?copy\b|\bmapped\b", re.IGNORECASE)
_WITHIN = re.compile(
    r"\bd(?:2|to)d\b|\bkernel (?:reads|writes|copies)\b|\bcopy_ on\b|\bmemset\b|\bwithin\b|\bin its (?:own )?memory\b",
    re.IGNORECASE,
)
# What is loaded over a network or from a drive is no copy of a GPU, unless the line speaks of one.
_LOADED = re.compile(r"\b(?:up|down)loads?\b|\bback\b", re.IGNORECASE)
_OF_GPU = re.compile(
    r"\bgpus?\d{0,2}\b|\bcuda|\bvram\b|\bpinned\b|\bpageable\b|\bdevice\b|\b[hd]2[hd]\b", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"\b(?:s3|gcs|https?|hub|internet|bucket|docker|pip|apt|wheel|cloud|disks?|nvme|ssd)\b|://|\.whl\b", re.IGNORECASE
)
# Where names of GPUs are looked for.
_LONGEST_TEXT, _LONGEST_LINE, _MOST_LINES = 20_000, 400, 400
_COLUMNS = re.compile(r"\s{2,}\S|\||\t")
_ACROSS = re.compile(r"\bnodes\b|\bhosts\b|\bservers\b|\bmachines\b|\binter-?node\b|\bmulti-?node\b", re.IGNORECASE)
_OF_A_HOST, _MOST_BYTES = 8, 2.0**62
# A key that says the direction of its rate, and words of something that takes a time.
_KEYED = re.compile(rf"(?P<to>{TO_DEVICE})|{FROM_DEVICE}", re.IGNORECASE)
_TAKES = re.compile(r"\b(?:took|takes?|needs?|needed|lasts?|lasted|in)\b", re.IGNORECASE)
_COPYING = re.compile(r"\b(?:cop(?:y|ies|ying)|memcpy|transfer\w*)\b", re.IGNORECASE)
_KIND_OF_MEMORY = re.compile(r"\b(?:pageable|(?:pinned|page-?locked)(?! (?:to|on) ))\b", re.IGNORECASE)
_REPEATED = re.compile(r"\b(?:iteration|iter|run|pass|step|rep)(?:e?s)?(?=\d|\b) ?\d*:?")
_KEYS = re.compile(r"\b[\w/]+=(?=[\s,;)]|$)|[\"'][\w /()]+[\"']: *(?=[,}]|$)")
# A size in elements of so many bytes; both directions of so many bytes each.
_ELEMENTS, _EACH = (1, 2, 4, 8), re.compile(r"\beach\b|\bboth\b|\bconcurrent", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Copy:
    """What a record says of one copy: its size (B, 0: unsaid), rate and bus bandwidth (B/s, 0: unsaid)."""

    size: float
    rate: float
    bus: float = 0.0
    timed: bool = False
    way: str = ""


def is_text(lines: Sequence[str]) -> bool:
    """Whether a line says such a copy, and some words of which GPU's it is."""
    return any(_row(*each) for each in _copies_below(lines))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The best rate of each kind of line and size: programs repeat a copy, and the first is cold."""
    return _best((_row(*each) for each in _copies_below(lines)), lines, file)


def read_beside(lines: list[str], file: str) -> ImportedResults:
    """The same of a text that holds outputs of other tools: each line says itself which copy of a GPU it is of."""
    return _best((_row(copy, record, "") for copy, record, _ in _copies_below(lines)), lines, file)


def _best(rows: Iterable[Observation | None], lines: Sequence[str], file: str) -> ImportedResults:
    best: dict[tuple[str, str, int], Observation] = {}
    for row in filter(None, rows):
        key = (row.scenario, row.flow, row.settings.get("bytes", 0))
        if key not in best or (row.value or 0.0) > (best[key].value or 0.0):
            best[key] = row
    check_rows(list(best.values()), Location(file, len(lines)))
    return ImportedResults(OWN_PROGRAM, tuple(best.values()), posted=PostedFacts(_models(lines)))


def _models(lines: Sequence[str]) -> dict[str, str]:
    """The only model of GPU that the lines name, wherever; of several, those of lines that say the number of theirs."""
    names = _names("\n".join(lines)[:_LONGEST_TEXT])
    if len(names) < 2:
        return {"gpu": names[0]} if names else {}
    said = [with_plain_words(line) for line in lines[:_MOST_LINES] if len(line) <= _LONGEST_LINE]
    said += [record.words for _, record in records(lines[:_MOST_LINES])]
    found = [(_gpus(words), _names(words)) for words in said]
    return {gpus[0]: models[0] for gpus, models in found if len(gpus) == len(models) == 1}


def _names(text: str) -> list[str]:
    """The models that words name as such: a bare 3090 may be a figure."""
    text = text.replace("_", " ")
    return [name for name in gpus_in(text, spoken=True) if name in text]


def _copies_below(lines: Sequence[str]) -> Iterator[tuple[_Copy, ProgramRecord, str]]:
    """Each copy with its record and the sentence above."""
    heading, before = "", 0
    for place, record in records(lines):
        above = list(filter(_is_heading, lines[before:place]))
        heading, before = with_plain_words((above or [heading])[-1]), place + 1
        copies = _copies(record)
        yield from ((copy, record, heading) for copy in copies)
        if not copies and _is_heading(lines[place]):
            heading = with_plain_words(lines[place])


def _is_heading(line: str) -> bool:
    """Whether a line is a sentence, and no row of heads."""
    return is_prose(line) and not _COLUMNS.search(line.strip())


def _copies(record: ProgramRecord) -> list[_Copy]:
    """The copies that a record is of: none where its figures do not belong together."""
    rates = record.of("rate")
    bus = next((each.value for each in rates if "bus" in each.key), 0.0)
    plain = [each for each in rates if "bus" not in each.key][:_MOST_OF_A_KIND]
    copy = _agreeing(record, plain, bus) or (_of_bus(record, bus) if bus else None)
    if copy is not None:
        return [copy]
    return _by_direction(plain, record.of("size")) or _by_words(record, plain)


def _agreeing(record: ProgramRecord, rates: Sequence[ProgramQuantity], bus: float) -> _Copy | None:
    """The copy whose size over its time is one of the rates."""
    sizes, times = record.of("size")[:_MOST_OF_A_KIND], record.of("time")[:_MOST_OF_A_KIND]
    for size, time, rate in itertools.product(sizes, times, rates):
        moved_sizes = list(_sizes(size.values(), size.key, record.words))
        for moved, speed, repeats in itertools.product(moved_sizes, rate.values(), (1, *record.repeats)):
            reached = moved * repeats / time.value if time.value > 0 else 0.0
            if speed > 0 and moved >= 1 and abs(reached / speed - 1) <= _ROUNDED:
                return _Copy(moved, reached, bus)
    return None


def _of_bus(record: ProgramRecord, bus: float) -> _Copy | None:
    """The collective of a bus bandwidth, by its time the algorithm's too where the two can belong together."""
    sizes, times = record.of("size"), record.of("time")
    if not sizes or (not times and _is_heading(record.words)):
        return None
    taken = sizes[0].value / times[0].value if times and times[0].value > 0 else 0.0
    low, high = _BUS_SHARES
    return _Copy(sizes[0].value, taken if low <= bus / (taken or bus) <= high else 0.0, bus)


def _by_direction(rates: Sequence[ProgramQuantity], sizes: Sequence[ProgramQuantity]) -> list[_Copy]:
    """The copies of keys that say their direction: h2d_GBps."""
    found = [(each, match) for each in rates if (match := _KEYED.search(each.key))]
    size = sizes[0].value if len(sizes) == 1 else 0
    return [_Copy(size, each.value, way="host to device" if match["to"] else "device to host") for each, match in found]


def _by_words(record: ProgramRecord, rates: Sequence[ProgramQuantity]) -> list[_Copy]:
    """The copy of a time that something took, or of the only rate where words or its key say of what it is."""
    sizes, times = record.of("size"), record.of("time")
    if sizes and not record.of("rate") and len(times) == 1 and times[0].value > 0:
        taken = sizes[0].value / times[0].value
        return [_Copy(sizes[0].value, taken, timed=True)] if _is_timed(record, sizes[0], times[0]) else []
    if len(rates) != 1:
        return []
    if rates[0].key and copy_of((_DEVICE.sub("gpu", record.words),)):
        return [_Copy(0, rates[0].value)]
    return [_Copy(sizes[0].value if sizes else 0, rates[0].value)] if named_collective(rates[0].key) else []


def _is_timed(record: ProgramRecord, size: ProgramQuantity, time: ProgramQuantity) -> bool:
    """Whether a record says that what has the size took the time: in words, or below heads and keys of both."""
    return _TAKES.search(record.words) is not None or bool(size.key and time.key)


def _sizes(values: Sequence[float], key: str, words: str) -> Iterator[float]:
    """What a size may mean in bytes: elements of some type, and twice what moves each way."""
    factors = _ELEMENTS if key in ("elements", "numel", "items") else (1, 2) if _EACH.search(words) else (1,)
    yield from (value * factor for value in values for factor in factors)


def _row(copy: _Copy, record: ProgramRecord, heading: str) -> Observation | None:
    """The row of a copy; None where neither its words nor the sentence above say what moved."""
    if copy.size > _MOST_BYTES or max(copy.rate, copy.bus) > _MOST_BYTES:
        return None  # no figure of a copy: 1e999
    settings = {"bytes": round(copy.size)} if copy.size >= 1 else {}
    keys = " ".join(each.key for each in record.quantities)
    name = named_collective(record.words) or named_collective(keys)
    if name := name or (named_collective(heading) if copy.bus else ""):
        return _collective(name, copy, settings, record, heading)
    moved = _moved(record.words, heading) if not copy.way else _host_copy(copy.way, (*_gpus(record.words), "gpu0")[0])
    if moved is None or (_LOADED.search(record.words) and _is_loaded_elsewhere(record.words, heading)):
        return None
    kernel = _KERNEL.search(record.words) or (_KERNEL.search(heading) and moved.path in ("peer", "GPU memory"))
    how = {"engine": "SM" if kernel else ""}
    if moved.path == "peer":
        off = without_peers(record.words) or (without_peers(heading) and not re.search(r"p2p on\b", record.words))
        moved, how["p2p"] = (replace(moved, path="peer, staged"), "off") if off else (moved, "on")
    elif moved.path != "GPU memory":
        how |= {"host memory": memory_of(record.words) or memory_of(f"{record.words} {heading}")}
        how |= {"timed": "a whole copy"} if copy.timed else {}
    return observation(OWN_PROGRAM, _label(record.words) or "copy", moved, copy.rate / 1e9, how, settings)


def _is_loaded_elsewhere(words: str, heading: str) -> bool:
    """Whether what is up- or downloaded comes from or goes to anything but a GPU, as far as words say."""
    return _ELSEWHERE.search(words) is not None or not _OF_GPU.search(f"{words} {heading}")


def _label(words: str) -> str:
    """What a program calls a copy: its words without marks, and without keys whose figures stand elsewhere."""
    text = _KEYS.sub("", _REPEATED.sub("", words))
    text = re.sub(r"\([\s,]*\)", "", re.sub(r"[\"']", "", re.sub(r"[{}\[\]]", " ", text)))
    text = re.sub(r"\s*,(?:\s*,)+", ",", " ".join(text.split()))
    return re.sub(r"(?:[^\w)]|\b(?:\d+|took|takes|in|each|at|of)\b)+$|^(?:\W|\b\d+\b)+", "", text)


def _collective(name: str, copy: _Copy, settings: dict[str, int], record: ProgramRecord, heading: str) -> Observation:
    """The row of a collective: its bus bandwidth, else the algorithm's."""
    ranks = _ranks(name, copy.bus / copy.rate) if copy.bus and copy.rate else 0
    ranks = ranks or record.ranks or ranks_in(heading) or count_in(heading.partition(".")[0])
    flows = "" if _ACROSS.search(f"{record.words} {heading}") else _ring(ranks)
    bus = copy.bus or copy.rate * bus_share(name, ranks)
    kind = ToolValue(flows, flows, "bus_bandwidth" if bus else "algorithm_bandwidth", path="collective")
    settings = settings | ({"ranks": ranks} if ranks else {})
    return observation(OWN_PROGRAM, name, kind, (bus or copy.rate) / 1e9, {}, settings)


def _ring(ranks: int) -> str:
    """The flows of a ring over the GPUs of one host; none for more ranks than hosts have GPUs."""
    gpus = range(ranks if 2 <= ranks <= _OF_A_HOST else 0)
    return ", ".join(f"gpu{gpu}->gpu{(gpu + 1) % ranks}" for gpu in gpus)


def _ranks(name: str, factor: float) -> int:
    """The ranks that a quotient of bus bandwidth and algorithm bandwidth means; 0 where it tells none."""
    parts = factor / 2 if name == "all_reduce" else factor
    ranks = round(1 / (1 - parts)) if name not in ("broadcast", "sendrecv") and parts < 1 else 0
    return ranks if 2 <= ranks <= 1024 else 0


def _moved(words: str, heading: str) -> ToolValue | None:
    """What a line is of, by its own words, else by the sentence above."""
    gpus, above = _gpus(words), _gpus(heading)
    gpu = (*gpus, *(above if len(above) == 1 else ()), "gpu0")[0]
    if len(gpus) > 1:
        flow = f"{gpus[1]}->{gpus[0]} read" if _KERNEL.search(words) and "read" in words else f"{gpus[0]}->{gpus[1]}"
        return ToolValue(flow.removesuffix(" read"), flow, path="peer")
    if _BOTH.search(words):
        both = f"host0->{gpu}, {gpu}->host0"
        return ToolValue(both, both, "total", path="host to device, device to host")
    if _HOST.search(words) and (_KERNEL.search(words) or _KERNEL.search(heading)):
        return _host_copy("host to device", gpu)
    own = copy_of((_DEVICE.sub("gpu", words),))
    if not own and (_WITHIN.search(words) or _WITHIN.search(heading)):
        return ToolValue(f"{gpu}->{gpu}", "", path="GPU memory")
    copy = own or copy_of((_DEVICE.sub("gpu", words), heading))
    if copy == "peer":
        flow = "->".join(above) if len(above) == 2 else "gpu0->gpu1"
        return ToolValue(flow, flow, path="peer")
    if not copy and _COPYING.search(words) and _KIND_OF_MEMORY.search(words):
        copy = "host to device"  # pageable and pinned memory is a host's, and a link carries as much either way
    return _host_copy(copy, gpu) if copy else None


def _host_copy(way: str, gpu: str) -> ToolValue:
    """A copy between host memory and a GPU."""
    flow = f"host0->{gpu}" if way == "host to device" else f"{gpu}->host0"
    return ToolValue(flow, flow, path=way)


def _gpus(words: str) -> list[str]:
    return [f"gpu{int(number)}" for number in dict.fromkeys(_DEVICE.findall(words))]
