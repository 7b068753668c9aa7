"""Rows of blocks (`measure kv`), as the model of blocks predicts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.perf.flow import Flow
from lanewise.results.block_rows import GOODPUT, limit_text, pieces_of_settings, software_of_scenario
from lanewise.results.observation import Observation
from lanewise.topology.model import System

# What these cost a block is not known.
_UNKNOWN = ("cuFile", "cuFile compat", "psync")


def is_of_blocks(row: Observation) -> bool:
    """Whether a row is the rate of blocks that one software moves; their time says the same."""
    return row.metric == GOODPUT and software_of_scenario(row.scenario) is not None


def block_expectation(system: System, row: Observation, flows: Sequence[Flow], own: str) -> dict[str, Any]:
    """What is expected of flow `own` among those that ran together, as keywords of `expectation`; or a note why not.

    Raises what predict_blocks raises.
    """
    from lanewise.blocks.transfer import predict_blocks  # here: only described machines need it

    software, pieces = software_of_scenario(row.scenario), pieces_of_settings(row.settings)
    if software is None or pieces is None:
        return {"note": "the row names no blocks"}
    if software in _UNKNOWN:
        return {"note": f"what {software} costs a block is not known"}
    prediction = predict_blocks(system, flows, pieces, software, row.settings.get("posters", 1))
    for transfer in prediction.transfers:
        if transfer.flow.name == own:
            interval = (pieces.total / transfer.high, pieces.total / transfer.low)
            return {
                "basis": "blocks", "value": transfer.rate, "interval": interval, "limit": limit_text(transfer),
                "rests_on": (transfer.software.source, *transfer.path.rests_on), "note": transfer.path.doubt,
            }  # fmt: skip
    return {"note": f"{own} is not among the flows of its scenario"}
