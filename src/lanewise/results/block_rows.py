"""Rows of blocks (pieces of memory moved at once): what tells them apart, measured and predicted alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lanewise.blocks.pieces import Pieces
from lanewise.blocks.transfer import BlockLimit, BlockPrediction, BlockTransfer
from lanewise.results.observation import Basis, Observation, Source
from lanewise.routes.classify import path_kind

GOODPUT, BLOCK_TIME = "goodput", "block_time"
POST_TIME, COMPLETION_TIME = "post_time", "completion_time"  # of a block, on the thread that posts
OF_SOFTWARE = "software:"  # begins the limit of blocks that wait for what posts them
_SCENARIO = re.compile(r"blocks (?P<both>both ways )?by (?P<software>.+)")


def block_scenario(software: str, both_ways: bool) -> str:
    """The scenario of blocks that this software moves, in one direction or in both at once."""
    return f"blocks {'both ways ' if both_ways else ''}by {software}"


def software_of_scenario(scenario: str) -> str | None:
    """The software in such a scenario; None for any other."""
    match = _SCENARIO.fullmatch(scenario)
    return match["software"] if match else None


def block_settings(pieces: Pieces, posters: int = 1) -> dict[str, int]:
    """Bytes of a block, blocks of a flow, and the threads of a flow that post them if there are several."""
    return {"bytes": round(pieces.size), "blocks": pieces.count, **({"posters": posters} if posters > 1 else {})}


def pieces_of_settings(settings: Mapping[str, int]) -> Pieces | None:
    """The blocks of such settings; None if they name none."""
    if not settings.get("blocks") or not settings.get("bytes"):
        return None
    return Pieces(settings["blocks"], float(settings["bytes"]))


def block_values(pieces: Pieces, seconds: float) -> tuple[tuple[str, float, str], ...]:
    """Metric, value (SI) and display unit of what a transfer of `seconds` says."""
    return (GOODPUT, pieces.total / seconds, "GB/s"), (BLOCK_TIME, seconds / pieces.count, "us")


def predicted_block_rows(prediction: BlockPrediction) -> tuple[Observation, ...]:
    """The prediction as rows with the identity of measured ones: rate and time a block of each flow."""
    return tuple(row for transfer in prediction.transfers for row in _rows(prediction, transfer))


def _rows(prediction: BlockPrediction, transfer: BlockTransfer) -> Iterator[Observation]:
    flows = [each.flow for each in prediction.transfers]
    both_ways = len(flows) == 2 and (flows[0].src, flows[0].dst) == (flows[1].dst, flows[1].src)
    how = {"engine": transfer.software.name}
    if len(flows) > 1:
        how["flows"] = ", ".join(flow.name + " read" * flow.read for flow in flows)
    values, first, last = (
        block_values(transfer.pieces, seconds) for seconds in (transfer.time, transfer.low, transfer.high)
    )
    for (metric, value, unit), ends in zip(values, zip(first, last, strict=True), strict=True):
        low, high = sorted(end for _, end, _ in ends)
        yield Observation(
            block_scenario(transfer.software.name, both_ways), transfer.flow.name, metric, value, unit,
            Source.PREDICTED, system=prediction.system.name,
            settings=block_settings(transfer.pieces, prediction.posters), basis=Basis(transfer.path.basis),
            limit=limit_text(transfer), rests_on=(transfer.software.source, *transfer.path.rests_on), low=low,
            high=high, path=path_kind(prediction.system, transfer.path.routes[0]), note=transfer.path.doubt, how=how,
        )  # fmt: skip


def limit_text(transfer: BlockTransfer) -> str:
    """What a transfer of blocks waits for: the path's limit, or the software that posts them."""
    if transfer.limit is BlockLimit.PATH:
        return f"path: {transfer.path.limit}"
    return f"{OF_SOFTWARE} posts, completions and start of {transfer.software.name}"
