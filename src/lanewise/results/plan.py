"""What a probe is asked: a plan names a system, a scenario and the metrics wanted, whoever answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lanewise.perf.flow import Flow
from lanewise.results.observation import Observation, Source
from lanewise.topology.model import System

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
class Metric:
    """What to report and in which unit; METRICS in the model probe says which names exist."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One question to a probe: this scenario on this system, these metrics."""

    system: System
    scenario: Copies | Service
    metrics: tuple[Metric, ...]


class Probe(Protocol):
    """Anything that answers plans: the performance model, CUDA, storage, a network, LoadGen."""

    @property
    def source(self) -> Source:
        """What its observations are: predicted or measured."""

    def run(self, plan: Plan) -> Sequence[Observation]:
        """One observation for each metric of the plan, in its order."""
