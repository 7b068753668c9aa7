from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class BadInput(ValueError):
    args: tuple[str, str]

class Network:
    def __init__(
        self,
        capacities: Sequence[float],
        uses: Sequence[Sequence[tuple[int, float]]],
        weights: Sequence[float],
        caps: Sequence[float],
    ) -> None: ...

class FlowEngine:
    def __init__(self, network: Network) -> None: ...
    @property
    def now(self) -> float: ...
    @property
    def active(self) -> int: ...
    def add(self, flow_class: int, size: float, id: int) -> None: ...
    def next_event_time(self) -> float: ...
    def advance(self) -> list[int]: ...
    def advance_to(self, time: float) -> None: ...
    def rate(self, flow_class: int) -> float: ...
    def limit(self, flow_class: int) -> int: ...
    def moved(self, flow_class: int) -> float: ...

def share(network: Network, counts: Sequence[float]) -> tuple[list[float], list[int], list[float]]: ...
def run_flows(
    network: Network,
    flow_class: NDArray[np.int32],
    sizes: NDArray[np.float64],
    starts: NDArray[np.float64],
    keep_rates: int = 0,
) -> tuple[NDArray[np.float64], list[tuple[float, list[float]]], bool]: ...

class Arrivals:
    POISSON: Arrivals
    ONE_BY_ONE: Arrivals
    AT_ONCE: Arrivals

class Dispatch:
    LEAST: Dispatch
    ROUND_ROBIN: Dispatch
    RANDOM: Dispatch

class Law:
    CONSTANT: Law
    EXPONENTIAL: Law

class Leg:
    def __init__(
        self,
        flow_class: int = -1,
        bytes: float = 0.0,
        setup: float = 0.0,
        latency: float = 0.0,
        alone: float = ...,
        slots: int = 1,
        most: int = 1,
    ) -> None: ...

class Worker:
    def __init__(self, pool: int, gpu: int, buffers: int, copy: Leg, back: Leg, times: Sequence[float]) -> None: ...

class Pool:
    def __init__(self, service: int, arrive: Leg) -> None: ...

class Background:
    def __init__(self, flow_class: int, bytes: float, start: float = 0.0, period: float = 0.0) -> None: ...

class Service:
    arrivals: Arrivals
    rate: float
    samples: int
    total: int
    bound: float
    dispatch: Dispatch
    batch: int
    timeout: float
    law: Law
    late_limit: int

class Scenario:
    services: list[Service]
    pools: list[Pool]
    workers: list[Worker]
    background: list[Background]
    gpus: int
    duration: float
    skip: float
    steps: int
    trace: int
    seed: int

class ServiceOutcome:
    @property
    def issued(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def counted(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def last_answer(self) -> float: ...
    @property
    def sum(self) -> float: ...
    def percentile(self, share: float) -> float: ...
    def stages(self, least: float) -> list[float]: ...

class TracedBatch:
    @property
    def worker(self) -> int: ...
    @property
    def formed(self) -> float: ...
    @property
    def copied(self) -> float: ...
    @property
    def started(self) -> float: ...
    @property
    def served(self) -> float: ...
    @property
    def done(self) -> float: ...
    @property
    def scheduled(self) -> list[float]: ...
    @property
    def landed(self) -> list[float]: ...

class Outcome:
    @property
    def services(self) -> list[ServiceOutcome]: ...
    @property
    def moved(self) -> list[float]: ...
    @property
    def steps(self) -> list[list[float]]: ...
    @property
    def busy(self) -> list[float]: ...
    @property
    def gpu_steps(self) -> list[list[float]]: ...
    @property
    def trace(self) -> list[TracedBatch]: ...
    @property
    def end(self) -> float: ...
    @property
    def most_in_flight(self) -> int: ...
    @property
    def ended_early(self) -> bool: ...

def simulate(network: Network, scenario: Scenario) -> Outcome: ...

class ProbeFailure(RuntimeError):
    args: tuple[str, str]

class HostMemory:
    def __init__(self, bytes: int, node: int = -1) -> None: ...
    @property
    def size(self) -> int: ...
    def nodes(self, most: int = 4096) -> dict[int, int]: ...

# host: memory copies

# storage

class StorageVolume:
    def __init__(self, files: Sequence[int], stripe: int, bytes: int) -> None: ...
    @property
    def files(self) -> list[int]: ...
    @property
    def bytes(self) -> int: ...
    def pieces(self, offset: int, bytes: int) -> list[tuple[int, int, int, int]]: ...

class StorageEngine:
    RING: StorageEngine
    SYNC: StorageEngine

class StorageJob:
    volumes: list[StorageVolume]
    files: list[int]
    second_files: list[int]
    names: list[str]
    io: int
    threads: int
    depth: int
    engine: StorageEngine
    bounce: bool
    node: int
    cpus: list[int]

class StorageData:
    ANY: StorageData
    FILLED: StorageData
    STAMPED: StorageData
    REREAD: StorageData

class StorageTask:
    def __init__(
        self,
        count: int,
        most: int = 0,
        seconds: float = 0.0,
        write: bool = False,
        random: bool = False,
        seed: int = 0,
        salt: int = 0,
        data: StorageData = ...,
    ) -> None: ...

class StorageOutcome:
    @property
    def window(self) -> float: ...
    @property
    def makespan(self) -> float: ...
    @property
    def in_window(self) -> list[int]: ...
    @property
    def bytes(self) -> list[int]: ...
    @property
    def times(self) -> NDArray[np.float32]: ...

class StorageRunner:
    def __init__(self, job: StorageJob) -> None: ...
    def start(self, task: StorageTask) -> None: ...
    def stop(self) -> None: ...
    def finish(self) -> StorageOutcome: ...
    def nodes(self) -> dict[int, int]: ...
    @property
    def running(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    @property
    def bytes(self) -> list[int]: ...
    @property
    def how(self) -> str: ...

def io_uring_missing() -> str: ...
def in_page_cache(file: int, bytes: int) -> float: ...

# network

# cuda
