"""What a single run of a load test gave, as plain data and as samples of a run file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult
from lanewise.loadtest.result import NO_SUBMISSION, latencies, notes
from lanewise.loadtest.single_run import SingleRun
from lanewise.results.sample import Sample

SCORED = 600.0  # s, the shortest run of a score by MLPerf's rules
NO_REVIEW = "made by MLPerf's rules, but no MLPerf submission: nobody reviewed it"
SERVER_AUDIT = "both runs of a Server audit complete what is asked of them: below the peak they can hardly differ"


def as_data(single: SingleRun) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what was not asked."""
    accuracy, audit = single.accuracy, single.audit
    statistics = single.statistics
    return {
        **_run(single.run),
        "accuracy": None if accuracy is None else {
            "top1": accuracy.top1, "correct": accuracy.correct, "counted": accuracy.counted, "of": accuracy.of},
        "audit": None if audit is None else {
            "name": audit.name, "passed": audit.passed, "cause": audit.cause, "figures": dict(audit.figures)},
        "same_sample": None if single.same_sample is None else _run(single.same_sample),
        "mean_batch": statistics.mean_batch,
        "stages": {name: dict(values) for name, values in statistics.stages.items()},
        "notes": _notes(single), "about": dict(single.setup), "folder": str(single.folder),
    }  # fmt: skip


def as_samples(single: SingleRun, sample_bytes: int) -> Iterator[Sample]:
    """What the run completed and its latencies as measured values; of an accuracy run Top-1 (a share) alone."""
    load, run = single.run.load, single.run
    flow = ", ".join(f"host0->{device}" for device in str(single.setup.get("devices", "")).split(", "))
    how = {name: str(value) for name, value in single.setup.items()}
    how |= {"seed": str(load.seed), "verdict": verdict(run)}
    note = "; ".join([*_notes(single), *run.reasons])
    scenario = f"{load.scenario} {load.qps:g}/s" if load.scenario in (SERVER, OFFLINE) else load.scenario

    def sample(metric: str, value: float, unit: str) -> Sample:
        return Sample(scenario, flow, metric, value, unit, {"bytes": sample_bytes}, how, "service", note)

    if single.accuracy is not None:
        yield sample("top1", single.accuracy.top1, "1")
    if load.accuracy:
        return
    yield sample("goodput", run.qps * sample_bytes, "GB/s")
    yield sample("completed", run.qps, "1/s")
    yield from (sample(name, seconds, "ms") for name, seconds in latencies(run))


def verdict(run: LoadGenResult) -> str:
    """In a word: LoadGen's, or why there is none."""
    if run.load.accuracy:
        return "accuracy mode: LoadGen gives no verdict" if run.valid else "not valid"
    if run.ended_early:
        return "ended early"
    return "VALID" if run.valid else "not valid"


def _run(run: LoadGenResult) -> dict[str, Any]:
    load = run.load
    return {
        "scenario": load.scenario, "target": load.qps or None, "qps": run.qps, "valid": run.valid,
        "verdict": verdict(run), "reasons": list(run.reasons), "queries": run.queries,
        "seconds": run.seconds, "seed": load.seed, "bound": bound_of(run), "percentile": load.percentile,
        "late": run.late, "latency": dict(run.latency), "lag": dict(run.lag),
        "logs": None if run.folder is None else str(run.folder),
    }  # fmt: skip


def bound_of(run: LoadGenResult) -> float | None:
    """Seconds that LoadGen held the run to, which a file may have set; of Server runs alone."""
    if run.load.scenario != SERVER:
        return None
    bound = run.settings.get("target_latency_ns")
    return bound / 1e9 if isinstance(bound, int | float) else run.load.bound


def _notes(single: SingleRun) -> list[str]:
    scored = single.run.seconds >= SCORED
    of_all = (NO_REVIEW if scored and note == NO_SUBMISSION else note for note in notes(single.setup))
    result_notes = [*single.run.notes, *of_all]
    if single.same_sample is not None and single.run.load.scenario == SERVER:
        result_notes.insert(0, SERVER_AUDIT)
    return result_notes
