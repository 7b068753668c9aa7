from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.options.loadtest import BatchingOptions

class BadInput(ValueError):
    args: tuple[str, str]

class Network:
    def __init__(
        self,
        capacities: Sequence[float],
        uses: Sequence[Sequence[tuple[int, float]]],
        weights: Sequence[float],
        caps: Sequence[float],
        senders: Sequence[int] = (),
        turn: float = 1.0,
        apart: float = 0.0,
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
    keep_rates: int,
    queues: NDArray[np.int32],
    waiting: NDArray[np.int32],
    awaited: NDArray[np.int32],
) -> tuple[NDArray[np.float64], list[tuple[float, list[float]]], bool]: ...

class Arrivals:
    POISSON: Arrivals
    ONE_BY_ONE: Arrivals
    AT_ONCE: Arrivals

class Dispatch:
    LEAST: Dispatch
    ROUND_ROBIN: Dispatch
    RANDOM: Dispatch

class Waiting:
    OLDEST: Waiting
    WORKER: Waiting

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
        setup_each: float = 0.0,
    ) -> None: ...

class Worker:
    def __init__(
        self, pool: int, gpu: int, buffers: int, copy: Leg, back: Leg, times: Sequence[float], streams: int = 1,
        shares: Sequence[float] = (),
    ) -> None: ...  # fmt: skip

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
    waiting: Waiting
    in_turn: bool
    variation: float
    sample_variation: float
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
class HostWork:
    COPY: HostWork
    STREAM_COPY: HostWork
    READ: HostWork
    WRITE: HostWork
    STREAM_WRITE: HostWork

class HostWindow:
    @property
    def seconds(self) -> float: ...
    @property
    def bytes(self) -> list[float]: ...

def common_window(timestamps: Sequence[Sequence[float]], block_bytes: float) -> HostWindow: ...
def has_streams() -> bool: ...
def fill_pattern(memory: HostMemory) -> None: ...
def spoil(memory: HostMemory) -> None: ...

class HostPieces:
    def __init__(self, cpu: int, sources: Sequence[HostMemory], targets: Sequence[HostMemory]) -> None: ...

class HostCrew:
    def __init__(self, threads: Sequence[HostPieces], block: int) -> None: ...
    @property
    def threads(self) -> int: ...
    def run(self, work: HostWork, seconds: float) -> HostWindow: ...
    def begin_check(self) -> None: ...
    def holds(self, work: HostWork, thread: int, piece: int) -> bool: ...
    def adds_up(self, thread: int) -> bool: ...

class HostChase:
    def __init__(self, pieces: Sequence[HostMemory]) -> None: ...
    @property
    def lines(self) -> int: ...
    @property
    def loads(self) -> int: ...
    def fill(self, piece: int) -> None: ...
    def next(self, line: int) -> int: ...
    def run(self, cpu: int, seconds: float) -> float: ...
    def verify(self) -> bool: ...

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
    CUFILE: StorageEngine

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
    gpu: int
    cuda: str
    cufile: str
    cpus: list[int]
    def load(self, targets: Sequence[tuple[int, int]], chunks: Sequence[tuple[int, int, int, int, int]]) -> None: ...

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
        read: bool = True,
        keep: bool = True,
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

class EndSetup:
    def __init__(self, bytes: int, node: int = -1, cpus: Sequence[int] = ..., seed: int = 0) -> None: ...

class ByteCounters:
    @property
    def seconds(self) -> float: ...
    @property
    def bytes(self) -> list[int]: ...

class RoundTrips:
    @property
    def count(self) -> int: ...
    def mean(self) -> float: ...
    def percentile(self, share: float) -> float: ...

class TcpStream:
    def __init__(self, sockets: Sequence[int], sends: bool, setup: EndSetup, zero_copy: bool = False) -> None: ...
    def ready(self) -> bool: ...
    def check(self) -> None: ...
    def go(self) -> None: ...
    def counters(self) -> ByteCounters: ...
    def stop(self) -> None: ...
    def done(self) -> bool: ...
    def nodes(self) -> dict[int, int]: ...
    @property
    def copied(self) -> bool: ...

class TcpPing:
    def __init__(self, socket: int, asks: bool, setup: EndSetup) -> None: ...
    def ready(self) -> bool: ...
    def check(self) -> None: ...
    def go(self) -> None: ...
    def take(self) -> RoundTrips: ...
    def stop(self) -> None: ...
    def done(self) -> bool: ...
    def nodes(self) -> dict[int, int]: ...

