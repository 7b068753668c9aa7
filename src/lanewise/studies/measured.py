"""Measured values for the rows of a study: the same flows at once, the same metric, found in runs of measured rows."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import FormatError, InputError
from lanewise.perf.flow import parse_flows
from lanewise.results.observation import Measured, Observation, Source
from lanewise.serving.workload import workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lanewise.perf.flow import Flow
    from lanewise.studies.form import RowForm, StudyForm

# What a row of a study asks for, and the measured metrics that answer it for one flow and for several at once.
_ONE = {"goodput": ("goodput", "total"), "flow_goodput": ("goodput",), "latency": ("latency",)}
_SEVERAL = {"goodput": ("total",), "flow_goodput": ("goodput",)}
_NODE = re.compile(r"(?<=\d):\d+$")
Ends = Counter[tuple[str, str, bool]]


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Measured rows of one run; `system` is the study's short name for what they were measured on, '' its only one."""

    name: str
    rows: tuple[Observation, ...]
    system: str = ""


def check_measured(form: StudyForm, runs: Iterable[MeasuredRun]) -> None:
    """InputError where a run does not say which of a study's systems it was measured on."""
    for run in runs:
        if not run.system and len(form.systems) > 1:
            names = ", ".join(form.systems)
            cause = f"{run.name} does not say on which system of {form.name} it was measured"
            raise InputError(cause, hint=f"--measured {next(iter(form.systems))}={run.name}; systems: {names}")


def find(row: RowForm, runs: Sequence[MeasuredRun]) -> Measured | None:
    """The measured value that answers a row, in the row's unit; None where no run has it.

    Of several, the one in whose size, engine and memory a rate is predicted is taken, and `which` says so.
    """
    asked = row.scenario
    if row.derive or asked.demand is not None:
        return None
    if asked.service:
        return _load_tested(row, runs)
    flows = parse_flows(asked.flows, asked.p2p)
    metrics = (_ONE if len(flows) == 1 else _SEVERAL).get(row.metric, ())
    own = [run for run in runs if run.system in ("", row.system)]
    # Each with its run; the last run is the freshest, so that of equals it wins.
    fitting = [(seen, run) for run in reversed(own) for seen in run.rows if _answers(seen, row, flows, metrics)]
    if not fitting:
        return None
    seen, run = min(fitting, key=lambda pair: _order(pair[0], row, flows))
    return _measured(seen, row.unit, _which(seen, run, fitting))


def _load_tested(row: RowForm, runs: Sequence[MeasuredRun]) -> Measured | None:
    """The peak of a load test for a row about a service; of several that fit the last run's highest.

    Its queries must have the service's bytes and bound, and it must name every setting of the row with the same value:
    a peak without its path, or on another number of GPUs, is no answer.
    """
    asked = row.scenario
    if asked.mode != "server" or asked.division != "closed" or row.metric not in ("qps", "goodput"):
        return None
    served = workload(asked.service)
    wanted = {**row.settings, "bytes": round(served.bytes_in)}
    fitting = [
        (seen, run)
        for run in runs
        if run.system in ("", row.system)
        for seen in run.rows
        if (seen.source, seen.path, seen.metric) == (Source.MEASURED, "service", row.metric)
        and seen.scenario == f"Server {served.bound * 1e3:g} ms"
        and seen.value is not None
        and all(seen.settings.get(name) == value for name, value in wanted.items())
    ]
    if not fitting:
        return None
    last = fitting[-1][1]
    seen = max((seen for seen, run in fitting if run is last), key=lambda seen: seen.value or 0.0)
    return _measured(seen, row.unit, _which(seen, last, fitting))


def _answers(seen: Observation, row: RowForm, flows: Sequence[Flow], metrics: Sequence[str]) -> bool:
    """Whether a measured row is of exactly these flows, this metric, P2P as asked and the settings that both name."""
    if seen.source is not Source.MEASURED or seen.value is None or seen.metric not in metrics:
        return False
    if any(seen.settings.get(name, value) != value for name, value in row.settings.items()):
        return False
    if not _same_kind(seen.unit, row.unit) or (seen.metric != "total" and _plain(seen.flow) != _plain(flows[0].name)):
        return False
    ran = _ran(seen)
    if ran is None or _ends(map(_off_node, ran)) != _ends(map(_off_node, flows)) or not _sized(seen, flows):
        return False
    return not any(map(_peers, flows)) or _p2p(seen) is flows[0].p2p


def _ran(seen: Observation) -> tuple[Flow, ...] | None:
    """All flows that ran together when it was measured; None where that cannot be read (another tool's words)."""
    try:
        return parse_flows(seen.how.get("flows") or seen.flow)
    except FormatError:
        return None


def _ends(flows: Iterable[Flow]) -> Ends:
    return Counter((flow.src, flow.dst, flow.read and _peers(flow)) for flow in flows)


def _off_node(flow: Flow) -> Flow:
    return replace(flow, src=_NODE.sub("", flow.src), dst=_NODE.sub("", flow.dst))


def _plain(name: str) -> str:
    """'host0:1->gpu0' without the NUMA node."""
    return "->".join(_NODE.sub("", end) for end in name.split("->"))


def _peers(flow: Flow) -> bool:
    return "gpu" in flow.src and "gpu" in flow.dst


def _p2p(seen: Observation) -> bool:
    said = seen.how.get("p2p")
    return said != "off" if said else "staged" not in seen.path


def _sized(seen: Observation, flows: Sequence[Flow]) -> bool:
    sizes = {flow.size for flow in flows if flow.size is not None}
    return not sizes or {float(seen.settings.get("bytes", -1))} == sizes


def _same_kind(one: str, other: str) -> bool:
    try:
        return units.dimension(one) == units.dimension(other)
    except FormatError:
        return False


def _order(seen: Observation, row: RowForm, flows: Sequence[Flow]) -> tuple[float, ...]:
    """Smallest first: memory as named, the copy engine, the size at which the metric is defined, most samples."""
    size = float(seen.settings.get("bytes", 0))
    return (
        _ends(_ran(seen) or ()) != _ends(flows),
        seen.how.get("engine", "copy engine") != "copy engine",
        size if row.metric == "latency" else -size,
        -len(seen.samples),
    )


def _which(seen: Observation, run: MeasuredRun, fitting: Sequence[tuple[Observation, MeasuredRun]]) -> str:
    settings = [units.size(n) if name == "bytes" else f"{name} {n}" for name, n in seen.settings.items()]
    words = [seen.how[key] for key in ("engine", "mode") if key in seen.how]
    node = [f"NUMA node {seen.how['NUMA node']}"] if "NUMA node" in seen.how else []
    count = [f"median of {len(seen.samples)}"] if seen.samples else []
    text = ", ".join([f"{run.name}: {seen.scenario}", *settings, *words, *node, *count])
    return text + (f"; taken out of {len(fitting)} that fit" if len(fitting) > 1 else "")


def _measured(seen: Observation, unit: str, which: str) -> Measured:
    value, low, high = (
        None if each is None else units.from_si(units.to_si(each, seen.unit), unit)
        for each in (seen.value, seen.low, seen.high)
    )
    assert value is not None
    return Measured(value, which, low, high, len(seen.samples))


def matched(rows: Iterable[Observation]) -> Mapping[str, int]:
    """How many rows have a measured value out of each run, by the run's name."""
    found = [row.measured.which.partition(": ")[0] for row in rows if row.measured]
    return Counter(found)


__all__ = ["MeasuredRun", "check_measured", "find", "matched"]
