"""ROCm Validation Suite: the copies of its modules `pbqt` between GPUs and `pebb` between host memory and GPUs.

Source of what is read: the suite's own sources (github.com/ROCm/ROCmValidationSuite). GPUs have identifiers there, in
newer versions nodes and PCI addresses; they are gpu0 and on in the order of these numbers here, which need not be that
of PCI. Both ways are the sum. Its GB is 1e9 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

TOOL = "RVS"
_LAST = r"\s+(\d[\d.]{0,15}) GBps\b(?! \(\*\))"
_COUNT = r"\s*\[ ?\d+/ ?\d+\]"
# An identifier by itself, or as newer versions print it: '[GPU:: 2 - 42583 - 0000:05:00.0]', '[CPU:: 1]'.
_GPU = r"\s+(?:\[GPU::\s{1,6})?(\d{1,9})(?: -\s{1,8}\d{1,9} - \S{1,16}\])?"
_CPU = r"\s+(?:\[CPU::\s{1,6})?(\d{1,9})\]?"
_PEER = re.compile(rf"p2p-bandwidth{_COUNT}{_GPU}{_GPU}\s+bidirectional:\s{{0,4}}(true|false){_LAST}")
_HOST = re.compile(rf"pcie-bandwidth{_COUNT}{_CPU}{_GPU}\s+h2d::? ?(true|false)\s+d2h::? ?(true|false){_LAST}")
# The suite's folders of configurations have the names of GPUs.
_CONFIGURATION = re.compile(r"\brvs\b.{0,200}conf/(MI\d{3}[AX]?)/")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a result of those modules."""
    return any(kind.search(line) for line in lines if "-bandwidth" in line for kind in (_PEER, _HOST))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The last figure of each copy: those of a run that goes on come before, marked or as [INFO]."""
    found = [(number, match) for number, line in enumerate(lines, 1) if "-bandwidth" in line
             if (match := _PEER.search(line) or _HOST.search(line))]  # fmt: skip
    numbers = {int(word) for _, match in found for word in _gpus(match)}
    names = {number: f"gpu{index}" for index, number in enumerate(sorted(numbers))}
    rows: dict[tuple[str, str], Observation] = {}
    for number, match in found:
        value = _value(match, [names[int(word)] for word in _gpus(match)])
        peer = match.re is _PEER
        rate, how = figure(match[match.re.groups], Location(file, number)), {"p2p": "on" if peer else ""}
        if value.flow and rate:  # an interval in which no copy ended has none
            scenario = "p2p-bandwidth" if peer else "pcie-bandwidth"
            rows[value.flow, value.metric] = observation(TOOL, scenario, value, rate, how, {})
    check_rows(list(rows.values()), Location(file, len(lines)))
    notes = (f"{file}: gpuN is the Nth of the suite's identifiers, {', '.join(map(str, sorted(numbers)))}",)
    models = {match[1] for line in lines if (match := _CONFIGURATION.search(line))}
    posted = PostedFacts({"gpu": f"AMD Instinct {models.pop()}"} if len(models) == 1 else {})
    return ImportedResults(TOOL, tuple(rows.values()), notes=notes, posted=posted)


def _gpus(match: re.Match[str]) -> tuple[str, ...]:
    return (match[1], match[2]) if match.re is _PEER else (match[2],)


def _value(match: re.Match[str], gpus: Sequence[str]) -> ToolValue:
    """What the figure of a line is; without a flow where it is of neither way."""
    peer = match.re is _PEER
    first, second = gpus if peer else ("host0" if match[1] == "0" else f"host0:{match[1]}", gpus[0])
    there, back = (True, match[3] == "true") if peer else (match[3] == "true", match[4] == "true")
    ways = [(f"{first}->{second}", "host to device")] * there + [(f"{second}->{first}", "device to host")] * back
    flow, both = ", ".join(way for way, _ in ways), len(ways) == 2
    path = "peer" if peer else ", ".join(name for _, name in ways)
    return ToolValue(flow, flow, "total" if both else "goodput", path=path, note="the sum of both ways" if both else "")
