"""perftest (ib_write_bw, ib_read_lat, ...): its tables and its JSON, also the JSON of before 2024 that is none.

Its MB is 2^20 bytes, its Gb 1e9 bits; the JSON does not say which, but size times message rate does. host0 is the
client. Typical latencies of writes and sends are half a round trip, those of reads a whole one.
A GPU is that of the client, by its command.
Source: the tool's own sources (github.com/linux-rdma/perftest).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.commands import memory_node, options_of
from lanewise.results.observation import Observation

_TITLE = re.compile(
    r"(RDMA_Write|RDMA_Read|Send|Atomic)(?:_imm)?[ _](?:[A-Z]{1,20}_AND_[A-Z]{1,20}[ _])?"
    r"(Bidirectional[ _])?(?:Post[ _]List[ _])?(BW|Latency)[ _](?:\w{1,20}[ _])?Test"
)
_HEADS = re.compile(
    r"#bytes|#sl|#iterations|BW peak\[(?P<peak>\w+)/sec\]|BW average\[(?P<unit>\w+)/sec\]|MsgRate\[Mpps\]"
    r"|t_\w{1,20}\[usec\]|99(?:\.9)?% percentile\[usec\]|tps average|CPU_Util\[%\]"
)
# What stands above a table, two to a line, also where a page left one blank between them; a key and value of the JSON.
_STATED = re.compile(r"\b(Number of qps|TX depth|Device)\s*:\s*(\S{1,80})")
_FIELD = re.compile(r'(?<![\w.])"?([A-Za-z][\w.]{0,40})"?\s{0,8}:\s{0,8}"?([^",{}\s]{1,80})')
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SCALES = {"MB": MIB, "MiB": MIB, "Gb": 1e9 / 8}
_WORDS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}
# The command that people paste above a table, and the GPU whose memory it sends: --use_cuda=0.
_COMMAND = re.compile(r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\b(?=\s)")
_PICKED, _GPU = re.compile(r"Picking device No\. (\d{1,3})\b"), re.compile(r"[0-9]{1,2}")
# By the heads of tables, and by the keys of the JSON.
_LATENCIES = {
    "t_typical[usec]": "latency_p50", "99% percentile[usec]": "latency_p99", "99.9% percentile[usec]": "latency_p99.9",
    "t_typical": "latency_p50", "percentile_99": "latency_p99", "percentile_99.9": "latency_p99.9",
}  # fmt: skip


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table or JSON of perftest."""
    return any(_is_head(line) or "test_info" in line for line in lines)


