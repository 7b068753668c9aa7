"""Nodes without hardware: the model with noise in the place of probes, and planted faults, for surveys of any size.

Everything of a node follows from its name and the seed, so any process can answer for any node of the fleet.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from lanewise.checking import changes
from lanewise.checking.checkup import check
from lanewise.checking.expectation import HOST_MEMORY
from lanewise.fleet.model_findings import judged_rows, model_findings
from lanewise.fleet.node import ALONE, DRIVE, FACTS, NETWORK, SHARED_ALONE, SHARED_TOGETHER, TOGETHER, NodeReport
from lanewise.fleet.survey import LISTEN, NodeJob
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.results.sample import Sample, summarise
from lanewise.topology.model import Kind, System

KINDS = ("lost", "gpus", "link", "memory", "network", "network receive", "drive", "throttle")
# What a fault leaves of the rate, from the mildest to the worst that is planted.
_LEAST_LOSS, _MOST_LOSS = 0.80, 0.40
_SAMPLES = 5
# Relative standard deviations: of a sample, and of a node's true rate among healthy nodes. Medians of repeated copies
# lie within 1 to 2 % of each other (H200); memory, networks and drives differ more from node to node.
_OF_SAMPLE = 0.005
_OF_NODE = {"gpu": 0.006, HOST_MEMORY: 0.015, "network": 0.015, "storage": 0.02}
# One sample in so many is disturbed by other work and loses this share.
_DISTURBED, _LOST_SHARE = 50, 0.15
# Rates (B/s) of what the description of a server does not tell: memory copies, a 200 Gbit/s card, a drive, a share.
_RATES = {HOST_MEMORY: 90e9, "network": 24.3e9, DRIVE: 6.6e9, SHARED_ALONE: 5.0e9, SHARED_TOGETHER: 1.2e9}


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault of KINDS on a node; `remains` is the share (0..1) of the rate that it leaves, `about` the GPU."""

    kind: str
    remains: float = 1.0
    about: str = ""


@dataclass(frozen=True)
class SimulatedFleet:
    """`count` equal servers of `system`, with faults by node's name."""

    system: System
    count: int
    seed: int = 0
    faults: Mapping[str, PlantedFault] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """node0000 and following."""
        return [f"node{number:04}" for number in range(self.count)]

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs of a node."""
        return tuple(self.system.of_kind(Kind.GPU))

    def answer(self, name: str, job: NodeJob) -> NodeReport:
        """What a node answers to a job."""
        fault = self.faults.get(name, PlantedFault(""))
        if fault.kind == "lost":
            return NodeReport(name, failure="no answer in time (planted)")
        if job.do == LISTEN:
            return NodeReport(name, facts={"port": "0"})
        if job.do == FACTS:
            gpus = len(self.gpus) - (fault.kind == "gpus")
            facts = {"cpu": "simulated", "sockets": "2", "memory": "1007.5 GiB"}
            return NodeReport(name, facts, ("simulated GPU",) * gpus)
        rows = summarise(self._samples(name, job, fault))
        if job.do != ALONE:
            return NodeReport(name, rows=rows)
        checkup = check(rows, target=self.system)
        return NodeReport(name, rows=rows, findings=model_findings(checkup), judged=judged_rows(checkup))

    def _samples(self, name: str, job: NodeJob, fault: PlantedFault) -> Iterator[Sample]:
        chance = random.Random(f"{self.seed} {name} {job.do} {sorted(job.values.items())}")
        for row in self._true_rows(name, job, fault):
            for _ in range(_SAMPLES):
                disturbed = 1 - _LOST_SHARE if chance.randrange(_DISTURBED) == 0 else 1.0
                yield replace(row, value=(row.value or 0.0) * disturbed * chance.gauss(1, _OF_SAMPLE))

    def _true_rows(self, name: str, job: NodeJob, fault: PlantedFault) -> Iterator[Sample]:
        """The rows of a job without the noise of samples."""
        if job.do in (ALONE, TOGETHER):
            share = fault.remains if fault.kind == "memory" else 1.0
            yield self._row(name, "copy", "host0->host0", HOST_MEMORY, _RATES[HOST_MEMORY] * share)
            yield from self._copies(name, job.do, fault)
        elif job.do == NETWORK:
            partner = job.values["address"].partition(":")[0]
            for flow, a, b in (("host0->host1", name, partner), ("host1->host0", partner, name)):
                rate = _RATES["network"] * min(self._network(a, "send"), self._network(b, "receive"))
                yield Sample("tcp_bandwidth", flow, "goodput", rate, "GB/s", path="network")
        else:
            share = fault.remains if fault.kind == "drive" and job.do == DRIVE else 1.0
            yield self._row(name, "read", "vol0->host0", "storage", _RATES[job.do] * share)

    def _copies(self, name: str, phase: str, fault: PlantedFault) -> Iterator[Sample]:
        """The copies of a node's GPUs, one at a time or all together."""
        throttled = fault.remains if fault.kind == "throttle" and phase == TOGETHER else 1.0
        about = fault.about if fault.kind == "link" else ""
        lost = self.gpus[-1:] if fault.kind == "gpus" else ()
        for scenario, flow, rate, link in _copy_rates(_Changed(self.system, about), phase):
            if any(gpu in flow for gpu in lost):
                continue
            how = {"engine": "copy engine", **({"link under load": link} if link else {})}
            path = "host to device" if flow.startswith("host") else "device to host"
            row = self._row(name, scenario, flow, path if "host" in flow else "peer", rate * throttled)
            yield replace(row, how=how)

    def _row(self, name: str, scenario: str, flow: str, path: str, rate: float) -> Sample:
        return Sample(scenario, flow, "goodput", rate * self._own(name, flow, path), "GB/s", path=path)

    def _own(self, name: str, flow: str, path: str) -> float:
        """How much better or worse than the model this node's path is, healthy as it may be."""
        return random.Random(f"{self.seed} {name} {flow}").gauss(1, _OF_NODE.get(path, _OF_NODE["gpu"]))

    def _network(self, name: str, direction: str) -> float:
        fault = self.faults.get(name, PlantedFault(""))
        hit = fault.kind == "network" or fault.kind == f"network {direction}"
        return self._own(name, direction, "network") * (fault.remains if hit else 1.0)


