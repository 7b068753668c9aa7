"""Lines of a program of one's own that say a size, how long it took and the rate: 'H2D 256 MB: 4.9 ms, 52.2 GB/s'.

A line counts where size over time is its rate, in powers of ten or of two, so that no other figures of a text are
taken for it. The words of the line say what moved, else the sentence above. A collective may give its bus bandwidth
beside the algorithm's, whose quotient tells the ranks (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanewise.errors import Location
from lanewise.readers.text_devices import copy_of, memory_of
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.figure_words import OWN_PROGRAM, count_in
from lanewise.results.observation import Observation

_NUMBER = r"(?<![\w.,:])(\d{1,15}(?:\.\d{1,9})?) ?"
_SIZE = re.compile(rf"{_NUMBER}([kKMG]i?B|bytes|B)\b(?![/]| ?per|ps)")
_TIME = re.compile(rf"{_NUMBER}([mun\u00b5]?s|sec|seconds)\b")
_RATE = re.compile(rf"{_NUMBER}([MG]i?B)(?:/s(?:ec)?|ps)\b")
_BUS = re.compile(r"\bbus[ _]?bw\W{0,3}(?:of )?(\d{1,9}(?:\.\d{1,9})?) ?([MG]i?B)(?:/s|ps)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3}
# How far rounded figures of one line are apart: 0.34 GB/s of 4096 B in 12.06 us.
_ROUNDED = 0.03
_COLLECTIVE = re.compile(
    r"\b(all[ _-]?reduce|all[ _-]?gather|reduce[ _-]?scatter|all[ _-]?to[ _-]?all|broadcast|send[ _-]?recv)",
    re.IGNORECASE,
)
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
          "alltoall": "alltoall", "broadcast": "broadcast", "sendrecv": "sendrecv"}  # fmt: skip
_DEVICE = re.compile(r"\b(?:cuda:|hip:|xpu:|gpu[ _#]?)(\d{1,2})\b", re.IGNORECASE)
_BOTH = re.compile(
    r"\bh(?:2|to)d (?:and|\+|&) d(?:2|to)h\b|\bboth (?:ways|directions)\b|\bbi-?dir\w*|\bduplex\b|<->", re.IGNORECASE
)
_KERNEL = re.compile(r"\bkernels?\b|\bsm copy\b", re.IGNORECASE)
_HOST = re.compile(r"\bhost memory\b|\bzero-?copy\b|\bmapped\b", re.IGNORECASE)
_WITHIN = re.compile(
    r"\bd(?:2|to)d\b|\bkernel (?:reads|writes|copies)\b|\bcopy_ on\b|\bmemset\b|\bwithin\b", re.IGNORECASE
)
_WORDS = re.compile(r"[A-Za-z]{3}")
_ACROSS = re.compile(r"\bnodes\b|\bhosts\b|\bservers\b|\bmachines\b|\binter-?node\b|\bmulti-?node\b", re.IGNORECASE)
_OF_A_HOST = 8


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of such a program: what its words say without the figures, its size (B) and its rate (B/s)."""

    words: str
    size: int
    rate: float
    bus: float


