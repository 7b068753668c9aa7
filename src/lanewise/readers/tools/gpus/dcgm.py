"""`dcgmi diag`: the test of PCIe, as a table or JSON, and what failed. GB are 1e9 bytes, the bidirectional rate a sum.

The table breaks its lines within words, so blanks are left out before it is read. Pinned memory, one GPU at a time.
Version 4 names the GPU of a line in the left column (`Info: GPU0`). The GPUs' PCI ids say what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.catalog.pci_parts import PARTS
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

TOOL = "dcgmi diag"
_VALUE = re.compile(
    r"(?:GPU(?P<gpu>\d{1,6}))?(?P<way>GPUtoHost|HosttoGPU|bidirectional)(?P<what>bandwidth|latency):"
    r"(?P<value>\d{1,12}(?:\.\d{1,12})?)(?:GB/s|us)"
)
_KNOWN = re.compile(r"(?:GPU to Host|Host to GPU|bidirectional) bandwidth:")
_TABLE = re.compile(r"\|\s*(Diagnostic|PCIe)\s*\|", re.IGNORECASE)
_ENTITY = re.compile(r"\|\s*(?:Info|Warning): GPU ?(\d{1,6})\s*\|")
_FAILED_CELL = re.compile(r"\|\s*(?P<test>[^|]{0,60}?)\s*\|\s*(?P<which>(?:GPU ?\d{1,6}: )?Fail\b[^|]{0,60}?)\s*\|?$")
_FAILED = re.compile(r'"(?:status|result)"\s*:\s*"Fail')
# The message of a cell, and what it says of links (DCGM, dcgm_errors.h: of a width it says "link generation" as well).
_CELL = re.compile(r"\|\s*(?P<left>[^|]*?)\s*\|\s*(?P<text>[^|]*?)\s*\|?$")
_LINK = re.compile(
    r"GPU (?P<gpu>\d{1,3}) is running at PCI link (?:width (?P<width>\d{1,2})X|generation (?P<gen>\d)), "
    r"which is below the minimum allowed link generation of (?P<least>\d{1,2})\b"
)
_DIAGNOSTIC = re.compile(r"\|\s*Diagnostic\s*\|\s*Result\s*\|")
# A line of its table that people cut out.
_EXCERPT = re.compile(
    r"\|\s*(?:PCIe|Memory|Memory Bandwidth|Diagnostic|Memtest|Targeted (?:Stress|Power)|EUD Test|NVBandwidth|Software|"
    r"Denylist|NCCL Tests)\s*\|\s*Fail\b", re.IGNORECASE,
)  # fmt: skip
_DEVICE_IDS = re.compile(r"GPU Device IDs Detected\s*\|\s*([0-9a-f]{4}(?:, ?[0-9a-f]{4})*)\s*\|")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold the table of `dcgmi diag`, or its JSON, with rates of PCIe."""
    return any(_KNOWN.search(line) or _DIAGNOSTIC.search(line) or _EXCERPT.match(line.strip()) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Rates and latencies of each GPU, and what failed; FormatError if the GPU of a value is not stated.

    A run that failed before it measured anything has no rates.
    """
    table = any(_TABLE.match(line.strip()) or _EXCERPT.match(line.strip()) for line in lines)
    rows = [*_table(lines, file)] if table else [*_entities("\n".join(lines), file)]
    check_rows(rows, Location(file))
    links = [*_lesser_links(lines, file)]
    # Of a link that is too slow the test of PCIe fails: the link is the reason.
    failures = [each for each in _failures(lines, file) if not (links and re.search(r"diag, pcie:", each.value, re.I))]
    if not rows and not links and not failures:
        if not table:
            raise FormatError("no rate in what dcgmi diag printed", location=Location(file), hint="give it with -v")
        notes = (f"{file}: {TOOL} prints no rate and nothing failed; -r 3 -v prints the rates of PCIe",)
        return ImportedResults(TOOL, (), notes=notes, posted=PostedFacts(_names(lines)))
    posted = PostedFacts(_names(lines), (*links, *failures))
    return ImportedResults(TOOL, tuple(rows), posted=posted)


def _lesser_links(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The links that a warning says to be narrower or slower than the tool's limit; warnings fill several cells."""
    texts: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        cell = _CELL.match(line.strip())
        if cell and not cell["left"] and texts:
            texts[-1] = texts[-1][0], f"{texts[-1][1]} {cell['text']}"
        else:
            texts.append((number, cell["text"] if cell else line))
    for number, text in texts:
        for match in _LINK.finditer(" ".join(text.split())):
            gpu, least = f"GPU {match['gpu']}", match["least"]
            if match["width"]:
                yield Statement("link width", f"{gpu} x{match['width']} of x{least}", f"{file}:{number}")
            else:
                yield Statement("link speed", f"{gpu} Gen{match['gen']} of Gen{least}", f"{file}:{number}")


def _names(lines: Sequence[str]) -> dict[str, str]:
    """The parts of the GPUs by their PCI ids, which are those of all GPUs, tested or not, in their order."""
    listed = next((match[1] for line in lines if (match := _DEVICE_IDS.search(line))), "")
    ids = enumerate(re.findall(r"[0-9a-f]{4}", listed))
    return {f"gpu{number}": part for number, device in ids if (part := PARTS.get(f"10de:{device}"))}


def _failures(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """Each test that the tool itself calls failed, with its line."""
    test, told = "", set[str]()
    for number, line in enumerate(lines, 1):
        if named := re.search(r'"name"\s*:\s*"([^"]{1,60})"', line):
            test = named[1]
        cell = _FAILED_CELL.match(line.strip())
        if cell or _FAILED.search(line):
            test = (cell["test"] or test) if cell else test
            if (value := f"{test}: {cell['which'] if cell else 'Fail'}") not in told:
                told.add(value)
                yield Statement("failed test", f"dcgmi diag, {value}", f"{file}:{number}")


def _table(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The values of a table: those of version 4 are of the GPU in the left column of their first line."""
    parts: list[tuple[str | None, list[str]]] = [(None, [])]
    for line in lines:
        if entity := _ENTITY.match(line.strip()):
            parts.append((entity[1], []))
        parts[-1][1].append(_ENTITY.sub("", line))
    for gpu, text in parts:
        for match in _VALUE.finditer(re.sub(r"[|\s]+", "", "\n".join(text))):
            yield _row(match, match["gpu"] or gpu, file)


def _entities(text: str, file: str) -> Iterator[Observation]:
    """JSON, whole or a part of it: `entity_id` of version 4 comes before the values that it is of."""
    entity = None
    for line in re.split(r"[\n{}]", text):
        if match := re.search(r'"entity_id"\s*:\s*(\d{1,6})', line):
            entity = match[1]
        for match in _VALUE.finditer(re.sub(r"\\t|\s+", "", line)):
            yield _row(match, match["gpu"] or entity, file)


def _row(match: re.Match[str], gpu: str | None, file: str) -> Observation:
    if gpu is None:
        raise FormatError("which GPU is this of?", location=Location(file), hint="give the whole output of dcgmi diag")
    device = f"gpu{count(gpu, Location(file))}"
    up, down = f"host0->{device}", f"{device}->host0"
    flow, path = {
        "HosttoGPU": (up, "host to device"), "GPUtoHost": (down, "device to host"),
        "bidirectional": (f"{up}, {down}", "host to device, device to host"),
    }[match["way"]]  # fmt: skip
    rate, both = match["what"] == "bandwidth", match["way"] == "bidirectional"
    metric = ("total" if both else "goodput") if rate else "latency"
    note = "the sum of both ways" if both and rate else ""
    kind = ToolValue(flow, flow, metric, "GB/s" if rate else "us", path, note)
    how = {"engine": "copy engine", "host memory": "pinned"}
    return observation(TOOL, f"pcie {match['way']}", kind, figure(match["value"], Location(file)), how, {})