def _is_head(line: str) -> bool:
    """Whether a line is the heads of a table; oneCCL's and Intel MPI Benchmarks' begin alike."""
    others = ("#elem_count", "#repetitions")
    return line.lstrip().startswith("#bytes") and not any(word in line for word in others)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every row of every table, or the one result of a JSON; FormatError with the line of a table without rows."""
    rows: list[Observation] = []
    last = end = 0
    for at, line in enumerate(lines):
        if "test_info" in line:
            end = _end_of_json(lines, at, file)
            rows += _read_json(lines[last:end], last, file)
            last = end
        elif _is_head(line) and at >= end:
            test = _Test(lines[last:at], Location(file, at + 1), line)
            rows += _table(test, lines, at, file)
            last = at
        check_rows(rows, Location(file, at + 1))
    return ImportedResults("perftest", tuple(rows))


class _Test:
    """The header above a table: which test, on which device, with how many queue pairs."""

    def __init__(self, lines: Sequence[str], location: Location, head: str = "") -> None:
        titles = [match for line in lines if (match := _TITLE.search(line))]
        pasted = next((match[0] for line in reversed(lines) if (match := _COMMAND.search(line))), "")
        options = options_of(lines, _COMMAND.pattern) if pasted else {}
        if not titles and not pasted and "BW average" not in head:
            hint = "keep the lines above it, from 'RDMA_Write Latency Test' on"
            raise FormatError("which test of perftest is this?", location=location, hint=hint)
        # A table of rates is of one way in most posts; which verb moved the bytes changes little.
        verbs = {word: verb for verb, word in _WORDS.items()}
        self.verb: str = titles[-1][1] if titles else verbs.get(pasted.split("_")[1] if pasted else "", "")
        self.both = bool(titles[-1][2] if titles else {"-b", "--bidirectional"} & options.keys())
        self.bandwidth = titles[-1][3] == "BW" if titles else not pasted.endswith("_lat")
        kind = f"{'bw' if self.bandwidth else 'lat'}{' bidirectional' if self.both else ''}"
        self.name = f"ib_{_WORDS[self.verb]}_{kind}" if self.verb else "perftest, a test of bandwidth"
        fields = [match for line in lines for match in (*_FIELD.finditer(line), *_STATED.finditer(line))]
        self.fields = {match[1].replace(" ", "_"): match[2] for match in fields}
        self.card = self.fields.get("Device", "") or options.get("-d", options.get("--ib-dev", ""))
        picked = [match[1] for line in lines if (match := _PICKED.search(line))]
        gpu = options.get("--use_cuda", options.get("--use_rocm", picked[-1] if picked else ""))
        self.node = memory_node(lines)
        self.near = f"gpu{int(gpu)}" if _GPU.fullmatch(gpu) else "host0"

    def settings(self, size: float) -> dict[str, int]:
        settings = {"bytes": int(size)}
        for key, name in (("connections", "Number_of_qps"), ("depth", "TX_depth")):
            value = units.whole(self.fields.get(name, ""))
            if value is not None:
                settings[key] = value
        return settings

    def observe(self, metric: str, unit: str, value: float | None, size: float, note: str = "") -> Observation:
        """One value of this test."""
        forward, back = f"{self.near}->host1", f"host1->{self.near}"
        flow, flows = (back, f"{back} read") if self.verb == "RDMA_Read" else (forward, forward)
        if self.both and self.bandwidth:
            flow, flows, metric = f"{forward}, {back}", f"{forward}, {back}", "total" if metric == "goodput" else metric
            note = note or "the sum of both ways"
        if not self.verb:
            note = note or "the text does not say which test it is; taken for one way"
        node = {"NUMA node": self.node} if self.node else {}
        how = node | {"engine": f"RDMA {_WORDS.get(self.verb, '')}".strip(), "device": self.card}
        tool_value = ToolValue(flow, flows, metric, unit, "network", note)
        return observation("perftest", self.name, tool_value, value, how, self.settings(size))

    def latencies(self, figures: Mapping[str, float], size: float) -> Iterator[Observation]:
        """The percentiles among the figures; the mean where there are none."""
        trip = "a whole round trip" if self.verb in ("RDMA_Read", "Atomic") else "half a round trip"
        metrics = {head: metric for head, metric in _LATENCIES.items() if head in figures}
        means = {head: "latency_mean" for head in ("t_avg[usec]", "t_avg") if head in figures}
        for head, metric in (metrics or means).items():
            yield self.observe(metric, "us", figures[head], size, trip)


def _table(test: _Test, lines: list[str], at: int, file: str) -> Iterator[Observation]:
    heads = [match[0] for match in _HEADS.finditer(lines[at])]
    unit = next((match["unit"] for match in _HEADS.finditer(lines[at]) if match["unit"]), "")
    rows = 0
    for number in range(at + 2, len(lines) + 1):
        words = lines[number - 1].split()
        if words[:2] == ["Conflicting", "CPU"]:
            continue  # perftest's own warning, printed below the heads
        if not words or not _NUMBER.fullmatch(words[0]):
            break
        if len(words) < len(heads) or not all(map(_NUMBER.fullmatch, words)):
            cause = f"{len(words)} figures below {len(heads)} heads"
            raise FormatError(cause, location=Location(file, number), hint=WHOLE)
        rows += 1
        figures = [figure(word, Location(file, number)) for word in words]
        yield from _row(test, dict(zip(heads, figures, strict=False)), unit)
    if not rows:
        raise FormatError("perftest's table has no rows", location=Location(file, at + 1), hint=WHOLE)


def _row(test: _Test, figures: Mapping[str, float], unit: str) -> Iterator[Observation]:
    size = figures["#bytes"]
    average = figures.get(f"BW average[{unit}/sec]")
    if average is not None:
        yield test.observe("goodput", "GB/s", average * _SCALES.get(unit, MIB) / 1e9, size)
    yield from test.latencies(figures, size)


def _end_of_json(lines: Sequence[str], at: int, file: str) -> int:
    """The line after the results of the JSON that begins in line `at`; FormatError if it breaks off before."""
    inside = False
    for number, line in enumerate(lines[at:], at + 1):
        _, results, rest = line.partition("results")
        inside = inside or bool(results)
        if inside and "}" in (rest if results else line):
            return number
    raise FormatError("perftest's JSON breaks off", location=Location(file, len(lines)), hint="give the whole file")


def _read_json(lines: list[str], above: int, file: str) -> list[Observation]:
    """The figures of one JSON, with so many lines of the file above it."""
    test = _Test(lines, Location(file, above + 1))
    fields = test.fields
    try:
        figures = {
            key: figure(value, _place(lines, value, above, file))
            for key, value in fields.items()
            if _NUMBER.fullmatch(value)
        }
        size = figures["MsgSize"]
        rows = [*test.latencies(figures, size)]
        if "BW_average" in figures:
            rows.append(_rate(test, figures["BW_average"], figures["MsgRate"], size))
    except KeyError as error:
        cause = f"perftest's JSON lacks {error}"
        raise FormatError(cause, location=Location(file), hint="give the whole file") from None
    return rows


def _place(lines: Sequence[str], value: str, above: int, file: str) -> Location:
    """The first line that has that value."""
    return Location(file, next((number for number, line in enumerate(lines, above + 1) if value in line), 0))


def _rate(test: _Test, average: float, messages: float, size: float) -> Observation:
    """The rate in the unit that size times message rate shows: the JSON itself does not say whether MiB/s or Gb/s."""
    moved = size * messages * 1e6
    if moved <= 0:
        return test.observe("goodput", "GB/s", None, size, "MiB/s or Gb/s is not told, and no message rate shows it")
    scale = min((MIB, 1e9 / 8), key=lambda scale: abs(average * scale - moved))
    return test.observe("goodput", "GB/s", average * scale / 1e9, size)
