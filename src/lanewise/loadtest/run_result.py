"""What a single run of a load test gave, as plain data and as samples of a run file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult
from lanewise.loadtest.result import NO_SUBMISSION, late, notes
from lanewise.results.sample import Sample

if TYPE_CHECKING:
    from lanewise.loadtest.single_run import SingleRun

SCORED = 600.0  # s, the shortest run of a score by MLPerf's rules
NO_REVIEW = "made by MLPerf's rules, but no MLPerf submission: nobody reviewed it"
BESIDE_SERVER = "both runs of a Server audit complete what is asked of them: below the peak they can hardly differ"


def as_data(single: SingleRun) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what was not asked."""
    top1, audit = single.accuracy, single.audit
    account = single.account
    return {
        **_run(single.outcome),
        "accuracy": None if top1 is None else {
            "top1": top1.top1, "correct": top1.correct, "counted": top1.counted, "of": top1.of},
        "audit": None if audit is None else {
            "name": audit.name, "passed": audit.passed, "cause": audit.cause, "figures": dict(audit.figures)},
        "same_sample": None if single.same is None else _run(single.same),
        "mean_batch": account.mean_batch, "stages": {name: dict(values) for name, values in account.stages.items()},
        "notes": _notes(single), "about": dict(single.about), "folder": str(single.folder),
    }  # fmt: skip


def as_samples(single: SingleRun, sample_bytes: int) -> Iterator[Sample]:
    """What the run completed and its latencies as measured values; of an accuracy run Top-1 (a share) alone."""
    load, outcome = single.outcome.load, single.outcome
    flow = ", ".join(f"host0->{device}" for device in str(single.about.get("devices", "")).split(", "))
    how = {name: str(value) for name, value in single.about.items()}
    how |= {"seed": str(load.seed), "verdict": verdict(outcome)}
    note = "; ".join([*_notes(single), *outcome.reasons])
    scenario = f"{load.scenario} {load.qps:g}/s" if load.scenario in (SERVER, OFFLINE) else load.scenario

    def row(metric: str, value: float, unit: str) -> Sample:
        return Sample(scenario, flow, metric, value, unit, {"bytes": sample_bytes}, how, "service", note)

    if single.accuracy is not None:
        yield row("top1", single.accuracy.top1, "1")
    if load.accuracy:
        return
    yield row("goodput", outcome.qps * sample_bytes / 1e9, "GB/s")
    yield row("completed", outcome.qps, "1/s")
    yield from (row(name, took, "ms") for name, took in late(outcome))


def verdict(outcome: LoadGenResult) -> str:
    """In a word: LoadGen's, or why there is none."""
    if outcome.load.accuracy:
        return "accuracy mode: LoadGen gives no verdict" if outcome.valid else "not valid"
    if outcome.ended_early:
        return "ended early"
    return "VALID" if outcome.valid else "not valid"


def _run(outcome: LoadGenResult) -> dict[str, Any]:
    load = outcome.load
    return {
        "scenario": load.scenario, "target": load.qps or None, "qps": outcome.qps, "valid": outcome.valid,
        "verdict": verdict(outcome), "reasons": list(outcome.reasons), "queries": outcome.queries,
        "seconds": outcome.seconds, "seed": load.seed, "bound": bound_of(outcome), "percentile": load.percentile,
        "late": outcome.late, "latency": dict(outcome.latency), "lag": dict(outcome.lag),
        "logs": None if outcome.folder is None else str(outcome.folder),
    }  # fmt: skip


def bound_of(outcome: LoadGenResult) -> float | None:
    """Seconds that LoadGen held the run to, which a file may have set; of Server runs alone."""
    if outcome.load.scenario != SERVER:
        return None
    told = outcome.settings.get("target_latency_ns")
    return told / 1e9 if isinstance(told, int | float) else outcome.load.bound


def _notes(single: SingleRun) -> list[str]:
    long = single.outcome.seconds >= SCORED
    of_all = (NO_REVIEW if long and note == NO_SUBMISSION else note for note in notes(single.about))
    found = [*single.outcome.notes, *of_all]
    if single.same is not None and single.outcome.load.scenario == SERVER:
        found.insert(0, BESIDE_SERVER)
    return found
