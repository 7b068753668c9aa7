"""Plans and the probes that carry them out: a plan names a system, a scenario and a metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from lanewise.perf.flow import Flow
from lanewise.results.observation import Observation
from lanewise.results.traffic import MachineTraffic
from lanewise.topology.model import System

PlanT = TypeVar("PlanT", contravariant=True)
ValueT = TypeVar("ValueT", covariant=True)

# How the rate of a service is predicted.
METHODS = (STEADY, SIMULATION) = ("steady state", "simulation")


@dataclass(frozen=True, slots=True)
class Copies:
    """Concurrent flows, measured together."""

    flows: tuple[Flow, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """An inference service on every GPU of `host`: `mode` is server or offline, `division` closed or network.

    `method` says how its rate is predicted: in steady state without a latency bound, or by event simulation as the
    largest rate that keeps it.
    """

    workload: str
    mode: str = "server"
    division: str = "closed"
    host: str | None = None
    name: str = ""
    method: str = STEADY


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model predicts: a metric (COPY_METRICS, SERVICE_METRICS, TRAFFIC_METRICS) of a scenario on a system."""

    system: System
    scenario: Copies | Service | MachineTraffic
    metric: str
    unit: str


class Probe(Protocol[PlanT, ValueT]):
    """Anything that carries out a plan: the performance model, host memory, CUDA, storage, a network, LoadGen.

    A probe that measures yields each Sample as soon as it is taken; `results.sample.summarise` makes observations of
    them. The model yields the one Observation of its Plan. The caller shows and keeps them.
    """

    def run(self, plan: PlanT, /) -> Iterator[ValueT]:
        """The values, each as soon as it is known; closing the iterator frees what the probe holds."""


StudyProbe: TypeAlias = "Probe[Plan, Observation]"
