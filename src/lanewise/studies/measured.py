"""Measured values for the rows of a study: the same flows at once, the same metric, found in runs of measured rows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from lanewise import units
from lanewise.errors import FormatError, InputError
from lanewise.perf.flow import Flow, parse_flows
from lanewise.results.match import CONTEXT, METHOD, Identity, group, identity, service_path
from lanewise.results.observation import Observation, Source
from lanewise.results.plan import Service
from lanewise.results.sample import Sample
from lanewise.results.traffic import MachineTraffic
from lanewise.serving.workload import workload
from lanewise.studies.form import RowForm, StudyForm

# The measured metric that answers one of a study, of one flow and of several at once.
_ONE = {"goodput": "goodput", "flow_goodput": "goodput", "latency": "latency"}
_SEVERAL = {"goodput": "total", "flow_goodput": "goodput"}
_NODE = re.compile(r"(?<=\d):\d+$")
# A study names neither the engine nor the memory: of several rows the best is chosen. Settings need only not differ.
_IGNORED = (*CONTEXT, "scenario", "path", "settings", *(key for key in METHOD if key not in ("flows", "p2p")))
_LOAD_IGNORED = (*CONTEXT, "flow", "method")
_ACCELERATOR = ("model", "precision", "engine")
OFFLINE = "Offline"
_OFFLINE_RATES = ("offline", "completed")  # of the Offline run of a search, and of a run of its own
Ends = frozenset[tuple[tuple[str, str, bool], int]]


@dataclass(frozen=True)
class MeasuredRun:
    """Measured rows of one run; `system` is the study's short name for what they were measured on, '' its only one."""

    name: str
    rows: tuple[Observation, ...]
    system: str = ""

    @cached_property
    def by_flows(self) -> dict[Identity, list[Observation]]:
        """The rows that have a value, by what a row of a study states: flows, metric and P2P."""
        known = (row for row in self.rows if row.source is Source.MEASURED and row.value is not None)
        return group(known, _IGNORED, _REDUCED)


Peak = tuple[Observation, MeasuredRun]


def check_measured(form: StudyForm, runs: Iterable[MeasuredRun]) -> None:
    """InputError where a run does not say which of a study's systems it was measured on."""
    for run in runs:
        if not run.system and len(form.systems) > 1:
            names = ", ".join(form.systems)
            cause = f"{run.name} does not say on which system of {form.name} it was measured"
            raise InputError(cause, hint=f"--measured {next(iter(form.systems))}={run.name}; systems: {names}")


def find(row: RowForm, runs: Sequence[MeasuredRun]) -> Observation | None:
    """The measured row that answers a row of a study; None where no run has it.

    Of several, the one in whose size, engine and memory a rate is predicted is taken, and its note says so.
    """
    runs = [run for run in runs if run.system in ("", row.system)]
    if isinstance(row.scenario, MachineTraffic):
        return None
    if isinstance(row.scenario, Service):
        return _load_tested(row, row.scenario, runs)
    flows = row.scenario.flows
    metric = (_ONE if len(flows) == 1 else _SEVERAL).get(row.metric)
    if row.derive or metric is None or any(flow.cap < math.inf for flow in flows):
        return None
    text = ", ".join(flow.name + " read" * flow.read for flow in flows)
    how = {"flows": text, "p2p": "on" if flows[0].p2p else "off"}
    wanted = identity(Sample(row.label, flows[0].name, metric, None, row.unit, {}, how), _IGNORED, _REDUCED)
    # Each with its run; the last run is the freshest, so that of equals it wins.
    fitting = [
        (sample, run)
        for run in reversed(runs)
        for sample in run.by_flows.get(wanted, ())
        if _agrees(sample, row, flows)
    ]
    if not fitting:
        return None
    best, run = min(fitting, key=lambda pair: _order(pair[0], row, flows))
    return replace(best, note=_note(best, run, fitting))


def _load_tested(row: RowForm, scenario: Service, runs: Sequence[MeasuredRun]) -> Observation | None:
    """The peak or Offline rate of a load test for a row about a service; of several that fit the last run's highest."""
    if row.metric == "share":
        return _share(row, scenario, runs) if scenario.division != "closed" else None
    fitting = _peaks(row, scenario, row.metric, runs) if row.metric in ("qps", "goodput") else []
    if not fitting:
        return None
    best, last = _highest(fitting)
    return replace(best, note=_note(best, last, fitting))


def _peaks(row: RowForm, scenario: Service, metric: str, runs: Sequence[MeasuredRun]) -> list[Peak]:
    """Peaks or Offline rates of load tests in the division of the scenario, each with its run.

    Its queries must have the service's bytes and, of a peak, its bound, and it must name every setting of the row with
    the same value: a peak without its path, or on another number of GPUs, is no answer. An Offline run must be VALID.
    """
    served = workload(scenario.workload)
    settings = {**row.settings, "bytes": round(served.bytes_in)}
    name = OFFLINE if scenario.mode == "offline" else f"Server {served.bound * 1e3:g} ms"
    peak = Sample(name, "", metric, None, row.unit, settings, path=service_path(scenario.division))

    def stated(sample: Observation | Sample) -> tuple[tuple[str, int | None], ...]:
        return tuple((name, sample.settings.get(name)) for name in settings)

    reduced = {"settings": stated, "scenario": _load, "metric": _rate}
    wanted = identity(peak, _LOAD_IGNORED, reduced)
    return [
        (sample, run)
        for run in runs
        for sample in run.rows
        if sample.source is Source.MEASURED
        and sample.value is not None
        and identity(sample, _LOAD_IGNORED, reduced) == wanted
    ]


