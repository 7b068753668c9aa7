"""Rows of a loader's cold load of a model (`measure load`), as the model of loads predicts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise import units
from lanewise.perf.flow import Flow
from lanewise.results.observation import Observation
from lanewise.topology.model import System

LOAD = "load"  # the path of the rows of `measure load`
_COLD = " cold"


def is_of_loader(row: Observation) -> bool:
    """Whether a row is a load from storage by a library, whose reads are its own."""
    mode = row.how.get("mode", "")
    if row.path != LOAD or not mode.endswith(_COLD):
        return False
    from lanewise.weights.loaders import weight_loader_names

    return mode.removesuffix(_COLD) in weight_loader_names()


def is_warm_load(row: Observation) -> bool:
    """Whether a row is a load from the page cache, which no drive limits."""
    return row.path == LOAD and row.how.get("mode", "").endswith((" warm", "cached"))


def load_expectation(system: System, row: Observation, flows: Sequence[Flow]) -> dict[str, Any]:
    """What is expected of a loader's rate, as keywords of `expectation`; or a note why nothing is.

    Raises what predict_load raises.
    """
    from lanewise.weights.prediction import (  # here: only described machines need it
        LoadLimit,
        WeightSource,
        predict_load,
    )

    loader, size = row.how["mode"].removesuffix(_COLD), row.how.get("data size")
    source = flows[0].src
    if source not in system.volumes:
        system.device(source)  # an unknown one is what the user can say with --as
    if size is None or len(flows) > 1:
        return {"note": "the row does not say how many bytes each target gets"}
    prediction = predict_load(system, units.parse(size, "B"), WeightSource(source), [flows[0].dst], [loader])
    load = prediction.loads[0]
    storage, limiting = load.stages[LoadLimit.STORAGE], load.stages.get(load.limit)
    return {
        "basis": LOAD, "value": load.rate, "interval": (load.size / load.high, load.size / load.low),
        "limit": str(load.limit), "note": storage.doubt,
        "rests_on": (load.loader.source, *(limiting.rests_on if limiting else ())),
    }  # fmt: skip
