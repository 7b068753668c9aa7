"""The result of a peak search as plain data and as samples of a run file, with its limit and its notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lanewise.loadtest.load_run import LoadGenResult
from lanewise.loadtest.peak import PeakResult
from lanewise.results.observation import Basis, Observation, Source
from lanewise.results.sample import Sample, summarise

# Of the setup what belongs to the search rather than to what is tested: it goes with the peak alone.
OF_THE_SEARCH = ("copies tried", "prediction")
NO_SUBMISSION = "made by MLPerf's rules, but no MLPerf submission: runs are shorter than 600 s and nobody reviewed them"


def as_data(result: PeakResult) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what is not known."""
    best, statistics = result.best, result.statistics
    return {
        "scenario": "Server", "qps": result.qps or None, "valid": best is not None, "confirmed": result.confirmed,
        "interval": [_finite(value) for value in result.interval], "bound": result.options.bound,
        "percentile": result.options.percentile, "goodput": _goodput(result),
        "latency": dict(best.latency) if best else {}, "lag": dict(best.lag) if best else {},
        "queries": best.queries if best else 0, "offline": result.offline, "predicted": result.prediction,
        "residual_pct": _residual(result), "limit": limit(result), "mean_batch": statistics.mean_batch,
        "stages": {name: dict(values) for name, values in statistics.stages.items()},
        "runs": [_run(run) for run in result.runs], "seconds": result.seconds, "reason": result.reason,
        "notes": [*result.notes, *notes(result.setup)], "about": dict(result.setup), "folder": str(result.folder),
    }  # fmt: skip


def as_samples(result: PeakResult) -> Iterator[Sample]:
    """The peak, what it moved and its latencies as measured values; one without a value where no rate was VALID."""
    setup, best = result.setup, result.best
    size = setup.get("sample bytes")
    sample_bytes = size if isinstance(size, int) else 0
    scenario = f"Server {result.options.bound * 1e3:g} ms"
    flow = ", ".join(f"host0->{device}" for device in str(setup.get("devices", "")).split(", "))
    how = {name: str(value) for name, value in setup.items()}
    how.pop("devices", None)  # the flow
    of_peak = {name: how.pop(name) for name in list(how) if name.startswith(OF_THE_SEARCH)}
    of_peak |= {"seeds": ", ".join(str(run.load.seed) for run in result.search_runs), "limit": limit(result)}
    note = "; ".join([*result.notes, *notes(setup)])

    def sample(metric: str, value: float | None, unit: str) -> Sample:
        return Sample(scenario, flow, metric, value, unit, {"bytes": sample_bytes}, how, "service", note)

    peak = sample("qps", result.qps or None, "1/s")
    yield replace(peak, how={**how, **of_peak})
    if best is None:
        return
    yield sample("goodput", best.qps * sample_bytes, "GB/s")
    yield sample("completed", best.qps, "1/s")
    yield sample("offline", result.offline, "1/s")
    yield from (sample(name, seconds, "ms") for name, seconds in latencies(best))


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
    refused = [run for run in result.search_runs if not run.valid]
    if 2 * (disturbed := sum(run.disturbed for run in refused)) > len(refused):
        of = f"{disturbed} of {len(refused)} refused runs"
        return f"what else this machine does: in {of} others took its time, or it stood still"
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
    return [NO_SUBMISSION, *([f"weights: {weights}"] if weights.startswith(("random", "none")) else [])]


def _goodput(result: PeakResult) -> float | None:
    """GB/s of what completed queries bring."""
    size = result.setup.get("sample bytes")
    return result.best.qps * size / 1e9 if result.best is not None and isinstance(size, int) else None


def _residual(result: PeakResult) -> float | None:
    prediction = result.prediction
    return 100.0 * (prediction / result.qps - 1.0) if prediction and result.qps else None


def _run(run: LoadGenResult) -> dict[str, Any]:
    load = run.load
    return {
        "kind": run.role, "qps": load.qps, "seconds": run.seconds, "seed": load.seed, "valid": run.valid,
        "reasons": list(run.reasons), "queries": run.queries, "late": run.late,
        "p99": run.latency.get("p99"), "ended early": run.ended_early,
        "folder": str(run.folder) if run.folder else None,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
