"""rocm_bandwidth_test (rocm-bandwidth-test): matrices of copies between CPUs and GPUs. Its GB is 1e9 bytes.

Source of what is read: the tool's own sources (github.com/ROCm/rocm_bandwidth_test). Row to column; the bidirectional
matrix is the sum of both ways. Copies within a device are memory's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, ends_within, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

TOOL = "rocm_bandwidth_test"
_VERSION = re.compile(r"RocmBandwidthTest Version: *(\S+)")
# NVIDIA's samples list theirs alike, with a pciBusID.
_DEVICE = re.compile(r"Device:\s+(\d+),\s+(?!.*pciBusID)(\S.*)")
_BUS = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{1,2}\.\d$")
# Version 1 writes "Unidirectional peak bandwidth" and "Bdirectional".
_RATES = re.compile(r"(Unidirectional|B[i]?directional) (?:copy )?(?:peak )?bandwidth GB/s$")
# A GPU whose name the driver does not know: its PCI id.
_UNNAMED = re.compile(r"Device [0-9a-f]{4}$")
_ACCESS = re.compile(r"(?:Inter-)?Device Access$")
_EMPTY = ("N/A", "-", "nan")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold matrices of rocm_bandwidth_test."""
    plain = [line.strip() for line in lines]
    devices = any(_DEVICE.match(line) for line in plain)
    return any(_VERSION.match(line) for line in plain) or (devices and any(_RATES.match(line) for line in plain))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every matrix and who can access whom; FormatError with the line where one is cut short."""
    plain = [line.strip() for line in lines]
    version = next((match[1] for line in plain if (match := _VERSION.match(line))), "")
    names, titles = _devices(plain, file)
    listed = [match[2] for line in plain if (match := _DEVICE.match(line))]
    stated = [Statement("cpu", text, file) for text in listed if text.split(",")[0] not in titles.values()]
    rows: list[Observation] = []
    peers: dict[tuple[str, str], bool] = {}
    for at, line in enumerate(plain):
        if match := _RATES.match(line):
            rows += _observations(f"{TOOL} {version}".strip(), _matrix(plain, at + 1, file, names), match[1])
            check_rows(rows, Location(file, at + 1))
        elif _ACCESS.match(line):
            for source, target, value in _matrix(plain, at + 1, file, names):
                if source != target and source.startswith("gpu") and target.startswith("gpu"):
                    peers[source, target] = value == 1
    if not rows and not peers:
        raise FormatError("no matrix of rocm_bandwidth_test", location=Location(file, len(lines)), hint=WHOLE)
    return ImportedResults(f"{TOOL} {version}".strip(), tuple(rows), peers, posted=PostedFacts(titles, tuple(stated)))


def _devices(plain: Sequence[str], file: str) -> tuple[dict[str, str], dict[str, str]]:
    """Our name of each of the tool's device numbers, and the tool's name of each of ours. A GPU has a bus address."""
    listed = [(match[1], match[2], number) for number, line in enumerate(plain, 1) if (match := _DEVICE.match(line))]
    if not listed or len(listed) > MAX_COLUMNS:
        hint = "keep the lines 'Device: 0,  AMD EPYC ...' above the matrices"
        raise FormatError("rocm_bandwidth_test without its list of devices", location=Location(file, 1), hint=hint)
    gpu_words = ("Radeon", "Instinct", "MI", "Vega", "gfx")
    is_gpu = {
        index: bool(_BUS.search(text) or _UNNAMED.match(text))
        or (any(word in text for word in gpu_words) and "Processor" not in text)
        for index, text, _ in listed
    }  # fmt: skip
    cpus = [index for index, gpu in is_gpu.items() if not gpu]
    gpus = [index for index, gpu in is_gpu.items() if gpu]
    names = {index: f"host0:{node}" if len(cpus) > 1 else "host0" for node, index in enumerate(cpus)}
    names |= {index: f"gpu{number}" for number, index in enumerate(gpus)}
    return names, {names[index]: text.split(",")[0].strip() for index, text, _ in listed if is_gpu[index]}


def _matrix(
    plain: Sequence[str], start: int, file: str, names: dict[str, str]
) -> Iterator[tuple[str, str, float | None]]:
    """Source, target and value of every cell of the matrix below line `start`; blank lines lie between its rows."""
    numbers = (number for number in range(start, len(plain)) if plain[number])
    first = next(numbers, len(plain))
    head = plain[first].split() if first < len(plain) else []
    if head[:1] != ["D/D"] or any(word not in names for word in head[1:]):
        raise FormatError("no matrix below its title", location=Location(file, start), hint=WHOLE)
    for at, index in enumerate(head[1:], 1):
        number = next(numbers, len(plain))
        words = plain[number].split() if number < len(plain) else []
        if at > 1 and ends_within(plain, number, words, len(head)):
            return  # the text breaks off
        location = Location(file, number + 1)
        if len(words) != len(head) or words[0] != index:
            raise FormatError(f"the matrix ends after {at - 1} of {len(head) - 1} rows", location=location, hint=WHOLE)
        for target, word in zip(head[1:], words[1:], strict=True):
            yield names[index], names[target], None if word in _EMPTY else figure(word, location)


def _observations(tool: str, cells: Iterator[tuple[str, str, float | None]], way: str) -> Iterator[Observation]:
    for source, target, value in cells:
        if value is None:
            continue
        flow, both = f"{source}->{target}", way != "Unidirectional"
        path = _path(source, target)
        if both:
            flow = f"{flow}, {target}->{source}"
        note = "the sum of both ways" if both else ""
        kind = ToolValue(flow, "" if source == target else flow, "total" if both else "goodput", path=path, note=note)
        how = {"engine": "copy engine", "p2p": "on" if path == "peer" else ""}
        yield observation(tool, f"{'bi' if both else 'uni'}directional", kind, value, how, {})


def _path(source: str, target: str) -> str:
    if source.startswith("host"):
        return "host memory" if target.startswith("host") else "host to device"
    if target.startswith("host"):
        return "device to host"
    return "GPU memory" if source == target else "peer"