class VerbsWork:
    WRITE: VerbsWork
    READ: VerbsWork
    SEND: VerbsWork
    RECEIVE: VerbsWork
    NOTHING: VerbsWork
    ASK_WRITE: VerbsWork
    ANSWER_WRITE: VerbsWork
    ASK_SEND: VerbsWork
    ANSWER_SEND: VerbsWork

class VerbsSetup:
    def __init__(self, common: EndSetup) -> None: ...
    device: str
    port: int
    gid_index: int
    work: VerbsWork
    is_source: bool
    pairs: int
    depth: int
    inline_bytes: int
    events: bool

class VerbsEnd:
    def __init__(self, setup: VerbsSetup) -> None: ...
    def address(self) -> dict[str, int | str | list[int]]: ...
    def connect(self, peer: dict[str, object]) -> None: ...
    def begin(self) -> None: ...
    def ready(self) -> bool: ...
    def check(self) -> None: ...
    def go(self) -> None: ...
    def counters(self) -> ByteCounters: ...
    def take(self) -> RoundTrips: ...
    def stop(self) -> None: ...
    def done(self) -> bool: ...
    def nodes(self) -> dict[int, int]: ...

class BlockTimes:
    @property
    def seconds(self) -> float: ...
    @property
    def posting(self) -> float: ...
    @property
    def completing(self) -> float: ...

class TcpBlocks:
    def __init__(self, socket: int, sends: bool, setup: EndSetup, count: int, list: int) -> None: ...
    def transfer(self) -> BlockTimes: ...
    def ready(self) -> bool: ...
    def check(self) -> None: ...
    def go(self) -> None: ...
    def stop(self) -> None: ...
    def done(self) -> bool: ...
    def nodes(self) -> dict[int, int]: ...

class VerbsBlocks:
    def __init__(self, setup: VerbsSetup, count: int, list: int) -> None: ...
    def address(self) -> dict[str, int | str | list[int]]: ...
    def connect(self, peer: dict[str, object]) -> None: ...
    def transfer(self) -> BlockTimes: ...
    def ready(self) -> bool: ...
    def check(self) -> None: ...
    def go(self) -> None: ...
    def stop(self) -> None: ...
    def done(self) -> bool: ...
    def nodes(self) -> dict[int, int]: ...

def verbs_devices() -> list[str]: ...

# cuda

CUDA_MOST_COPIES: int
"""Most copies of one flow that wait behind the hold (512 entries of a stream's queue, an event with each)."""

