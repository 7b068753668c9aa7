"""What load generators print of a service: LoadGen's summary, Triton's perf_analyzer, vLLM's `bench serve`.

Sources: LoadGen's results (github.com/mlcommons/inference, loadgen/results.cc), perf_analyzer's report, vLLM's
benchmarks/benchmark_serving.py. Rates are counts a second; nothing says here what the service should reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.readers.tools.repeated_tables import labels_above, told_apart
from lanewise.results.observation import Observation

_LOADGEN = re.compile(
    r"(?:(?:Completed )?[Ss]amples per second|(?:Completed )?[Qq]ueries per second)\s*: (\d[\d.]{0,15})\s*$"
)
_SCENARIO = re.compile(r"Scenario\s*: (\w{1,20})")
_RESULT = re.compile(r"Result is\s*: (VALID|INVALID)")
_LOADGEN_LATENCY = re.compile(r"(50|90|99)(?:\.00|\.90)? percentile latency \(ns\)\s*: (\d{1,18})")
_TRITON = re.compile(r"\s*Throughput: (\d[\d.]{0,15}) infer/sec")
_TRITON_LATENCY = re.compile(r"\s*p(50|90|95|99) latency: (\d{1,15}) usec")
_CONCURRENCY = re.compile(r"(?:Request concurrency|Concurrency): (\d{1,6})")
_VLLM = re.compile(r"(Request|Output token|Total [Tt]oken) throughput \((?:req|tok)/s\):\s{1,40}(\d[\d.]{0,15})\s*$")
_VLLM_LATENCY = re.compile(r"(Mean|Median|P99) (TTFT|TPOT|ITL|E2EL) \(ms\):\s{1,40}(\d[\d.]{0,15})\s*$")
_VLLM_LOAD = re.compile(
    r"(Successful requests|Total (?:input|generated) tokens|Maximum request concurrency):\s{1,40}(\d{1,12})\s*$"
)
_LOADS = {
    "successful requests": "requests", "total input tokens": "input", "total generated tokens": "output",
    "maximum request concurrency": "concurrency",
}  # fmt: skip
_MEANINGS = {"Mean": "mean", "Median": "p50", "P99": "p99"}
_FLOW = "client->service"


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of one of these load generators."""
    loadgen = any("MLPerf Results Summary" in line or line.startswith("Scenario") for line in lines)
    return any(_TRITON.match(line) or _VLLM.match(line) or (loadgen and _LOADGEN.match(line)) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each rate and percentile; FormatError with the line of a figure that is none."""
    rows = (*_loadgen(lines, file), *_triton(lines, file), *_vllm(lines, file))
    check_rows(rows, Location(file, len(lines)))
    tools = ", ".join(dict.fromkeys(row.how["tool"] for row in rows))
    invalid = any((match := _RESULT.search(line)) and match[1] == "INVALID" for line in lines)
    note = "LoadGen calls the run INVALID: a rule was broken (latency, duration, number of queries), which is no rate"
    return ImportedResults(tools, rows, notes=(note,) if invalid else ())


def _loadgen(lines: Sequence[str], file: str) -> Iterator[Observation]:
    scenario = "LoadGen"
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _SCENARIO.match(line):
            scenario = match[1]
        if match := _LOADGEN.match(line):
            metric = "offline" if scenario == "Offline" else "completed"
            yield _row("LoadGen", scenario, metric, _unit(line), figure(match[1], at), {})
        elif match := _LOADGEN_LATENCY.match(line.strip()):
            metric = "p99.9" if "99.90" in line else f"p{match[1]}"
            yield _row("LoadGen", scenario, metric, "ms", figure(match[2], at) / 1e6, {})


def _triton(lines: Sequence[str], file: str) -> Iterator[Observation]:
    settings: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _CONCURRENCY.search(line):
            settings = {"depth": int(match[1])}
        if match := _TRITON.match(line):
            yield _row("perf_analyzer", "perf_analyzer", "completed", "inferences/s", figure(match[1], at), settings)
        elif match := _TRITON_LATENCY.match(line):
            value = figure(match[2], at) / 1e3
            yield _row("perf_analyzer", "perf_analyzer", f"p{match[1]}", "ms", value, settings)


def _vllm(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The rows of each report; those of several reports with the load, by which they can be compared."""
    starts = [at for at, line in enumerate(lines) if "Serving Benchmark Result" in line]
    if len(starts) < 2:
        yield from _report(lines, 0, file)
        return
    blocks = zip(starts, [*starts[1:], len(lines)], strict=True)
    yield from told_apart(
        [(labels_above(lines, start), [*_report(lines[start:end], start, file)]) for start, end in blocks]
    )


def _report(lines: Sequence[str], start: int, file: str) -> Iterator[Observation]:
    """The rates and times of a report from line `start` (from 0) on; one of several has its load as settings."""
    found = [(match[1], int(match[2])) for line in lines if (match := _VLLM_LOAD.match(line))] if start else []
    load = {_LOADS[name.lower()]: number for name, number in found}
    for number, line in enumerate(lines, start + 1):
        at = Location(file, number)
        if match := _VLLM.match(line):
            yield _row("vLLM bench", match[1].lower(), "completed", _unit(line), figure(match[2], at), load)
        elif match := _VLLM_LATENCY.match(line):
            yield _row("vLLM bench", match[2], _MEANINGS[match[1]], "ms", figure(match[3], at), load)


def _unit(line: str) -> str:
    """What the line counts a second."""
    nouns = {"sample": "samples/s", "quer": "queries/s", "tok": "tokens/s"}
    return next((unit for noun, unit in nouns.items() if noun in line.lower()), "requests/s")


def _row(tool: str, scenario: str, metric: str, unit: str, value: float, settings: dict[str, int]) -> Observation:
    return observation(tool, scenario, ToolValue(_FLOW, _FLOW, metric, unit, "service"), value, {}, settings)
