"""The result of a peak search or a single run, as plain data and as samples of a run file, with limits and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from lanewise.dispatch.counters import by_nic
from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult
from lanewise.loadtest.peak import PeakResult
from lanewise.loadtest.single_run import SingleRun
from lanewise.loadtest.system import SystemStatistics
from lanewise.results.match import service_path
from lanewise.results.network_share import INTERVAL, OTHER_WORK
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.sample import Sample, summarise

# Of the setup what belongs to the search rather than to what is tested: it goes with the peak alone.
OF_THE_SEARCH = ("copies tried", "prediction")
SCORED = 600.0  # s, the shortest run of a score by MLPerf's rules
NO_REVIEW = "made by MLPerf's rules, but no MLPerf submission: nobody reviewed it"
NO_SUBMISSION = "made by MLPerf's rules, but no MLPerf submission: runs are shorter than 600 s and nobody reviewed them"
NO_FABRIC = "a node runs on the Frontend's own host: its queries cross no fabric, which the Network division requires"
SERVER_AUDIT = "both runs of a Server audit complete what is asked of them: below the peak they can hardly differ"


def peak_data(result: PeakResult) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what is not known."""
    best, statistics, prediction = result.best, result.statistics, result.prediction
    return {
        "scenario": "Server", "qps": result.qps or None, "valid": best is not None, "confirmed": result.confirmed,
        "interval": [value if math.isfinite(value) else None for value in result.interval],
        "bound": result.options.bound,
        "percentile": result.options.percentile, "goodput": _goodput(result),
        "latency": dict(best.latency) if best else {}, "lag": dict(best.lag) if best else {},
        "queries": best.queries if best else 0, "offline": result.offline, "predicted": prediction,
        "residual_pct": 100.0 * (prediction / result.qps - 1.0) if prediction and result.qps else None,
        "limit": limit(result), "mean_batch": statistics.mean_batch,
        "stages": {name: dict(values) for name, values in statistics.stages.items()},
        "nodes": [asdict(node) for node in statistics.nodes],
        **_connections(statistics, best.seconds if best else None),
        "runs": [_search_run(run) for run in result.runs], "seconds": result.seconds, "reason": result.reason,
        "notes": [*result.notes, *notes(result.setup)], "about": dict(result.setup), "folder": str(result.folder),
    }  # fmt: skip


def peak_samples(result: PeakResult) -> Iterator[Sample]:
    """The peak, what it moved and its latencies as measured values; one without a value where no rate was VALID."""
    setup, best = result.setup, result.best
    size = setup.get("sample bytes")
    sample_bytes = size if isinstance(size, int) else 0
    scenario = f"Server {result.options.bound * 1e3:g} ms"
    how = {name: str(value) for name, value in setup.items()}
    if "/" not in how.get("devices", ""):
        how.pop("devices", None)  # the flow says them; of nodes it leaves out which node has them
    of_peak = {name: how.pop(name) for name in list(how) if name.startswith(OF_THE_SEARCH)}
    if all(0.0 < end < math.inf for end in result.interval):
        of_peak["interval"] = INTERVAL.format(*result.interval)
    of_peak |= {"seeds": ", ".join(str(run.load.seed) for run in result.search_runs), "limit": limit(result)}
    sample = _sampler(scenario, setup, sample_bytes, how, "; ".join([*result.notes, *notes(setup)]))
    peak = sample("qps", result.qps or None, "1/s")
    yield replace(peak, how={**how, **of_peak})
    if best is None:
        return
    yield sample("goodput", best.qps * sample_bytes, "GB/s")
    yield sample("completed", best.qps, "1/s")
    yield sample("offline", result.offline, "1/s")
    yield from (sample(name, seconds, "ms") for name, seconds in latencies(best))
    yield from dispatch_samples(result.statistics, best.seconds, sample)


def _connections(statistics: SystemStatistics, seconds: float | None) -> dict[str, Any]:
    """Of a run over nodes that took so long its connections, and their sums by NIC."""
    connections = statistics.connections
    if not connections:
        return {}
    nics = {nic: asdict(total) for nic, total in by_nic(connections).items()}
    return {"connections": [asdict(one) for one in connections], "nics": nics, "run_seconds": seconds}


