"""TransferBench: tests of transfers that run at once, the matrices of its presets p2p and a2a. Its GB is 1e9 bytes.

Source of what is read: the tool's own documentation and output (github.com/ROCm/TransferBench). A transfer is written
source -> executor -> destination; G and F are memory of a GPU, C and B of a CPU, N is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import MAX_COLUMNS, WHOLE, count, ends_within, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "TransferBench"
_TRANSFER = re.compile(
    r"Transfer\s+\d+\s*\|\s*([\d.]+)\s*GB/s\s*\|\s*[\d.]+\s*ms\s*\|\s*(\d+)\s*bytes\s*\|\s*"
    r"(\w+)\s*->\s*([A-Z]+)[\d.*]+:\d+\s*->\s*(\w+)"
)
_TEST = re.compile(r"Test (\d+):")
_MATRIX = re.compile(r"(Unidirectional|Bidirectional) copy peak bandwidth GB/s \[.*\] \(GPU-Executor: (\w+)\)")
_HEAD = re.compile(r"SRC(?:\+EXE)?\\DST\s")
# The preset a2a: all pairs at once, then the sum of each source.
_ALL = re.compile(r"Summary: \[(\d{1,15}) bytes per Transfer\] \[(GFX|DMA)\b")
_ALL_ROW = re.compile(r"GPU (\d{1,6})\s+(\S.*)")
_MATRIX_ROW = re.compile(r"([CG]PU \d{1,6})\s*(<->|->|<-)\s+(\S.*)")
_MEMORY = re.compile(r"([A-Z])(\d{1,3})")
_BARS = str.maketrans("│┬┼┴─", "|||||")
_ENGINES = {"G": "SM", "GPU": "SM", "D": "copy engine", "DMA": "copy engine", "C": "CPU", "CPU": "CPU"}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of TransferBench."""
    plain = [line.strip().translate(_BARS).replace("\\|", "|") for line in lines]
    return any(kind.match(line) for line in plain for kind in (_MATRIX, _ALL, _TRANSFER))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The transfers of each test, which run at once, and every matrix; FormatError with the line of one cut short."""
    rows: list[Observation] = []
    transfers: list[tuple[re.Match[str], Location]] = []
    test = ""
    for at, line in enumerate(lines):
        plain = line.strip().translate(_BARS).replace("\\|", "|")
        if match := _TRANSFER.match(plain):
            transfers.append((match, Location(file, at + 1)))
        elif match := _TEST.match(plain):
            rows += _test(test, transfers)
            transfers, test = [], match[1]
        elif match := _MATRIX.match(plain):
            rows += _test(test, transfers)
            transfers = []
            rows += _matrix(lines, at + 1, file, match[1], match[2])
        elif match := _ALL.match(plain):
            rows += _all_pairs(lines, at + 1, file, match)
        check_rows(rows, Location(file, at + 1))
    rows += _test(test, transfers)
    return ImportedResults(TOOL, tuple(rows))


def _test(test: str, transfers: Sequence[tuple[re.Match[str], Location]]) -> Iterator[Observation]:
    """The transfers of one test as flows that ran together; those without both memories are left out."""
    flows = [(match, location, _flow(match[3], match[5])) for match, location in transfers]
    together = ", ".join(dict.fromkeys(flow for _, _, flow in flows if flow))
    if len(flows) > MAX_COLUMNS * MAX_COLUMNS:
        raise FormatError("more transfers than a machine has pairs", location=flows[0][1], hint=WHOLE)
    for match, location, flow in flows:
        if flow:
            source, target = flow.split("->")
            kind = ToolValue(flow, together, path=_path(source, target))
            how = {"engine": _ENGINES.get(match[4], match[4]), "p2p": "on" if kind.path == "peer" else ""}
            settings = {"bytes": count(match[2], location)}
            yield observation(TOOL, f"test {test}".strip(), kind, figure(match[1], location), how, settings)


def _flow(source: str, target: str) -> str:
    """'G0' and 'C1' as gpu0->host0:1; nothing where one of them is not one memory."""
    ends = []
    for text in (source, target):
        match = _MEMORY.fullmatch(text)
        if match is None or match[1] not in "GFUCBDK":
            return ""
        ends.append(f"gpu{int(match[2])}" if match[1] in "GFU" else f"host0:{int(match[2])}")
    return "->".join(ends)


def _matrix(lines: Sequence[str], start: int, file: str, way: str, executor: str) -> Iterator[Observation]:
    head = lines[start].strip() if start < len(lines) else ""
    columns = [_device(name) for name in re.findall(r"[CG]PU \d{1,6}\b", head)] if _HEAD.match(head) else []
    if not columns or len(columns) > MAX_COLUMNS:
        raise FormatError("no matrix below its title", location=Location(file, start + 1), hint=WHOLE)
    number, read = start + 1, 0
    while number < len(lines) and not lines[number].strip().startswith(("Averages", "CPU->CPU")):
        match = _MATRIX_ROW.match(lines[number].strip())
        if match:
            words = match[3].split()
            if read and ends_within(lines, number, ["", *words], len(columns) + 1):
                return  # the text breaks off
            if len(words) != len(columns):
                cause = f"{len(words)} cells for {len(columns)} columns"
                raise FormatError(cause, location=Location(file, number + 1), hint=WHOLE)
            read += 1
            yield from _cells(match, columns, words, way, executor, Location(file, number + 1))
        elif lines[number].strip():
            break
        number += 1
    if read < len(columns) and not (read and ends_within(lines, number, [], 0)):
        raise FormatError(f"the matrix ends after {read} rows", location=Location(file, number), hint=WHOLE)


def _all_pairs(lines: Sequence[str], start: int, file: str, title: re.Match[str]) -> Iterator[Observation]:
    """The cells of the preset a2a, all of which ran at once; its sums of rows and columns are left out."""
    head = next((at for at in range(start, min(start + 3, len(lines))) if _HEAD.match(lines[at].strip())), start)
    gpus = [int(number) for number in re.findall(r"GPU (\d{1,6})\b", lines[head] if head < len(lines) else "")]
    if not gpus or len(gpus) > MAX_COLUMNS:
        raise FormatError("no matrix below its title", location=Location(file, start + 1), hint=WHOLE)
    cells: list[tuple[str, str, Location]] = []
    for at, source in enumerate(gpus, head + 1):
        match = _ALL_ROW.match(lines[at].strip()) if at < len(lines) else None
        words = match[2].split() if match and int(match[1]) == source else []
        if cells and len(words) < len(gpus) and ends_within(lines, at, words, len(gpus)):
            break  # the text breaks off
        if len(words) < len(gpus):
            cause = f"{len(words)} cells for {len(gpus)} columns"
            raise FormatError(cause, location=Location(file, at + 1), hint=WHOLE)
        pairs = zip(gpus, words, strict=False)
        cells += [(f"gpu{source}->gpu{gpu}", word, Location(file, at + 1)) for gpu, word in pairs if word != "N/A"]
    whole = len({flow.partition("->")[0] for flow, _, _ in cells}) == len(gpus)
    every = [flow for flow, _, _ in cells] if whole else [f"gpu{a}->gpu{b}" for a in gpus for b in gpus if a != b]
    together = ", ".join(every)
    how, settings = {"engine": "SM" if title[2] == "GFX" else "copy engine", "p2p": "on"}, {}
    settings["bytes"] = count(title[1], Location(file, start))
    for flow, word, at_line in cells:
        yield observation(TOOL, "a2a", ToolValue(flow, together, path="peer"), figure(word, at_line), how, settings)


def _cells(
    match: re.Match[str], columns: Sequence[str], words: Sequence[str], way: str, executor: str, at: Location
) -> Iterator[Observation]:
    """The cells of one row; of both ways only the sum: the other lines repeat it by direction."""
    both = way == "Bidirectional"
    if both and match[2] != "<->":
        return
    row = _device(match[1])
    for column, word in zip(columns, words, strict=True):
        if word == "N/A" or (row == column and row.startswith("host")):
            continue
        flow = f"{row}->{column}" + (f", {column}->{row}" if both else "")
        path = _path(row, column)
        kind = ToolValue(flow, "" if row == column else flow, "total" if both else "goodput", path=path)
        engine = "CPU" if row.startswith("host") else "copy engine" if executor == "DMA" else "SM"
        how = {"engine": engine, "p2p": "on" if path == "peer" else ""}
        yield observation(TOOL, f"p2p {way.lower()}", kind, figure(word, at), how, {})


def _device(name: str) -> str:
    kind, number = name.split()
    return f"gpu{int(number)}" if kind == "GPU" else f"host0:{int(number)}"


def _path(source: str, target: str) -> str:
    if source.startswith("host"):
        return "host memory" if target.startswith("host") else "host to device"
    if target.startswith("host"):
        return "device to host"
    return "GPU memory" if source == target else "peer"
