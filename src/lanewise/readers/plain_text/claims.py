"""What the sentences around a tool's output expect of it: a rate, the line of a network, the model of a drive.

An expectation is of the best row of each flow alone: a table of sizes begins with rates that nobody expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise import units
from lanewise.readers.plain_text.figure import TextFigure
from lanewise.readers.plain_text.text import claims_of
from lanewise.readers.tool_results import ImportedResults
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

_METRICS = ("goodput", "total", "bus_bandwidth", "iops", "latency", "latency_mean")
# Kernels of STREAM and mbw, which are rows of one flow: a figure of one of them is no figure of the others.
_KERNEL = re.compile(r"\b(copy|scale|add|triad|memcpy|dumb|mcblock)\b", re.IGNORECASE)
_ANOTHER_DAY = re.compile(r"\byesterday\b|\blast (?:night|week|month|year)\b", re.IGNORECASE)
# What was there on one and the same machine.
_SAME = re.compile(r"\bon (?:this|the same|that) (?:machine|server|host|box|system|volume|drive|disk)\b", re.IGNORECASE)
# A figure of another time, said beside the output that is asked about.
_EARLIER = re.compile(r"\b(?:was|were|had|showed|gave|reached)\b[^.;]{0,40}$", re.IGNORECASE)
_EARLIER_WORDS = re.compile(
    r"\b(?:yesterday|last (?:night|week|month|year)|before|previously|earlier|on (?:this|the same) \w+|with the)\b",
    re.IGNORECASE,
)
_PATHS = {
    "network": ("network", "collective"), "storage": ("storage",),
    "device": ("host to device", "device to host", "peer", "peer, staged", "collective", "GPU memory"),
    "host memory": ("host memory",),
}  # fmt: skip
# Data sheets of drives rate requests a second with 32 and more in flight. One at a time has the rate of its latency,
# and a read of flash takes about so long (s), whatever the drive (`references.drives`).
_RATED_WITH, _FLASH_READ = 32, 100e-6
_LONG = 128 * 2**10
# More flows than this are a matrix, which one figure says nothing of.
_MOST_FLOWS = 4


def with_claims(result: ImportedResults, lines: Sequence[str], file: str) -> ImportedResults:
    """The results of tools, with what the sentences of the text expect of them, and the line and drive they name."""
    figures, port, drive = claims_of(lines)
    wanted = [each for each in figures if each.role in ("expected", "nominal")]
    wanted = wanted or [replace(each, role="other") for each in figures if _is_earlier(each)]
    posted = result.posted
    if any(_SAME.search(f"{each.words.before} {each.words.after}") for each in wanted if each.role == "other"):
        posted = replace(posted, statements=(*posted.statements, Statement("faster before", "before", file)))
    if port and not posted.stated("line"):
        posted = replace(posted, statements=(*posted.statements, Statement("line", port, file)))
    if drive and not any(name.startswith("nvme") for name in posted.devices):
        posted = PostedFacts({**posted.devices, "nvme": drive}, posted.statements)
    rows = _expecting(result.observations, wanted)
    return replace(result, observations=rows, posted=posted)


def _expecting(rows: tuple[Observation, ...], wanted: Sequence[TextFigure]) -> tuple[Observation, ...]:
    """The rows, the best of each flow with the only rate that the text expects of its kind."""
    best: dict[tuple[str, str, str], Observation] = {}  # by flow, metric and kind of host memory
    for row in rows:
        if row.metric in _METRICS and row.value is not None:
            key = row.flow, row.metric, row.how.get("host memory", "")
            best[key] = max(best.get(key, row), row, key=lambda each: _goodness(each, wanted))
    if not wanted or not 0 < len({flow for flow, _, _ in best}) <= _MOST_FLOWS:
        return rows
    chosen = {id(row): figure for row in best.values() if (figure := _of_row(row, wanted)) is not None}
    return tuple(_with(row, chosen[id(row)]) if id(row) in chosen else row for row in rows)


def _is_earlier(figure: TextFigure) -> bool:
    """Whether a sentence says of a figure that it was so at another time or under another condition."""
    words = figure.words
    said = f"{words.before} {words.after}"
    if figure.role or _EARLIER_WORDS.search(said) is None:
        return False
    return _EARLIER.search(words.before) is not None or _ANOTHER_DAY.search(said) is not None


def _goodness(row: Observation, wanted: Sequence[TextFigure]) -> tuple[bool, float]:
    """The row of the kernel that the sentence names first, else the best one."""
    said = " ".join(f"{each.words.before} {each.words.after}" for each in wanted)
    kernels = {match[1].lower() for match in _KERNEL.finditer(said)}
    named = len(kernels) == 1 and next(iter(kernels)) in row.scenario.lower()
    value = row.value or 0.0
    return named, -value if row.unit == "s" else value


def _of_row(row: Observation, wanted: Sequence[TextFigure]) -> TextFigure | None:
    """The figure that is expected of a row: the only one of its unit, path and direction."""
    rates = [each for each in wanted if each.quantity.si == row.unit]
    way = {"storage": "write" if row.flow.startswith("host") else "read"}.get(row.path, "")
    way = {"host to device": "write", "device to host": "read"}.get(row.path, way)
    flight = row.settings.get("depth", _RATED_WITH) * row.settings.get("threads", 1)
    few = row.metric == "iops" and flight < _RATED_WITH and flight <= _FLASH_READ * (row.value or 0.0)
    # So do rates in GB/s of drives and file systems, of long requests.
    small = row.path == "storage" and row.metric == "goodput" and 0 < row.settings.get("bytes", 0) < _LONG
    like = [
        each for each in rates
        if not ((few or small) and each.role == "nominal")
        and (not each.path or row.path in _PATHS.get(each.path, ())) and (not each.way or not way or each.way == way)
    ]  # fmt: skip
    values = {each.quantity.value for each in like}
    return like[0] if len(values) == 1 else None


def _with(row: Observation, figure: TextFigure) -> Observation:
    expected = units.show(figure.quantity.value, figure.quantity.unit)
    return replace(row, how={**row.how, "expected": expected, "expectation": figure.role})