def dispatch_samples(
    statistics: SystemStatistics, seconds: float, sample: Callable[[str, float | None, str], Sample]
) -> Iterator[Sample]:
    """Of a run over nodes: the mean time of a query in each stage, and what each connection sent a second."""
    if not statistics.connections:
        return
    for name, values in statistics.stages.items():
        if "mean" in values:
            yield sample(f"{name}_mean", values["mean"], "us")
    for number, one in enumerate(statistics.connections, 1):
        row = sample("connection_goodput", one.bytes_out / seconds if seconds else None, "GB/s")
        how = {"node": one.node, "NIC": one.nic, "queries": str(one.completed), "lost": str(one.lost)}
        yield replace(row, settings={**row.settings, "connection": number}, how={**row.how, **how})


def prediction_of(peak: Sample, qps: float) -> Observation:
    """The rate that was predicted before the search, as a row next to the sample of the measured peak."""
    (row,) = summarise([peak])
    measured = None if peak.value is None else replace(row, note="this search")
    return Observation(
        peak.scenario, peak.flow, peak.metric, qps, peak.display_unit, Source.PREDICTED, settings=dict(peak.settings),
        basis=Basis.CALIBRATED, rests_on=(str(peak.how.get("prediction", "")),), path=peak.path, measured=measured,
    )  # fmt: skip


def limit(result: PeakResult) -> str:
    """What keeps the peak from being higher, in words."""
    best, statistics = result.best, result.statistics
    if best is None:
        return result.reason
    if of := disturbed(result):
        return f"{OTHER_WORK}: in {of} others took its time, or it stood still"
    if (lag := result.generator_lag) is not None:
        return f"the load generator: it issues queries {lag * 1e3:.2g} ms late (p{100 * result.options.percentile:g})"
    copy, infer = (statistics.stages.get(stage, {}).get("mean", 0.0) for stage in ("copy", "infer"))
    share = f"{100 * result.qps / result.offline:.0f} % of the Offline rate" if result.offline else "no Offline rate"
    if not statistics.sizes:
        return f"the system under test: {share}"
    flight = f", with up to {streams} in flight" if (streams := result.setup.get("streams", 1)) != 1 else ""
    if copy > infer:
        moved = f"{goodput:.3g} GB/s; " if (goodput := _goodput(result)) else ""
        times = f"a batch's copy takes {copy * 1e3:.2g} ms{flight}, its inference {infer * 1e3:.2g} ms"
        return f"copies to the device, by link or host memory: {moved}{times}; {share}"
    time = f"a batch of {statistics.mean_batch:.1f} takes {infer * 1e3:.3g} ms{flight}"
    return f"the engine: {time}; {share}, the bound leaves the rest"


def disturbed(result: PeakResult) -> str:
    """'2 of 3 refused runs' where most of those that a search refused were disturbed by other work, else ''."""
    refused = [run for run in result.search_runs if not run.valid]
    count = sum(run.disturbed for run in refused)
    return f"{count} of {len(refused)} refused runs" if 2 * count > len(refused) else ""


def latencies(run: LoadGenResult) -> Iterator[tuple[str, float]]:
    """Latency at each percentile, and how late the generator was, in s, by the name of the metric."""
    for name in ("p50", "p90", "p99", "p99.9"):
        if name in run.latency:
            yield name, run.latency[name]
    if "p99" in run.lag:
        yield "lag_p99", run.lag["p99"]


def notes(setup: Mapping[str, object]) -> list[str]:
    """What every reader of such a number has to know."""
    weights = str(setup.get("weights", ""))
    within = [NO_FABRIC] if "one host" in str(setup.get("transport", "")) else []
    return [NO_SUBMISSION, *within, *([f"weights: {weights}"] if weights.startswith(("random", "none")) else [])]


def run_data(single: SingleRun) -> dict[str, Any]:
    """All results of a run for other programs; SI units, None for what the run did not measure."""
    accuracy, audit = single.accuracy, single.audit
    statistics = single.statistics
    return {
        **_run(single.run),
        "accuracy": None if accuracy is None else {"top1": accuracy.top1, **asdict(accuracy)},
        "audit": None if audit is None else asdict(audit),
        "same_sample": None if single.same_sample is None else _run(single.same_sample),
        "mean_batch": statistics.mean_batch,
        "stages": {name: dict(values) for name, values in statistics.stages.items()},
        "nodes": [asdict(node) for node in statistics.nodes],
        **_connections(statistics, single.run.seconds),
        "notes": _run_notes(single), "about": dict(single.setup), "folder": str(single.folder),
    }  # fmt: skip


