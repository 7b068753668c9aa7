"""`dcgmi diag`: the test of PCIe, as a table or JSON. Its GB is 1e9 bytes; the bidirectional rate is a sum.

The table breaks its lines within words, so blanks are left out before it is read. Pinned memory, one GPU at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.errors import FormatError, Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "dcgmi diag"
_VALUE = re.compile(
    r"(?:GPU(?P<gpu>\d{1,6}))?(?P<way>GPUtoHost|HosttoGPU|bidirectional)(?P<what>bandwidth|latency):"
    r"(?P<value>\d{1,12}(?:\.\d{1,12})?)(?:GB/s|us)"
)
_KNOWN = re.compile(r"(?:GPU to Host|Host to GPU|bidirectional) bandwidth:")
_TABLE = re.compile(r"\|\s*(Diagnostic|PCIe)\s*\|")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold the table of `dcgmi diag`, or its JSON, with rates of PCIe."""
    return any(_KNOWN.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Rates and latencies of each GPU, and what failed; FormatError if the GPU of a value is not stated."""
    text = "\n".join(lines)
    failures = [f"{file}: dcgmi says: {line.strip(' |')}"[:200] for line in lines if re.search(r"\|\s*Fail\b", line)]
    if any(_TABLE.match(line.strip()) for line in lines):
        matches = list(_VALUE.finditer(re.sub(r"[|\s]+", "", text)))
        rows = [_row(match, match["gpu"], file) for match in matches]
    else:
        rows = [*_entities(text, file)]
    check_rows(rows, Location(file))
    if not rows:
        raise FormatError("no rate in what dcgmi diag printed", location=Location(file), hint="give it with -v")
    return ImportedResults(TOOL, tuple(rows), notes=tuple(failures))


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