def _load(row: Observation | Sample) -> str:
    """The scenario; 'Offline' of the Offline run of a search and of a VALID run, whatever rate LoadGen was given."""
    valid = row.scenario.startswith(f"{OFFLINE} ") and row.how.get("verdict") == "VALID"
    return OFFLINE if valid or row.metric == "offline" else row.scenario


def _rate(row: Observation | Sample) -> str:
    return "qps" if _load(row) == OFFLINE and row.metric in _OFFLINE_RATES else row.metric


def _highest(fitting: Sequence[Peak]) -> Peak:
    """The highest of the last run."""
    last = fitting[-1][1]
    best = max((sample for sample, run in fitting if run is last), key=lambda sample: sample.value or 0.0)
    return best, last


def _share(row: RowForm, scenario: Service, runs: Sequence[MeasuredRun]) -> Observation | None:
    """The measured Network rate over the Closed one of the same devices and model; None unless both were measured.

    The Closed one is of the same run, else of the last run that has one.
    """
    networks = _peaks(row, scenario, "qps", runs)
    if not networks:
        return None
    network, run = _highest(networks)
    closed_peaks = [
        (sample, its_run)
        for sample, its_run in _peaks(row, replace(scenario, division="closed"), "qps", runs)
        if _same_accelerators(sample, network)
    ]
    if not closed_peaks:
        return None
    closed, closed_run = _highest([peak for peak in closed_peaks if peak[1] is run] or closed_peaks)
    kind = "peak" if scenario.mode == "server" else "rate"
    note = f"{_note(network, run, networks)}; over the Closed {kind} of {_note(closed, closed_run, closed_peaks)}"
    ratio = (network.value or 0.0) / (closed.value or math.inf)
    return replace(network, metric="share", value=ratio, display_unit=row.unit, low=None, high=None, samples=(),
                   note=note)  # fmt: skip


def _same_accelerators(one: Observation, other: Observation) -> bool:
    """Whether two peaks are of the same devices, by number and name, with the same settings, model and precision."""
    devices = [sorted(peak.flow.split(", ")) for peak in (one, other)]
    same = all(one.how.get(key) == other.how.get(key) for key in _ACCELERATOR if key in one.how and key in other.how)
    return devices[0] == devices[1] and one.settings == other.settings and same


def _agrees(sample: Observation, row: RowForm, flows: Sequence[Flow]) -> bool:
    """Whether a measured row has the row's unit, the size of its flows, and the settings that both name."""
    if any(sample.settings.get(name, value) != value for name, value in row.settings.items()):
        return False
    sizes = {flow.size for flow in flows if flow.size is not None}
    if sizes and {float(sample.settings.get("bytes", -1))} != sizes:
        return False
    return sample.unit == units.si_unit(row.unit)


def _flows(row: Observation | Sample) -> tuple[Flow, ...]:
    """All flows that ran together when it was measured; none where that cannot be read (another tool's words)."""
    return _parsed(row.how.get("flows") or row.flow)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Flow, ...]:
    try:
        return parse_flows(text)
    except FormatError:
        return ()


def _ends(flows: Iterable[Flow]) -> Ends:
    return frozenset(Counter((flow.src, flow.dst, flow.read and _peers(flow)) for flow in flows).items())


def _off_node(flow: Flow) -> Flow:
    return replace(flow, src=_NODE.sub("", flow.src), dst=_NODE.sub("", flow.dst))


def _own_flow(row: Observation | Sample) -> str:
    """'host0:1->gpu0' without the NUMA node; a total is of no flow."""
    return "" if _metric(row) == "total" else "->".join(_NODE.sub("", end) for end in row.flow.split("->"))


def _metric(row: Observation | Sample) -> str:
    return "goodput" if row.metric == "total" and len(_flows(row)) == 1 else row.metric


def _peers(flow: Flow) -> bool:
    return "gpu" in flow.src and "gpu" in flow.dst


def _p2p(row: Observation | Sample) -> str:
    """'on' or 'off' where GPUs are peers; a row that does not state it says so by its path."""
    if not any(map(_peers, _flows(row))):
        return ""
    return row.how.get("p2p") or ("off" if "staged" in row.path else "on")


_REDUCED: Mapping[str, Callable[[Observation | Sample], Hashable]] = {
    "flow": _own_flow,
    "metric": _metric,
    "flows": lambda row: _ends(map(_off_node, _flows(row))),
    "p2p": _p2p,
}


def _order(sample: Observation, row: RowForm, flows: Sequence[Flow]) -> tuple[float, ...]:
    """Smallest first: memory as named, the copy engine, the size at which the metric is defined, most samples."""
    size = float(sample.settings.get("bytes", 0))
    return (
        _ends(_flows(sample)) != _ends(flows),
        sample.how.get("engine", "copy engine") != "copy engine",
        size if row.metric == "latency" else -size,
        -len(sample.samples),
    )


def _note(sample: Observation, run: MeasuredRun, fitting: Sequence[tuple[Observation, MeasuredRun]]) -> str:
    settings = [units.size(n) if name == "bytes" else f"{name} {n}" for name, n in sample.settings.items()]
    words = [sample.how[key] for key in ("engine", "mode") if key in sample.how]
    node = [f"NUMA node {sample.how['NUMA node']}"] if "NUMA node" in sample.how else []
    count = [f"median of {len(sample.samples)}"] if sample.samples else []
    scenario = f"{OFFLINE} run of {sample.scenario}" if sample.metric == "offline" else sample.scenario
    text = ", ".join([f"{run.name}: {scenario}", *settings, *words, *node, *count])
    return text + (f"; taken out of {len(fitting)} that fit" if len(fitting) > 1 else "")


def matched(rows: Iterable[Observation]) -> Mapping[str, int]:
    """How many rows have a measured value out of each run, by the run's name."""
    names = [row.measured.note.partition(": ")[0] for row in rows if row.measured]
    return Counter(names)
