"""Searches without a time budget, with each of the two posteriors of serving/posterior.py: error, queries, time.

    python benchmarks/one_inference.py [-o benchmarks/runs/DATE-one-inference.json] [--seeds 6]

Why both stay: docs/decisions/0017-two-posteriors.md. The servers are those of peak_search.py; both sides run the same
seeds. Writes raw data and a page next to it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import kept
from loadtest.known_runner import KnownRunner
from peak_search import LAWS, true_peak

from lanewise.loadtest.load_run import LoadSpec
from lanewise.results.service_result import SearchRun
from lanewise.serving import posterior
from lanewise.serving.durations import Durations
from lanewise.serving.search import PeakEstimate, find_peak

FIXED_NOISE, FULL = "FixedNoisePosterior", "Posterior"


class Full(posterior.Posterior):
    """The posterior of searches with a budget, made as the other one is."""

    def __init__(
        self, runs: Sequence[SearchRun], durations: Durations, step: float, floor: float, ceiling: float
    ) -> None:
        super().__init__(runs, durations.bound, durations.percentile, step)


MODELS: dict[str, Any] = {FIXED_NOISE: posterior.FixedNoisePosterior, FULL: Full}


def search(name: str, seed: int) -> PeakEstimate:
    """A search as the prediction before a load test makes it."""
    law, bound = LAWS[name]
    runner = KnownRunner(stream=seed, **law)

    def run(rate: float, number: int, duration: float) -> SearchRun:
        result = runner.run(LoadSpec(qps=rate, seconds=duration, queries=1, bound=bound, seed=number))
        return result.search_run()

    scale = bound / 0.015
    durations = Durations(bound, scale, max(60.0 * scale, 1e6 / runner.rate))
    return find_peak(run, durations=durations, bracket=(0.7 * runner.rate, runner.rate), precision=0.005)


def measure(name: str, model: str, peak: float, seeds: Sequence[int]) -> dict[str, Any]:
    """One search a seed with that posterior."""
    posterior.FixedNoisePosterior = MODELS[model]  # type: ignore[misc]
    rows = []
    for seed in seeds:
        start = time.process_time()
        estimate = search(name, seed)
        low, high = estimate.interval
        rows.append({
            "error_pct": 100 * (estimate.rate / peak - 1), "confirmed": estimate.confirmed, "runs": len(estimate.runs),
            "queries": sum(run.queries for run in estimate.runs), "in_interval": low <= peak <= high,
            "cpu_s": time.process_time() - start,
        })  # fmt: skip
    return {"law": name, "posterior": model, "peak": peak, "rows": rows}


def summary(cell: dict[str, Any]) -> list[str]:
    """One line of the page."""
    rows = cell["rows"]
    errors = [row["error_pct"] for row in rows]
    mean = {key: statistics.mean(row[key] for row in rows) for key in ("runs", "queries", "cpu_s")}
    return [
        cell["law"], cell["posterior"], f"{statistics.mean(errors):+.2f}",
        f"{statistics.mean(error**2 for error in errors) ** 0.5:.2f}",
        f"{100 * statistics.mean(row['in_interval'] for row in rows):.0f}", f"{mean['runs']:.1f}",
        f"{mean['queries'] / 1e6:.2f}", f"{mean['cpu_s']:.2f}",
    ]  # fmt: skip


def page(data: dict[str, Any]) -> str:
    """The summary as Markdown."""
    heads = ["law", "posterior", "mean error %", "rms error %", "in interval %", "runs", "million queries", "CPU s"]
    lines = [*kept.heading("Two posteriors without a time budget", data), f"Searches: {data['seeds']} seeds each.", ""]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(summary(cell)) + " |" for cell in data["cells"]]) + "\n"


def main() -> None:
    """Searches for every law with both posteriors, writes as it goes and prints the page."""
    parser = kept.options(__doc__, "one-inference")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=10_001)
    asked = parser.parse_args()
    data = kept.begin(asked) | {"seeds": asked.seeds, "first_seed": asked.first, "cells": []}
    seeds = range(asked.first, asked.first + asked.seeds)
    for name in LAWS:
        peak = true_peak(*LAWS[name])
        for model in MODELS:
            data["cells"].append(measure(name, model, peak, seeds))
            kept.keep(data, None, asked.out)
    kept.keep(data, page, asked.out)


if __name__ == "__main__":
    main()