def planted_fleet(system: System, count: int, faults: int, seed: int) -> SimulatedFleet:
    """`count` nodes of which `faults`, chosen by `seed`, have one fault each: every kind as often as the others."""
    chance = random.Random(seed)
    fleet = SimulatedFleet(system, count, seed)
    planted = {}
    for number, name in enumerate(chance.sample(fleet.names, faults)):
        kind = KINDS[number % len(KINDS)]
        about = chance.choice(fleet.gpus) if kind == "link" else ""
        planted[name] = PlantedFault(kind, chance.uniform(_MOST_LOSS, _LEAST_LOSS), about)
    return replace(fleet, faults=planted)


def undetected(fleet: SimulatedFleet, named: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The planted faults that are not `named` (cause by node) by their kind, and the healthy nodes that are accused."""
    missed = [f"{name}: {fault.kind}, named {named.get(name, 'none')}" for name, fault in fleet.faults.items()
              if named.get(name) != fault.kind]  # fmt: skip
    return missed, [f"{name}: {cause}" for name, cause in named.items() if name not in fleet.faults]


@dataclass(frozen=True)
class _Changed:
    """A system whose GPU `about` ('' is none) has half the lanes."""

    system: System
    about: str

    def __hash__(self) -> int:
        return hash((id(self.system), self.about))

    @cached_property
    def changed(self) -> System:
        """It with that link."""
        return changes.link_speed(self.about, None, 8).change_system(self.system) if self.about else self.system

    def link(self, gpu: str) -> str:
        """The link that the probe reads while it copies."""
        link = changes.link_above(self.changed, gpu)
        return f"Gen{link.gen} x{link.lanes}" if link is not None else ""


@lru_cache(maxsize=64)
def _copy_rates(machine: _Changed, phase: str) -> Sequence[tuple[str, str, float, str]]:
    """Scenario, flow, rate (B/s) and link of each copy that the model predicts in a phase."""
    gpus = machine.system.of_kind(Kind.GPU)
    to, back = ([f"host0->{gpu}" for gpu in gpus], [f"{gpu}->host0" for gpu in gpus])
    if phase == TOGETHER:
        rates = predict(machine.changed, parse_flows(", ".join(to))).rates
        return [
            ("together", rate.flow.name, rate.rate, machine.link(gpu)) for rate, gpu in zip(rates, gpus, strict=True)
        ]
    rows = []
    for scenario, flows in (("host_to_device_memcpy_ce", to), ("device_to_host_memcpy_ce", back)):
        for flow, gpu in zip(flows, gpus, strict=True):
            rows.append((scenario, flow, predict(machine.changed, parse_flows(flow)).rates[0].rate, machine.link(gpu)))
    for a, b in zip(gpus, [*gpus[1:], *gpus[:1]], strict=True):
        rate = predict(machine.changed, parse_flows(f"{a}->{b}")).rates[0].rate
        rows.append(("device_to_device_memcpy_write_ce", f"{a}->{b}", rate, ""))
    return rows


def answers(fleet: SimulatedFleet, jobs: Mapping[str, NodeJob]) -> list[NodeReport]:
    """What these nodes answer: of hundreds of nodes in one call, for a worker process."""
    return [fleet.answer(name, job) for name, job in jobs.items()]