def is_text(lines: Sequence[str]) -> bool:
    """Whether a line says size, time and rate, and some words which copy it is of."""
    return any(_rows(lines))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The best rate of each kind of line and size: programs repeat a copy, and the first is cold."""
    best: dict[tuple[str, str, int], Observation] = {}
    for row in _rows(lines):
        key = (row.scenario, row.flow, row.settings["bytes"])
        if key not in best or (row.value or 0.0) > (best[key].value or 0.0):
            best[key] = row
    check_rows(list(best.values()), Location(file, len(lines)))
    return ImportedResults(OWN_PROGRAM, tuple(best.values()))


def _rows(lines: Sequence[str]) -> Iterator[Observation]:
    heading = ""
    for text in lines:
        line = _line(text)
        if line is None:
            heading = text if _WORDS.search(text) else heading
        elif (row := _row(line, heading)) is not None:
            yield row


def _line(text: str) -> _Line | None:
    """A line whose size over its time is its rate; None for any other."""
    if "B" not in text or len(text) > 400:
        return None
    sizes, times, rates = (list(pattern.finditer(text)) for pattern in (_SIZE, _TIME, _RATE))
    for size, time, rate in itertools.product(sizes[:3], times[:3], rates[:3]):
        taken = float(time[1]) * _SECONDS[time[2]]
        for size_base, rate_base in itertools.product((1000, 1024), repeat=2):
            moved, speed = float(size[1]) * _scale(size[2], size_base), float(rate[1]) * _scale(rate[2], rate_base)
            if taken > 0 and speed > 0 and abs(moved / taken / speed - 1) <= _ROUNDED and moved >= 1:
                match = _BUS.search(text)
                bus = float(match[1]) * _scale(match[2], rate_base) if match else 0.0
                words = re.sub(r"(?<![\w:])\d+\b(?!:)", " ", _RATE.sub(" ", _TIME.sub(" ", _SIZE.sub(" ", text))))
                return _Line(" ".join(words.split()), round(moved), moved / taken, bus)
    return None


def _scale(unit: str, base: int) -> float:
    return float((1024 if "i" in unit else base) ** _POWERS.get(unit[0], 0))


def _row(line: _Line, heading: str) -> Observation | None:
    """The row of a line; None where neither its words nor the sentence above say what moved."""
    settings = {"bytes": line.size}
    if match := _COLLECTIVE.search(line.words):
        name = _NAMES[re.sub(r"[ _-]", "", match[1].lower())]
        ranks = _ranks(name, line.bus / line.rate) if line.bus else 0
        ranks = ranks or count_in(heading.partition(".")[0])
        flows = "" if _ACROSS.search(f"{line.words} {heading}") else _ring(ranks)
        kind = ToolValue(flows, flows, "bus_bandwidth" if line.bus else "algorithm_bandwidth", path="collective")
        settings |= {"ranks": ranks} if ranks else {}
        return observation(OWN_PROGRAM, name, kind, (line.bus or line.rate) / 1e9, {}, settings)
    moved = _moved(line.words, heading)
    if moved is None:
        return None
    words = f"{line.words} {heading}"
    how = {"engine": "SM" if _KERNEL.search(line.words) else "", "p2p": "on" if moved.path == "peer" else ""}
    if moved.path not in ("peer", "GPU memory"):
        how |= {"host memory": memory_of(line.words) or memory_of(words)}
    label = re.sub(r"^[\W\d]+|[\W\d]+$", "", re.sub(r"\b(?:iteration|iter|run|pass|step|rep) ?\d*:?", "", line.words))
    return observation(OWN_PROGRAM, label.strip() or "copy", moved, line.rate / 1e9, how, settings)


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
    gpus = [f"gpu{int(number)}" for number in dict.fromkeys(_DEVICE.findall(words))]
    gpu = gpus[0] if gpus else "gpu0"
    to, back = f"host0->{gpu}", f"{gpu}->host0"
    if len(gpus) > 1:
        flow = f"{gpus[1]}->{gpus[0]} read" if _KERNEL.search(words) and "read" in words else f"{gpus[0]}->{gpus[1]}"
        return ToolValue(flow.removesuffix(" read"), flow, path="peer")
    if _BOTH.search(words):
        return ToolValue(f"{to}, {back}", f"{to}, {back}", "total", path="host to device, device to host")
    if _KERNEL.search(words) and _HOST.search(words):
        return ToolValue(to, to, path="host to device")
    if _WITHIN.search(words):
        return ToolValue(f"{gpu}->{gpu}", "", path="GPU memory")
    copy = copy_of((_DEVICE.sub("gpu", words), heading))
    if copy == "peer":
        return ToolValue("gpu0->gpu1", "gpu0->gpu1", path="peer")
    flow = to if copy == "host to device" else back
    return ToolValue(flow, flow, path=copy) if copy else None
