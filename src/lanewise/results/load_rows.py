"""Rows of predicted loads of a model, with the identity of those that `measure load` measures."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.results.observation import Observation, Source
from lanewise.weights.loaders import WeightLoader
from lanewise.weights.prediction import ModelLoad, ModelLoadPrediction

WEIGHTS = "weights"  # the end of a flow that stands for the files, as in measured rows of several files
_READ = 4 << 20  # B of a read of `measure load`


def predicted_load_rows(prediction: ModelLoadPrediction) -> tuple[Observation, ...]:
    """The rate (B/s) and the time (s) of each loader's load."""
    return tuple(row for load in prediction.loads for row in _rows(prediction, load))


def _rows(prediction: ModelLoadPrediction, load: ModelLoad) -> Iterator[Observation]:
    plan, limiting = prediction.plan, load.stages.get(load.limit)
    mode = _mode(load.loader, load.warm)
    flow = ", ".join(f"{WEIGHTS}->{target}" for target in plan.targets)
    own = mode == "direct"  # libraries choose their own reads
    settings = {"bytes": _READ, "readers": load.readers * len(plan.targets), "depth": 4} if own else {}
    ends = ((load.rate, load.size / load.high, load.size / load.low), (load.time, load.low, load.high))
    for (metric, unit), (value, low, high) in zip((("total", "GB/s"), ("makespan", "s")), ends, strict=True):
        yield Observation(
            f"load {mode}", flow, metric, value, unit, Source.PREDICTED, system=plan.system.name, settings=settings,
            limit=str(load.limit), rests_on=(load.loader.source, *(limiting.rests_on if limiting else ())), low=low,
            high=high, path="load", how={"flows": flow, "mode": mode},
        )  # fmt: skip


def _mode(loader: WeightLoader, warm: bool) -> str:
    """What `measure load` calls that loader in that state of the page cache."""
    return loader.name if loader.name == "direct" else f"{loader.name} {'warm' if warm else 'cold'}"