def run_samples(single: SingleRun, sample_bytes: int) -> Iterator[Sample]:
    """What the run completed and its latencies as measured values; of an accuracy run Top-1 (a share) alone."""
    load, run = single.run.load, single.run
    how = {name: str(value) for name, value in single.setup.items()}
    how |= {"seed": str(load.seed), "verdict": verdict(run)}
    scenario = f"{load.scenario} {load.qps:g}/s" if load.scenario in (SERVER, OFFLINE) else load.scenario
    sample = _sampler(scenario, single.setup, sample_bytes, how, "; ".join([*_run_notes(single), *run.reasons]))
    if single.accuracy is not None:
        yield sample("top1", single.accuracy.top1, "1")
    if load.accuracy:
        return
    yield sample("goodput", run.qps * sample_bytes, "GB/s")
    yield sample("completed", run.qps, "1/s")
    yield from (sample(name, seconds, "ms") for name, seconds in latencies(run))
    yield from dispatch_samples(single.statistics, run.seconds, sample)


def verdict(run: LoadGenResult) -> str:
    """In a word: LoadGen's, or why there is none."""
    if run.load.accuracy:
        return "accuracy mode: LoadGen gives no verdict" if run.valid else "INVALID"
    if run.ended_early:
        return "ended early"
    return "VALID" if run.valid else "INVALID"


def bound_of(run: LoadGenResult) -> float | None:
    """The latency bound in s that LoadGen used, perhaps from a user.conf; of Server runs alone."""
    if run.load.scenario != SERVER:
        return None
    bound = run.settings.get("target_latency_ns")
    return bound / 1e9 if isinstance(bound, int | float) else run.load.bound


def _sampler(
    scenario: str, setup: Mapping[str, object], sample_bytes: int, how: Mapping[str, str], note: str
) -> Callable[[str, float | None, str], Sample]:
    """Makes samples of one result, given a metric, its value and its unit.

    A row of the Network division has the flow and settings of the Closed one: devices as their nodes name them.
    """
    devices = [device.rpartition("/")[2] for device in str(setup.get("devices", "")).split(", ")]
    flow = ", ".join(f"host0->{device}" for device in devices)
    path = service_path(str(setup.get("division", "")))
    return lambda metric, value, unit: Sample(
        scenario, flow, metric, value, unit, {"bytes": sample_bytes}, how, path, note
    )


def _goodput(result: PeakResult) -> float | None:
    """GB/s of what completed queries bring."""
    size = result.setup.get("sample bytes")
    return result.best.qps * size / 1e9 if result.best is not None and isinstance(size, int) else None


def _search_run(run: LoadGenResult) -> dict[str, Any]:
    load = run.load
    return {
        "kind": run.role, "qps": load.qps, "seconds": run.seconds, "seed": load.seed, "valid": run.valid,
        "reasons": list(run.reasons), "queries": run.queries, "late": run.late,
        "p99": run.latency.get("p99"), "ended early": run.ended_early,
        "folder": str(run.folder) if run.folder else None,
    }  # fmt: skip


def _run(run: LoadGenResult) -> dict[str, Any]:
    load = run.load
    return {
        "scenario": load.scenario, "target": load.qps or None, "qps": run.qps, "valid": run.valid,
        "verdict": verdict(run), "reasons": list(run.reasons), "queries": run.queries,
        "seconds": run.seconds, "seed": load.seed, "bound": bound_of(run), "percentile": load.percentile,
        "late": run.late, "latency": dict(run.latency), "lag": dict(run.lag),
        "logs": None if run.folder is None else str(run.folder),
    }  # fmt: skip


def _run_notes(single: SingleRun) -> list[str]:
    scored = single.run.seconds >= SCORED
    of_all = (NO_REVIEW if scored and note == NO_SUBMISSION else note for note in notes(single.setup))
    result_notes = [*single.run.notes, *of_all]
    if single.same_sample is not None and single.run.load.scenario == SERVER:
        result_notes.insert(0, SERVER_AUDIT)
    return result_notes
