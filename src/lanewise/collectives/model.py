"""A collective, the library that runs it, and its predicted curve of time and bus bandwidth against size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lanewise.errors import unknown_name
from lanewise.topology.model import System


class Collective(StrEnum):
    """An operation of all ranks, named as torch.distributed names it."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all_to_all"
    SENDRECV = "sendrecv"

    def bus_factor(self, ranks: int) -> float:
        """Bus bandwidth / algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md)."""
        if self is Collective.ALL_REDUCE:
            return 2 * (ranks - 1) / ranks
        if self in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL):
            return (ranks - 1) / ranks
        return 1.0


class Algorithm(StrEnum):
    """How ranks are joined, named as in NCCL_ALGO; P2P is direct sends and receives."""

    RING = "Ring"
    TREE = "Tree"
    NVLS = "NVLS"
    NVLS_TREE = "NVLSTree"
    P2P = "P2P"


class Protocol(StrEnum):
    """How data and flags travel, named as in NCCL_PROTO."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"


class Launch(StrEnum):
    """Who issues the call: a CUDA graph, nccl-tests with a process for each GPU or one for all, or torch eagerly."""

    GRAPH = "graph"
    NCCL_TESTS = "nccl-tests"
    ONE_PROCESS = "nccl-tests -g"
    TORCH = "torch"


@dataclass(frozen=True, slots=True)
class CollectiveSettings:
    """What decides beside the topology.

    `version` is the library's ("2.27.7"; '' for the newest known), `algorithm` what NCCL_ALGO forces. `p2p` is None for
    NCCL's own rule (PCIe peers below one host bridge), False with NCCL_P2P_DISABLE=1, True with NCCL_P2P_LEVEL=SYS;
    `gdr` False: cards exchange with host memory. `small_pages` says whether shared memory is of 4 KiB pages, None by
    the version. `without` names measured machines of which no learned figure may come.
    """

    version: str = ""
    launch: Launch = Launch.NCCL_TESTS
    algorithm: Algorithm | None = None
    p2p: bool | None = None
    gdr: bool = True
    small_pages: bool | None = None
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CollectivePoint:
    """A message of `size` bytes: `time` in s, `bus_bandwidth` in B/s from `low` to `high`, and what was chosen.

    `rests_on` are the sources of the choice and of the time.
    """

    size: float
    time: float
    bus_bandwidth: float
    low: float
    high: float
    algorithm: Algorithm
    protocol: Protocol
    channels: int
    limit: str
    rests_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedAlgorithm:
    """An algorithm that the library could run: the time (s) that it plans, and the bus bandwidth (B/s) predicted of it.

    The planned time decides what runs; it is not what the call is predicted to take.
    """

    algorithm: Algorithm
    protocol: Protocol
    planned: float
    bus_bandwidth: float


@dataclass(frozen=True, slots=True)
class TransportPeak:
    """The bus bandwidth (B/s), from `low` to `high`, that long messages over PCIe reach with one transport of NCCL."""

    transport: str
    bus_bandwidth: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CollectiveCurve:
    """A collective of `ranks` at several sizes; `library` names the version that the constants come from.

    `order` is the order of the ranks in a ring, `peaks` the bus bandwidth of each algorithm for long messages,
    `sources` what those rest on. `compared` are the algorithms at the largest size, the one that runs first; empty
    where one is forced or there is only one. `chosen_by` says what decided beside the planned times. `transports` are
    what NCCL may use over PCIe, by settings that a description may not know; empty elsewhere.
    """

    system: System
    collective: Collective
    ranks: tuple[str, ...]
    settings: CollectiveSettings
    library: str
    points: tuple[CollectivePoint, ...]
    order: tuple[str, ...]
    peaks: tuple[AlgorithmPeak, ...]
    sources: tuple[str, ...]
    compared: tuple[ComparedAlgorithm, ...] = ()
    chosen_by: str = ""
    transports: tuple[TransportPeak, ...] = ()


@dataclass(frozen=True, slots=True)
class AlgorithmPeak:
    """The `bus_bandwidth` (B/s) that long messages reach, from `low` to `high`, and what limits it."""

    algorithm: Algorithm
    bus_bandwidth: float
    low: float
    high: float
    limit: str
    rests_on: str
    basis: str = "calibrated"


def collective_named(name: str) -> Collective:
    """The collective of that name, in the spelling of torch or of nccl-tests; UnknownName for another."""
    plain = name.strip().lower().removesuffix("_perf").replace("-", "_")
    spellings = {collective.value.replace("_", ""): collective for collective in Collective}
    try:
        return spellings[plain.replace("_", "")]
    except KeyError:
        raise unknown_name("collective", name, [collective.value for collective in Collective]) from None
