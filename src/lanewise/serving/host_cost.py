"""CPU time that a host spends on each query that it sends, as a capacity which all services of that host share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.perf.flow_demand import FlowDemand
from lanewise.perf.resources import Resource, cite
from lanewise.serving.workload import Workload
from lanewise.topology.model import Kind, System
from lanewise.units import readable

KIND = "host_cpu"


def host_cpu(system: System, host: str | None, work: Workload) -> Resource | None:
    """The cores of a host in seconds a second, where the workload's CPU time of a query and all its cores are known."""
    if not work.host_cost or host is None:
        return None
    parts = [system.part(cpu) for cpu in system.of_kind(Kind.CPU, host=host)]
    cores = [part.number("cpu.cores") if part is not None else None for part in parts]
    known = [count for count in cores if count is not None]
    if not cores or len(known) < len(cores):
        return None
    sources = [cite(part, "cpu.cores", part.figure("cpu.cores")) for part in parts if part is not None]
    cost = f"workload {work.name}: host_cost = {readable(work.host_cost, 's')} ({work.source_of('host_cost')})"
    return Resource(
        KIND, (host,), f"CPU time of {host} ({sum(known):g} cores)", sum(known), "calibrated",
        "; ".join([cost, *dict.fromkeys(sources)]),
    )  # fmt: skip


def host_doubt(system: System, host: str | None, work: Workload) -> str:
    """What is to be said where the CPU time of a query is stated and the host's cores are not known."""
    if not work.host_cost or host_cpu(system, host, work) is not None:
        return ""
    return f"the CPU time of a query limits nothing, as the cores of {host} are not known: state cpu.cores of its CPUs"


def with_host_cost(
    system: System, demands: Sequence[FlowDemand], hosts: Sequence[str], work: Workload
) -> list[FlowDemand]:
    """The queries' demands with the CPU time that each byte of them takes of the host that sends it."""
    extended = []
    for demand, host in zip(demands, hosts, strict=True):
        resource = host_cpu(system, host, work)
        if resource is not None and work.host_cost:
            demand = replace(demand, per_byte={**demand.per_byte, resource: work.host_cost / work.bytes_in})
        extended.append(demand)
    return extended
