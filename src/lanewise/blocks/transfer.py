"""Predicts how long pieces take over the paths of a system: t = start + max(bytes / path, pieces x cost / posters).

Software whose pieces wait for each other takes the sum of the two in place of the longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lanewise.blocks.pieces import Pieces
from lanewise.blocks.rails import over_all_cards
from lanewise.blocks.software import BlockSoftware, PieceSituation, block_software
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.perf.predict import FlowRate, predict
from lanewise.routes.model import Route, Via
from lanewise.topology.model import Kind, System

# A cost was measured on one CPU; others run the same code that much faster or slower (their clocks and generations).
_OTHER_CPU = (0.7, 1.4)


class BlockLimit(StrEnum):
    """What a transfer of pieces waits for."""

    PATH = "path"
    SOFTWARE = "software"


@dataclass(frozen=True, slots=True)
class BlockTransfer:
    """One flow's pieces: `time` s within `low` to `high`, its `limit`, and the parts of the time in s.

    `path` is the prediction of the flow itself, `on_path` the time of the bytes at the rate that the software reaches
    there, `on_software` that of all pieces on `posters` threads, `piece` that of one, `start` what a transfer takes
    besides. The time is the start and the longer of the two, or both where the software moves pieces in turn.
    """

    flow: Flow
    pieces: Pieces
    software: BlockSoftware
    path: FlowRate
    time: float
    low: float
    high: float
    on_path: float
    on_software: float
    limit: BlockLimit
    start: float
    piece: float
    posters: int = 1

    @property
    def path_rate(self) -> float:
        """What the software reaches of the path's rate, in B/s."""
        return self.pieces.total / self.on_path

    @property
    def rate(self) -> float:
        """Bytes over time, in B/s."""
        return self.pieces.total / self.time


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The time (s) to the first token where a decode worker waits for the KV cache of a prefill worker.

    `prefill` s come before the slowest flow's `transfer` s, which is from `low` to `high`.
    """

    prefill: float
    transfer: float
    low: float
    high: float

    @property
    def time(self) -> float:
        """Prefill and transfer, one after the other, in s."""
        return self.prefill + self.transfer

    @property
    def share(self) -> float:
        """The transfer's share of that time (0..1)."""
        return self.transfer / self.time

    @property
    def share_interval(self) -> tuple[float, float]:
        """The least and the largest share."""
        return self.low / (self.prefill + self.low), self.high / (self.prefill + self.high)

    @property
    def prefill_workers(self) -> float:
        """How many prefill workers keep this path busy all the time."""
        return self.prefill / self.transfer


@dataclass(frozen=True, slots=True)
class BlockPrediction:
    """All flows at once, each with its pieces, `posters` threads each; `first_token` if the prefill's rate is known."""

    system: System
    transfers: tuple[BlockTransfer, ...]
    posters: int
    first_token: FirstToken | None = None


def predict_blocks(
    system: System, flows: Sequence[Flow], pieces: Pieces, software: str | None = None, posters: int = 1,
    prefill: float | None = None,
) -> BlockPrediction:  # fmt: skip
    """The time of `pieces` over each of `flows`, which run together; `posters` threads a flow post them.

    `prefill` tokens/s are computed before the pieces of a model's tokens are sent.

    InputError for a flow that has a size or software that does not move data there, Unreachable or UnknownName as of
    flows.
    """
    if posters < 1:
        raise InputError(f"--posters is {posters}", hint="write 1 or more")
    timed = next((flow for flow in flows if flow.size is not None or flow.start or flow.after or flow.every), None)
    if timed is not None:
        raise InputError(f"{timed.name} has a size or a time of its own", hint="the blocks say what it carries")
    rates = list(predict(system, flows).rates)
    media = [medium_of(system, rate.routes[0]) for rate in rates]
    chosen = [block_software(software, medium) for medium in media]
    if chosen[0].all_cards and all(medium == media[0] for medium in media):
        rates = over_all_cards(system, rates)
    transfers = tuple(
        transfer(rate, pieces, one, medium, posters, _situation(system, rate.flow, flows))
        for rate, one, medium in zip(rates, chosen, media, strict=True)
    )
    return BlockPrediction(system, transfers, posters, _first_token(pieces, prefill, transfers))


def _first_token(
    pieces: Pieces, prefill: float | None, transfers: Sequence[BlockTransfer]
) -> FirstToken | None:  # fmt: skip
    if prefill is None:
        return None
    if prefill <= 0 or not pieces.tokens:
        cause = "a prefill of no tokens" if prefill > 0 else f"--prefill is {prefill:g} tokens/s"
        raise InputError(cause, hint="write --tokens 32000 --model llama-3-70b --prefill 8000")
    slowest = max(transfers, key=lambda transfer: transfer.time)
    return FirstToken(pieces.tokens / prefill, slowest.time, slowest.low, slowest.high)


def _situation(system: System, flow: Flow, flows: Sequence[Flow]) -> PieceSituation:
    ends = [system.device(end).kind if end in system.devices else Kind.CPU for end in (flow.src, flow.dst)]
    opposed = any((other.src, other.dst) == (flow.dst, flow.src) for other in flows)
    return PieceSituation(flow.read, opposed, to_gpu=ends[0] is Kind.CPU and ends[1] is Kind.GPU)


def transfer(
    path: FlowRate, pieces: Pieces, software: BlockSoftware, medium: str, posters: int = 1,
    situation: PieceSituation | None = None,
) -> BlockTransfer:  # fmt: skip
    """The time of pieces over one path whose rate is known."""
    situation = situation or PieceSituation(read=path.flow.read)
    cost, share = software.cost(pieces.size, situation), software.share_of(medium, situation)
    threads = 1 if software.in_turn else posters

    def parts(rate: float, part: float, piece: float) -> tuple[float, float]:
        return pieces.total / (rate * part), pieces.count * piece / threads

    def whole(start: float, on_path: float, on_software: float) -> float:
        return start + (on_path + on_software if software.in_turn else max(on_path, on_software))

    on_path, on_software = parts(path.rate, share.value, cost.value)
    fast, slow = _OTHER_CPU
    return BlockTransfer(
        path.flow, pieces, software, path,
        time=whole(software.start.value, on_path, on_software),
        low=whole(software.start.low * fast, *parts(path.high, share.high, cost.low * fast)),
        high=whole(software.start.high * slow, *parts(path.low, share.low, cost.high * slow)),
        on_path=on_path, on_software=on_software,
        limit=BlockLimit.SOFTWARE if on_software + software.start.value > on_path else BlockLimit.PATH,
        start=software.start.value, piece=cost.value, posters=threads,
    )  # fmt: skip


def medium_of(system: System, route: Route) -> str:
    """What data passes, as the file of costs names it: nvlink, pcie, staged, host, network, efa, storage or memory."""
    devices = [system.device(name) for hop in route.hops for name in (hop.start, hop.end)]
    kinds = {device.kind for device in devices}
    if kinds & {Kind.SSD, Kind.RAID}:
        return "storage"
    if route.via is Via.NETWORK:
        cards = [system.part(device.name) for device in devices if device.kind is Kind.NIC]
        figures = [card.figure("net.kind") for card in cards if card is not None]
        return "efa" if any(figure is not None and figure.value == "efa" for figure in figures) else "network"
    ends = [system.device(name).kind for name in (route.src, route.dst)]
    if ends == [Kind.GPU, Kind.GPU]:
        return {Via.STAGED: "staged", Via.NVLINK: "nvlink"}.get(route.via, "pcie")
    return "host" if Kind.GPU in ends else "memory"
