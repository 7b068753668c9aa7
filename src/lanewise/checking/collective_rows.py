"""Collectives of nccl-tests and rccl-tests, as the model of collectives predicts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.collectives.model import Collective, CollectivePoint, CollectiveSettings, Launch, collective_named
from lanewise.errors import UnknownName
from lanewise.perf.flow import Flow, parse_flows
from lanewise.results.observation import Observation
from lanewise.topology.model import Kind, System

if TYPE_CHECKING:
    from lanewise.collectives.curve import CollectiveModel

BUS_BANDWIDTH = "bus_bandwidth"
# Shorter messages (B) take as long as whoever issues them: torch, one process for all GPUs, a CUDA graph.
LEAST_JUDGED = 2**20
SHORT = "messages below 1 MiB take as long as issuing them does: not judged"
MISFIT = "the table is of"  # begins what is said where the description has other ranks
_DEFAULT = CollectiveSettings()


class CollectiveModels:
    """Models of collectives, each computed once: a table has many sizes of one, in place and out of place."""

    def __init__(self) -> None:
        self._models: dict[tuple[int, Collective, tuple[str, ...], CollectiveSettings], CollectiveModel] = {}

    def model(
        self, system: System, collective: Collective, ranks: Sequence[str], settings: CollectiveSettings
    ) -> CollectiveModel:
        """As of collective_model, with its errors."""
        from lanewise.collectives.curve import collective_model  # here: only described machines need it

        key = (id(system), collective, tuple(ranks), settings)  # a model keeps its system, so that no other has its id
        if key not in self._models:
            self._models[key] = collective_model(system, collective, ranks, settings)
        return self._models[key]


def is_collective(row: Observation) -> bool:
    """Whether a row is the bus bandwidth of a collective."""
    return row.metric == BUS_BANDWIDTH


def collective_point(
    system: System, row: Observation, device: Callable[[str], str], models: CollectiveModels,
    settings: CollectiveSettings = _DEFAULT,
) -> CollectivePoint | str:  # fmt: skip
    """The row as predicted by one of `models`, or why it is not: ranks that are not described, another tool's call.

    `device` has the device that a word of the results means. Raises what collective_model raises.
    """
    size = row.settings.get("bytes")
    collective = _collective(row)
    if collective is None or not size:
        return "the model has no such collective"
    ranks = _ranks(system, row, device)
    if not ranks:
        return rank_misfit(system, row, device)
    if size < LEAST_JUDGED:
        return SHORT
    library, _, version = row.how.get("library", "").partition(" ")
    if library == "NCCL":
        settings = replace(settings, version=version)
    if (launch := row.how.get("launch")) in list(Launch):
        settings = replace(settings, launch=Launch(launch))
    return models.model(system, collective, ranks, settings).point(float(size))


def rank_misfit(system: System, row: Observation, device: Callable[[str], str]) -> str:
    """How the ranks of a row are not those of the description; '' if they are, or if the row is of no ranks."""
    if _collective(row) is None or _ranks(system, row, device):
        return ""
    gpus, hosts, ranks = system.of_kind(Kind.GPU), row.settings.get("hosts"), row.settings.get("ranks", 0)
    described = f"{system.name} has {_many(len(gpus), 'GPU')} on {_many(max(1, len(system.hosts)), 'host')}"
    if not ranks:
        return f"{MISFIT} ranks that it does not list, {described}"
    table = f"{MISFIT} {_many(ranks, 'rank')}" + (f" on {_many(hosts, 'host')}" if hosts else "")
    names = [device(flow.src) for flow in parse_flows(row.flow)] if "->" in row.flow else []
    missing = [name for name in names if name not in system.devices]
    if missing and ranks <= len(gpus):
        return f"{table}, {described} and no {', '.join(missing[:3])}{' ...' * (len(missing) > 3)}"
    return f"{table}, {described}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _collective(row: Observation) -> Collective | None:
    words = row.scenario.split()
    try:
        return collective_named(words[0]) if words else None
    except UnknownName:
        return None


def _ranks(system: System, row: Observation, device: Callable[[str], str]) -> list[str]:
    """The GPUs of a ring within a host; of several hosts or unnamed ranks those of the system, if they are as many."""
    if row.settings.get("hosts", 1) == 1 and "->" in row.flow:
        flows: Sequence[Flow] = parse_flows(row.flow)
        names = [device(flow.src) for flow in flows]
        return names if all(name in system.devices for name in names) else []
    gpus = system.of_kind(Kind.GPU)
    ranks = row.settings.get("ranks", 0)
    if "hosts" not in row.settings:  # of torch: all GPUs, or the first ones of the only host
        return gpus[:ranks] if len(gpus) == ranks or (len(system.hosts) < 2 and 1 < ranks < len(gpus)) else []
    several = len(system.hosts) == row.settings.get("hosts") and len(gpus) == row.settings.get("ranks")
    return gpus if several else []
