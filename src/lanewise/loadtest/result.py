"""What a search found, as plain data and as samples of a run file, with what it is worth and what limits it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.loadtest.peak import disturbed, late_itself
from lanewise.results.observation import Basis, Measured, Observation, Source
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.peak import PeakResult
    from lanewise.loadtest.system import SystemStatistics

# What belongs to a search rather than to what is tested: its peak alone is told with it.
OF_THE_SEARCH = ("copies tried", "prediction")
NO_SUBMISSION = "made by MLPerf's rules, but no MLPerf submission: runs are shorter than 600 s and nobody reviewed them"


def as_data(found: PeakResult, account: SystemStatistics, about: Mapping[str, object], folder: Path) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what is not known."""
    best = found.outcome
    return {
        "scenario": "Server", "qps": found.qps or None, "valid": best is not None, "confirmed": found.confirmed,
        "interval": [_finite(value) for value in found.interval], "bound": found.ask.bound,
        "percentile": found.ask.percentile, "goodput": _goodput(found, about),
        "latency": dict(best.latency) if best else {}, "lag": dict(best.lag) if best else {},
        "queries": best.queries if best else 0, "offline": found.offline, "predicted": found.ask.prediction,
        "residual_pct": _residual(found), "limit": limit(found, account, about), "mean_batch": account.mean_batch,
        "stages": {name: dict(values) for name, values in account.stages.items()},
        "runs": [_run(run.kind, run.outcome) for run in found.runs], "seconds": found.seconds, "reason": found.reason,
        "notes": [*found.notes, *notes(about)], "about": dict(about), "folder": str(folder),
    }  # fmt: skip


def as_samples(found: PeakResult, account: SystemStatistics, about: Mapping[str, object]) -> Iterator[Sample]:
    """The peak, what it moved and its latencies as measured values; one without a value where no rate was VALID."""
    size = about.get("sample bytes")
    sample_bytes = size if isinstance(size, int) else 0
    scenario = f"Server {found.ask.bound * 1e3:g} ms"
    flow = ", ".join(f"host0->{device}" for device in str(about.get("devices", "")).split(", "))
    how = {name: str(value) for name, value in about.items()}
    how.pop("devices", None)  # the flow
    own = {name: how.pop(name) for name in list(how) if name.startswith(OF_THE_SEARCH)}
    own |= {"seeds": ", ".join(map(str, found.seeds)), "limit": limit(found, account, about)}
    note = "; ".join([*found.notes, *notes(about)])
    best = found.outcome

    def row(metric: str, value: float | None, unit: str) -> Sample:
        return Sample(scenario, flow, metric, value, unit, {"bytes": sample_bytes}, how, "service", note)

    peak = row("qps", found.qps or None, "1/s")
    yield replace(peak, how={**how, **own})
    if best is None:
        return
    yield row("goodput", best.qps * sample_bytes / 1e9, "GB/s")
    yield row("completed", best.qps, "1/s")
    yield row("offline", found.offline, "1/s")
    yield from (row(name, took, "ms") for name, took in late(best))


def expected(peak: Sample, qps: float) -> Observation:
    """The rate that was predicted beside the sample of the peak that was measured."""
    measured = None if peak.value is None else Measured(peak.value, "this search", samples=1)
    return Observation(
        peak.scenario, peak.flow, peak.metric, qps, peak.unit, Source.PREDICTED, settings=dict(peak.settings),
        basis=Basis.CALIBRATED, rests_on=(str(peak.how.get("prediction", "")),), path=peak.path, measured=measured,
    )  # fmt: skip


def limit(found: PeakResult, account: SystemStatistics, about: Mapping[str, object]) -> str:
    """What keeps the peak from being higher, in words."""
    best = found.outcome
    if best is None:
        return found.reason
    refused = [run for run in found.trials if not run.valid]
    if 2 * (hit := sum(map(disturbed, refused))) > len(refused):
        of = f"{hit} of {len(refused)} refused runs"
        return f"what else this machine does: in {of} others took its time, or it stood still"
    if (lag := late_itself(found.ask, best)) is not None:
        return f"the load generator: it issues queries {lag * 1e3:.2g} ms late (p{100 * found.ask.percentile:g})"
    copy, infer = (account.stages.get(stage, {}).get("mean", 0.0) for stage in ("copy", "infer"))
    share = f"{100 * found.qps / found.offline:.0f} % of the Offline rate" if found.offline else "no Offline rate"
    if not account.sizes:
        return f"the system under test: {share}"
    flight = f", with up to {streams} in flight" if (streams := about.get("streams", 1)) != 1 else ""
    if copy > infer:
        moved = f"{goodput:.3g} GB/s; " if (goodput := _goodput(found, about)) else ""
        took = f"a batch's copy takes {copy * 1e3:.2g} ms{flight}, its inference {infer * 1e3:.2g} ms"
        return f"copies to the device, by link or host memory: {moved}{took}; {share}"
    took = f"a batch of {account.mean_batch:.1f} takes {infer * 1e3:.3g} ms{flight}"
    return f"the engine: {took}; {share}, the bound leaves the rest"


def late(outcome: LoadGenResult) -> Iterator[tuple[str, float]]:
    """Latency at each percentile, and how late the generator was, by the name of the metric in ms."""
    for name in ("p50", "p90", "p99", "p99.9"):
        if name in outcome.latency:
            yield name, outcome.latency[name] * 1e3
    if "p99" in outcome.lag:
        yield "lag_p99", outcome.lag["p99"] * 1e3


def notes(about: Mapping[str, object]) -> list[str]:
    """What every reader of such a number has to know."""
    found = [NO_SUBMISSION]
    weights = str(about.get("weights", ""))
    if weights.startswith(("random", "none")):
        found.append(f"weights: {weights}")
    return found


def _goodput(found: PeakResult, about: Mapping[str, object]) -> float | None:
    """GB/s of what completed queries bring."""
    size = about.get("sample bytes")
    return found.outcome.qps * size / 1e9 if found.outcome is not None and isinstance(size, int) else None


def _residual(found: PeakResult) -> float | None:
    predicted = found.ask.prediction
    return 100.0 * (predicted / found.qps - 1.0) if predicted and found.qps else None


def _run(kind: str, outcome: LoadGenResult) -> dict[str, Any]:
    load = outcome.load
    return {
        "kind": kind, "qps": load.qps, "seconds": outcome.seconds, "seed": load.seed, "valid": outcome.valid,
        "reasons": list(outcome.reasons), "queries": outcome.queries, "late": outcome.late,
        "p99": outcome.latency.get("p99"), "ended early": outcome.ended_early,
        "folder": str(outcome.folder) if outcome.folder else None,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
