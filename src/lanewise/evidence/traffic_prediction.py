"""What is predicted of collectives, blocks of KV caches and loads of weights, as observations."""

from __future__ import annotations

from dataclasses import replace

from lanewise.blocks.pieces import Pieces
from lanewise.blocks.transfer import BlockPrediction, medium_of, predict_blocks
from lanewise.collectives.curve import CollectiveModel, collective_model
from lanewise.collectives.model import CollectivePoint, CollectiveSettings
from lanewise.collectives.ranks import RankSet
from lanewise.perf.resources import weakest
from lanewise.results.block_rows import limit_text
from lanewise.results.observation import Basis, Observation
from lanewise.results.traffic import BlockCopies, CollectiveMessage, Traffic
from lanewise.routes.find import route
from lanewise.routes.model import Via
from lanewise.topology.model import System
from lanewise.weights.prediction import ModelLoad, predict_load

LONG, MIDDLE, SHORT = "256 MiB and up", "1 to 256 MiB", "below 1 MiB, time"
_MIDDLE_FROM, _LONG_FROM = 2.0**20, 2.0**28
# Media that hold KV caches which no GPU has; through the others they go to another GPU.
_OFFLOAD = {"host": ("KV offload", 2.0**17), "storage": ("KV offload to a drive", 2.0**17)}
_KV = ("KV transfer", 2.0**20)


class TrafficModel:
    """Predicts the rows of one system; what does not depend on the size of a collective is computed once.

    No figure that was learned on the machines `without` is used.
    """

    def __init__(self, system: System, without: frozenset[str] = frozenset()) -> None:
        self.system, self.without = system, without
        self._collectives: dict[tuple[str, str, CollectiveSettings], CollectiveModel] = {}

    def predict(self, traffic: Traffic, blank: Observation) -> tuple[Observation, str]:
        """`blank` with what is predicted in its metric ("time", else a rate), and a collective's algorithm or ''.

        UnknownName, InputError or Unreachable as of predict_collective, predict_blocks and predict_load.
        """
        if isinstance(traffic, CollectiveMessage):
            return self._collective(traffic, blank)
        if isinstance(traffic, BlockCopies):
            prediction = predict_blocks(
                self.system, traffic.flows, traffic.pieces, traffic.software, posters=traffic.posters
            )
            return _blocks(prediction, blank), ""
        load = predict_load(
            self.system, traffic.size, traffic.source, traffic.targets, [traffic.loader],
            warm=traffic.warm, replicated=traffic.replicated, readers=traffic.readers,
        ).loads[0]  # fmt: skip
        return _load(load, blank), ""

    def _collective(self, call: CollectiveMessage, blank: Observation) -> tuple[Observation, str]:
        settings = replace(call.settings, without=self.without)
        key = (call.collective, call.ranks, settings)
        if key not in self._collectives:
            self._collectives[key] = collective_model(self.system, call.collective, call.ranks, settings)
        model = self._collectives[key]
        point = model.point(call.size)
        value, low, high = point.bus_bandwidth, point.low, point.high
        if blank.metric == "time":
            value, low, high = point.time, point.time * value / high, point.time * value / low
        predicted = replace(
            blank, value=value, low=low, high=high, basis=Basis.CALIBRATED, limit=point.limit,
            note=f"{point.algorithm} {point.protocol}", how={"algorithm": point.algorithm},
            path=_collective_kind(self.system, model, point),
            rests_on=("NCCL's time model, rates and ramps of other machines", *point.rests_on),
        )  # fmt: skip
        return predicted, point.algorithm


def _collective_kind(system: System, model: CollectiveModel, point: CollectivePoint) -> str:
    """What joins the ranks, and the class of the size."""
    ranks: RankSet = model.members
    node = max(ranks.nodes, key=len)
    nvlink = model.settings.p2p is not False and all(
        route(system, node[0], other).via is Via.NVLINK for other in node[1:]
    )
    links = "Infinity Fabric" if ranks.maker == "AMD" else "NVLink"
    fabric = links if nvlink else "PCIe"
    if len(node) == 1:
        fabric = "network alone"
    elif len(ranks.nodes) > 4:
        fabric += ", more than four nodes"
    return f"collective, {fabric}, {size_class(point.size)}"


def size_class(size: float) -> str:
    """The class of a message size (B)."""
    return LONG if size >= _LONG_FROM else MIDDLE if size >= _MIDDLE_FROM else SHORT


def _blocks(prediction: BlockPrediction, blank: Observation) -> Observation:
    """The rate of all flows together, or the time of the slowest."""
    transfers = prediction.transfers
    slowest = max(transfers, key=lambda transfer: transfer.time)
    value, low, high = slowest.time, slowest.low, slowest.high
    if blank.metric != "time":
        value, low, high = (
            sum(transfer.pieces.total / seconds for transfer, seconds in zip(transfers, column, strict=True))
            for column in zip(*((t.time, t.high, t.low) for t in transfers), strict=True)
        )
    return replace(
        blank, value=value, low=low, high=high, limit=limit_text(slowest), path=_block_kind(prediction),
        basis=Basis(weakest([transfer.path.basis for transfer in transfers])), note=slowest.path.doubt,
        rests_on=(slowest.software.source, *slowest.path.rests_on),
    )  # fmt: skip


def _block_kind(prediction: BlockPrediction) -> str:
    transfer = prediction.transfers[0]
    name, least = _OFFLOAD.get(medium_of(prediction.system, transfer.path.routes[0]), _KV)
    return f"{name}, {piece_class(transfer.pieces, least)}"


def piece_class(pieces: Pieces, least: float) -> str:
    """The class of the size of pieces, of which long ones have `least` B."""
    limit = "1 MiB" if least >= 2.0**20 else "128 KiB"
    return f"pieces of {limit} and up" if pieces.size >= least else f"pieces below {limit}"


def _load(load: ModelLoad, blank: Observation) -> Observation:
    """Seconds of a load, or its rate."""
    value, low, high = load.time, load.low, load.high
    if blank.metric != "time":
        value, low, high = load.rate, load.size / load.high, load.size / load.low
    stage = load.stages.get(load.limit)
    limit = f"{load.limit}: {stage.detail}" if stage is not None else str(load.limit)
    return replace(
        blank, value=value, low=low, high=high, basis=Basis.CALIBRATED, limit=limit, path=load_kind(load),
        rests_on=(load.loader.source, *(stage.rests_on if stage is not None else ())),
    )  # fmt: skip


def load_kind(load: ModelLoad) -> str:
    """Whether one thread touches mapped pages, or several readers read."""
    return "model load, mapped pages" if load.loader.lockstep else "model load, parallel readers"
