"""A CUDA driver in Python: what native/cuda offers, over flows that share capacities in max-min fairness.

The rates that a measurement should find are known here, which they never are on a real machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lanewise._native import CudaFlow as Flow
from lanewise._native import ProbeFailure

GIB = 2**30


@dataclass(frozen=True)
class Device:
    ordinal: int
    name: str = "Stand-in"
    numa: int = 0
    memory: int = 141 * GIB
    free: int = 140 * GIB

    @property
    def pci(self) -> str:
        return f"0000:{0x1B + self.ordinal:02x}:00.0"


@dataclass
class Timing:
    timestamps: list[float]


@dataclass
class Cuda:
    """Capacities in B/s; `setup` s pass before each copy; `runs` counts, and `held` names those that time out.

    With `serves_queues` a GPU's copies to one peer wait until those to another have all ended.
    """

    gpus: int = 2
    link: float = 50e9
    peer: float = 400e9
    staged: float = 30e9
    duplex: float = 100e9
    setup: float = 0.0
    nodes: dict[int, int] = field(default_factory=lambda: {0: 64})
    peers: bool = True
    free: int = 140 * GIB
    held: tuple[int, ...] = ()
    queue: int = 10**9
    wrong: str = ""
    driver: int = 13000
    runs: int = 0
    open: int = 0
    holds_staged: bool = True
    serves_queues: bool = False
    chased: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def devices(self) -> list[Device]:
        return [Device(i, free=self.free) for i in range(self.gpus)]

    def can_peer(self, device: int, peer: int) -> bool:
        return self.peers

    def prepare(self, flows: list[Flow]) -> Run:
        self.open += 1
        return Run(self, list(flows), [flow.copies for flow in flows])

    def prepare_queries(
        self, device: int, node: int, method: str, library: int = 8192, bytes: int = 150528, batch: int = 128,
        batches: int = 8,
    ) -> Run:  # fmt: skip
        if method == "batch" and self.driver < 12080:
            raise ProbeFailure("cuMemcpyBatchAsync is not in this driver", "take a newer one")
        self.open += 1
        calls = batch if method == "calls" else 1
        return Run(self, [Flow(-1, device, bytes * batch, batches, node)], [batches], calls)

    def chase(self, reader: int, holder: int, node: int = -1, steps: int = 100_000, bytes: int = 2 * 2**20) -> float:
        self.chased.append((reader, holder, node))
        return 1.15e-6 if holder < 0 else 0.83e-6

    def launch(self, src: int, dst: int, p2p: bool, repeats: int = 100, node: int = -1) -> float:
        return 2.2e-6 if p2p else 18e-6

    def uses(self, flow: Flow) -> list[str]:
        if flow.src < 0:
            return [f"into {flow.dst}", f"both {flow.dst}"]
        if flow.dst < 0:
            return [f"from {flow.src}", f"both {flow.src}"]
        if not flow.p2p:
            return ["staging"]
        return [f"out {flow.src}", f"in {flow.dst}"]

    def capacity(self, resource: str) -> float:
        word = resource.split()[0]
        known = {"both": self.duplex, "staging": self.staged, "out": self.peer, "in": self.peer}
        return known.get(word, self.link)


@dataclass
class Run:
    cuda: Cuda
    flows: list[Flow]
    copies: list[int]
    calls: int = 1
    closed: bool = False
    each: list[int] = field(default_factory=list)

    def resize(self, timestamp_counts: list[int], copies_per_timestamp: list[int] | None = None) -> None:
        self.each = copies_per_timestamp or [1] * len(timestamp_counts)
        self.copies = [count * many for count, many in zip(timestamp_counts, self.each, strict=True)]

    def close(self) -> None:
        self.cuda.open -= not self.closed
        self.closed = True

    def pages(self) -> list[dict[int, int]]:
        return [dict(self.cuda.nodes) if -1 in (flow.src, flow.dst) else {} for flow in self.flows]

    def verify(self) -> None:
        if self.cuda.wrong:
            raise ProbeFailure(self.cuda.wrong, "")

    def _waits(self, i: int, left: list[float]) -> bool:
        flow = self.flows[i]
        peers = [k for k, other in enumerate(self.flows[:i]) if other.dst >= 0 and other.src == flow.src >= 0]
        return self.cuda.serves_queues and flow.dst >= 0 and any(left[k] for k in peers)

    def run(self) -> list[Timing]:
        self.cuda.runs += 1
        if self.cuda.runs in self.cuda.held or sum(self.copies) > self.cuda.queue:
            raise ProbeFailure("the copies were held too long", "")
        alone = [fair(self.cuda, [flow])[0] for flow in self.flows]
        work = [f.bytes + self.calls * self.cuda.setup * rate for f, rate in zip(self.flows, alone, strict=True)]
        left = [w * n for w, n in zip(work, self.copies, strict=True)]
        ends: list[list[float]] = [[] for _ in self.flows]
        now = 0.0
        while any(left):
            active = [i for i, amount in enumerate(left) if amount and not self._waits(i, left)]
            rates = dict(zip(active, fair(self.cuda, [self.flows[i] for i in active]), strict=True))
            step = min(left[i] / rates[i] for i in active)
            for i in active:
                before, after = left[i], left[i] - rates[i] * step
                after = 0.0 if after < 1e-6 * work[i] else after
                while len(ends[i]) < self.copies[i] and (self.copies[i] - len(ends[i]) - 1) * work[i] >= after:
                    to_go = before - (self.copies[i] - len(ends[i]) - 1) * work[i]
                    ends[i].append(now + to_go / rates[i])
                left[i] = after
            now += step
        each = self.each or [1] * len(ends)
        return [Timing(row[many - 1 :: many]) for row, many in zip(ends, each, strict=True)]


def fair(cuda: Cuda, flows: list[Flow]) -> list[float]:
    """Max-min fair rates: the tightest resource is filled first, its flows fixed, and so on."""
    rates: dict[int, float] = {}
    while len(rates) < len(flows):
        shares = {}
        for resource in {r for i, flow in enumerate(flows) if i not in rates for r in cuda.uses(flow)}:
            users = [i for i, flow in enumerate(flows) if resource in cuda.uses(flow)]
            rest = cuda.capacity(resource) - sum(rates.get(i, 0.0) for i in users)
            shares[resource] = rest / sum(i not in rates for i in users)
        tightest = min(shares, key=lambda name: shares[name])
        for i, flow in enumerate(flows):
            if i not in rates and tightest in cuda.uses(flow):
                rates[i] = shares[tightest]
    return [rates[i] for i in range(len(flows))]