class CudaDevice:
    """One GPU as the driver shows it: `pci` like '0000:1b:00.0', `numa` -1 if unknown, memory in bytes."""

    @property
    def ordinal(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def pci(self) -> str: ...
    @property
    def numa(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def free(self) -> int:
        """Bytes free now; asks the driver each time, which makes a context on that GPU (some 0.3 s once)."""
    @property
    def multiprocessors(self) -> int: ...
    @property
    def copy_engines(self) -> int: ...
    @property
    def capability(self) -> tuple[int, int]: ...

class CudaFlow:
    """`copies` copies of `bytes` from `src` to `dst` (ordinals; -1 is host memory on NUMA node `node`, -1 any).

    The device that starts the copies: of host and GPU the GPU; of two GPUs `src`, or `dst` if `read`.
    """

    def __init__(
        self,
        src: int,
        dst: int,
        bytes: int,
        copies: int,
        node: int = -1,
        sm: bool = False,
        read: bool = False,
        p2p: bool = True,
        duplex: bool = False,
    ) -> None:
        """`sm`: copied by a kernel, else by a copy engine; `p2p` False: cuMemcpyPeerAsync with peer access off.

        `duplex`: by one kernel with the opposite flow, of as many bytes, which has it too (host and GPU only).
        """

    @property
    def src(self) -> int: ...
    @property
    def dst(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def node(self) -> int: ...
    @property
    def sm(self) -> bool: ...
    @property
    def read(self) -> bool: ...
    @property
    def p2p(self) -> bool: ...
    @property
    def duplex(self) -> bool: ...

class CudaTiming:
    """One flow's run: `timestamps` are s from the common release to the end of each copy, or of several (ascending)."""

    @property
    def timestamps(self) -> list[float]: ...

class PreparedCopies:
    """Buffers, streams and events for the copies of some flows, ready to run again and again.

    Freed with the object or by close(), which keeps the buffers for the next flows that Cuda prepares.
    Another thread's close() waits for the run that goes on.
    """

    def run(self) -> list[CudaTiming]:
        """All flows queued behind a closed gate, released at once, timed by device events, in the flows' order.

        ProbeFailure if the hold timed out ("held too long"), if a copy failed, or after close().
        """
    def verify(self) -> None:
        """Copies a fresh pattern once, outside any timing; ProbeFailure names the flow and its first wrong byte."""
    def pages(self) -> list[dict[int, int]]:
        """Of each flow: pages of its host buffer by NUMA node ({} if it has none)."""
    def resize(self, timestamp_counts: list[int], copies_per_timestamp: list[int] = ...) -> None:
        """Other numbers of timestamps (of queries: batches), and of copies before each (none: 1); the buffers stay."""
    def close(self) -> None: ...

class CudaBlocks:
    """`count` pieces of `bytes` (a multiple of 16) from `src` to `dst`, scattered in both memories.

    `method`: 'cuMemcpyAsync' (a call a piece), 'cuMemcpyBatchAsync' (one for all), 'cuMemcpyBatchAsync-256' (one for
    256), 'cuMemcpyBatchAsync-256-sorted' (these in the order of the addresses at the destination), 'kernel'. Ends as of
    CudaFlow.
    """

    def __init__(self, src: int, dst: int, bytes: int, count: int, method: str, node: int = -1) -> None: ...

class BlockRun:
    """Flows of pieces that start together, each posted by a thread of its own; freed with the object or by close()."""

    def run(self) -> list[float]:
        """Of each flow the seconds from the common start until its last piece has arrived, posting included."""
    def verify(self) -> None:
        """Moves a fresh pattern once, untimed; ProbeFailure names the flow and the first wrong byte of a piece."""
    def pages(self) -> list[dict[int, int]]:
        """Of each flow: pages of its host buffer by NUMA node ({} if it has none)."""
    def close(self) -> None: ...

class GroupCalls:
    """Calls of NCCL as one group, issued again and again; functions, buffers, ranks and streams as addresses."""

    def __init__(self, start: int, end: int) -> None:
        """`start` and `end`: ncclGroupStart and ncclGroupEnd."""
    def add_rooted(
        self, function: int, send: int, receive: int, count: int, type: int, which: int, rank: int, stream: int
    ) -> None:
        """ncclAllReduce, ncclReduceScatter (`which` operation) or ncclBroadcast (`which` root)."""
    def add_gather(self, function: int, send: int, receive: int, count: int, type: int, rank: int, stream: int) -> None:
        """ncclAllGather."""
    def add_peer(self, function: int, buffer: int, count: int, type: int, peer: int, rank: int, stream: int) -> None:
        """ncclSend or ncclRecv."""
    def issue(self, times: int) -> tuple[int, int]:
        """(0, 0), or which call failed first (0: the one that begins the group) and its code; none is made after it."""

class Cuda:
    """The CUDA driver, opened at run time. ProbeFailure if it is not there, has no GPU, or refuses.

    The first of a process decides how kernels are loaded: EAGER, or LAZY without a gate; CUDA_MODULE_LOADING wins.
    """

    def __init__(self, library: str = "libcuda.so.1", module_loading: str = "EAGER") -> None: ...
    @property
    def driver(self) -> int:
        """What cuDriverGetVersion says: 13000 is CUDA 13.0."""
    @property
    def devices(self) -> list[CudaDevice]: ...
    @property
    def holds_staged(self) -> bool:
        """False once the driver has blocked while it queued a staged copy: no gate is closed before these then."""
    def can_peer(self, device: int, peer: int) -> bool: ...
    def prepare(self, flows: Sequence[CudaFlow]) -> PreparedCopies:
        """Buffers and all for these flows, each path used once; ProbeFailure if memory or peer access is missing."""
    def prepare_queries(
        self,
        device: int,
        node: int,
        method: str,
        library: int = 8192,
        bytes: int = 150528,
        batch: int = 128,
        batches: int = 8,
    ) -> PreparedCopies:
        """Batches of random samples (fixed seed) of a pinned library into one device buffer; a timestamp each batch.

        method: 'calls' (a cuMemcpyHtoDAsync each), 'batch' (cuMemcpyBatchAsync; ProbeFailure where the driver has
        none), 'kernel' (a kernel reads pinned memory), 'staged' (one CPU thread gathers into one of two pinned
        buffers, one copy each). `bytes` is a multiple of 16. Copies beyond the first CUDA_MOST_COPIES are queued
        after the release, and 'staged' gathers after it, so that both show what the CPU costs.
        """
    def prepare_blocks(self, flows: Sequence[CudaBlocks]) -> BlockRun:
        """Buffers and streams for these flows; ProbeFailure if memory, peer access or the driver's call is missing."""
    def chase(self, reader: int, holder: int, node: int = -1, steps: int = 100_000, bytes: int = 2 * 2**20) -> float:
        """Seconds a step of a pointer chase by a kernel on `reader` through memory of `holder` (-1: host memory).

        As nvbandwidth does (with a million steps): nodes 128 bytes apart, every multiprocessor in turn takes an equal
        share of the steps, timed by events. Each share's time has a launch in it, some microseconds: more steps make
        it weigh less.
        """
    def launch(self, src: int, dst: int, p2p: bool, repeats: int = 100, node: int = -1) -> float:
        """Seconds a 16-byte copy, in a row of `repeats` copies queued behind a kernel that waits at a gate.

        As p2pBandwidthLatencyTest does without --sm_copy: cuMemcpyPeerAsync on `src`'s stream, peer access on or off.
        """

# loadtest

class CudaArray:
    """A batch in a GPU's memory; its contents last as long as the engine's call."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class SystemUnderTest:
    """What a load generator sends queries to."""

    @property
    def name(self) -> str: ...
    def load(self, samples: Sequence[int]) -> None: ...
    def unload(self, samples: Sequence[int]) -> None: ...

class ConnectionShape(Protocol):
    """What both sides of a connection agree on: transactions in flight, and the bytes of a sample and of an answer."""

    @property
    def slots(self) -> int: ...
    @property
    def sample_bytes(self) -> int: ...
    @property
    def answer_bytes(self) -> int: ...

class SlotMemory:
    """Slots that a node's Frontend fills: host memory, or a GPU's."""

    @property
    def size(self) -> int: ...

def check_gpu_memory(driver: str, ordinal: int) -> None:
    """ProbeFailure says what the CUDA driver, that GPU or libibverbs lacks for GpuMemory."""

class GpuMemory(SlotMemory):
    """Memory (bytes) of a GPU that RDMA devices write to, by dma-buf; ProbeFailure where something is missing."""

    def __init__(self, driver: str, ordinal: int, bytes: int) -> None: ...

class SharedMemory(SlotMemory):
    """Memory (bytes) on a NUMA node (-1: any) that another process may map by its descriptor `fd`."""

    def __init__(self, bytes: int, node: int = -1) -> None: ...
    @staticmethod
    def map(fd: int, bytes: int) -> SharedMemory:
        """What another process has made; ProbeFailure where it is smaller than `bytes`, or may shrink."""
    @property
    def fd(self) -> int: ...

def shm_bytes(shape: ConnectionShape) -> int:
    """Bytes of the memory of a connection within one host."""

class VerbsEndpoint:
    """One side's RC queue pair over an RDMA device, until it is added to a Frontend or a node. Both sides make one,
    pass each other its address and connect. ProbeFailure without verbs, or for an address that is not valid."""

    @staticmethod
    def of_frontend(
        shape: ConnectionShape, device: str, port: int = 1, gid_index: int = 0, node: int = -1
    ) -> VerbsEndpoint:
        """With new memory for answers; `node`: NUMA node of its message rings (-1: any)."""
    @staticmethod
    def of_node(
        shape: ConnectionShape,
        samples: SlotMemory,
        first_slot: int,
        device: str,
        port: int = 1,
        gid_index: int = 0,
        node: int = -1,
    ) -> VerbsEndpoint:
        """With the node's slots from `first_slot` on."""
    def address(self) -> dict[str, Any]:
        """What the other side's connect() takes, as JSON carries it."""
    def connect(self, peer: dict[str, Any]) -> None: ...

class NetworkSystem(SystemUnderTest):
    """The Frontend: sends every query to a node. `fill` gives a sample's bytes (None: synthetic); the first `trace`
    queries of a run are kept. `name` costs a round trip to every node, and names each."""

    def __init__(
        self,
        samples: int,
        resident: int,
        sample_bytes: int,
        fill: Callable[[int], Any] | None = None,
        trace: int = 0,
    ) -> None: ...
    def add_shm(
        self,
        node: int,
        shape: ConnectionShape,
        memory: SharedMemory,
        samples: SharedMemory,
        first_slot: int,
        cpus: Sequence[int] = (),
    ) -> None:
        """A connection within one host: its `memory`, and the node's slots, of which it has those from `first_slot`."""
    def add_tcp(
        self,
        node: int,
        shape: ConnectionShape,
        fd: int,
        zero_copy: bool = False,
        cpus: Sequence[int] = (),
    ) -> None:
        """A connection over a connected socket, which is the system's from now on."""
    def add_verbs(self, node: int, endpoint: VerbsEndpoint, numa: int = -1, cpus: Sequence[int] = ()) -> None:
        """A connection over a connected queue pair, which is the system's from now on; `numa`: its NIC's NUMA node."""
    def lose(self, node: int, reason: str) -> None:
        """From any thread: the node is gone; its queries get empty answers, the others go on."""
    def forget(self, node: int) -> None:
        """Between two runs: lets the node's connections go, so that new ones can take their place."""
    def counters(self) -> list[dict[str, Any]]:
        """Of each connection: number, node, queries answered in the last run, posted, completed, bytes_out, bytes_in,
        doorbells, wakeups, outstanding, lost, stale, reason ('' while it is not lost)."""
    def latencies(self, node: int | None = None) -> dict[str, dict[str, float]]:
        """Since the last start, s: dispatch, fabric (there and back), node, total; each as in statistics(); of a node,
        or of all together."""
    def trace(self) -> list[tuple[int, int, int, int, int]]:
        """Between runs, of the first queries: number of the connection; issued, posted, answered, at the node (ns)."""
    @property
    def stalled(self) -> float:
        """Seconds that issuing waited for credits in the last run."""

class NodeSession:
    """A Frontend's session with this Accelerator node, whose queries go to `system`."""

    def __init__(self, system: SystemUnderTest, name: str) -> None: ...
    def add_shm(
        self,
        shape: ConnectionShape,
        memory: SharedMemory,
        samples: SharedMemory,
        first_slot: int,
        cpus: Sequence[int] = (),
    ) -> None: ...
    def add_tcp(
        self, shape: ConnectionShape, fd: int, samples: SharedMemory, first_slot: int, cpus: Sequence[int] = ()
    ) -> None: ...
    def add_verbs(self, endpoint: VerbsEndpoint, cpus: Sequence[int] = ()) -> None:
        """A connected queue pair, which is the session's from now on."""
    @property
    def reason(self) -> str:
        """Why it ended; '' while it goes on."""
    @property
    def received(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def doorbells(self) -> int:
        """Groups of messages that were posted together."""
    @property
    def wakeups(self) -> int:
        """Times that a receiving thread had slept."""
    def close(self) -> None:
        """Ends it: a run that goes on is given up."""

class ChecksumSystem(SystemUnderTest):
    """Answers at once with the CRC-32 (little endian) of the content of a query's slot: for tests and benchmarks."""

    def __init__(self, slots: SharedMemory, bytes: int) -> None: ...

class NullSystem(SystemUnderTest):
    """Answers at once, or from a thread in batches."""

    def __init__(self, by_thread: bool = False) -> None: ...

class LawSystem(SystemUnderTest):
    """One queue before `servers` servers, each query's service constant or exponential with mean `service` s."""

    def __init__(self, service: float, exponential: bool = False, servers: int = 1, seed: int = 1) -> None: ...

class BatchingSystem(SystemUnderTest):
    """Queues, batches, copies, an engine, answers: a queue a device. ProbeFailure where it cannot be made.

    A device is a GPU's ordinal (-1: the CPU), the NUMA node of the library that it reads, and its engine (None: the
    synthetic one); `driver` is CUDA's library. With `slots`, sample i is what a Frontend puts into slot i of them.
    """

    def __init__(
        self,
        options: BatchingOptions,
        devices: Sequence[tuple[int, int, Callable[[Any, Any], Any] | None]],
        samples: int,
        fill: Callable[[int], Any] | None,
        checksum: bool,
        trace: int,
        driver: str,
        slots: SlotMemory | None = None,
    ) -> None: ...
    def limit_batch(self, batch: int) -> None:
        """Between runs: the most queries of a batch, up to the options'."""

    def statistics(self) -> dict[str, Any]:
        """Since the last start: stages (s), sizes (batches by size), bytes, answered, failed, stalled (s)."""
    def trace(self) -> list[tuple[int, int, int, int, int, int, Any]]:
        """Between runs, of the first batches: queue, stream, batched, copied, inferred, completed, arrivals (ns)."""
    @property
    def copies(self) -> list[tuple[str, dict[str, float]]]:
        """Of each queue: how it copies, and the seconds that each method tried took for a full batch."""

def replay(
    system: SystemUnderTest,
    seconds: Any,
    samples: Any,
    coalesce: bool = False,
    flush: bool = True,
    keep: bool = False,
    limit: float = 60.0,
) -> dict[str, Any]:
    """Starts the system, issues samples[i] (uint64) at seconds[i] (float64, ascending) from a native thread, stops it.

    By query: scheduled, issued, answered (ns, -1: never), answers (how many it got), data (if `keep`); failure is what
    stopped the system, with a hint, or two empty texts. `limit` s after the last issue it waits no longer.
    """

def synthetic_sample(sample: int, bytes: int) -> bytes:
    """The bytes of a synthetic sample."""
