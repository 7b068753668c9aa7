"""An inference service in steady state: what the GPUs can answer, and what the paths that feed them let through.

This is the ceiling that queueing approaches from below; it knows no latency bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.serving.times import software_cost, stated_rate
from lanewise.serving.workload import Workload, workload
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.catalog import Part
    from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class ServiceRate:
    """Queries a second of the whole service, their bytes a second, the limit of the slowest GPU and its basis."""

    workload: Workload
    qps: float
    goodput: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    prediction: Prediction


def closed(system: System, name: str, mode: str = "server", host: str | None = None) -> ServiceRate:
    """The service with load generator and GPUs in one host; InputError for a GPU of unknown service rate."""
    return _rate(system, name, mode, _serving_host(system, host), frontend=None)


def network(
    system: System, name: str, mode: str = "server", host: str | None = None, frontend: str = "frontend"
) -> ServiceRate:
    """The service with its load from `frontend`: bytes cross the fabric, software takes time for each query."""
    if frontend not in system.hosts:
        raise InputError(
            f"{system.name} has no host '{frontend}' to generate the load", hint=f"hosts: {', '.join(system.hosts)}"
        )
    return _rate(system, name, mode, _serving_host(system, host), frontend)


def _serving_host(system: System, host: str | None) -> str:
    if host is not None:
        return host
    found = next((name for name in system.hosts if system.of_kind(Kind.GPU, host=name)), None)
    if found is None:
        raise InputError(
            f"{system.name} has no host with a GPU", hint="attach one, or set the parameter that counts them"
        )
    return found


def _rate(system: System, name: str, mode: str, host: str, frontend: str | None) -> ServiceRate:
    load = workload(name)
    gpus = system.of_kind(Kind.GPU, host=host)
    if not gpus:
        raise InputError(
            f"{host} of {system.name} has no GPU", hint="attach one, or set the parameter that counts them"
        )
    flows = [_flow(system, load, mode, gpu, frontend or host, networked=frontend is not None) for gpu in gpus]
    found = predict(system, flows)
    slowest = min(found.flows, key=lambda flow: flow.rate)
    basis = weakest([slowest.basis, *(flow.basis for flow in found.flows)])
    return ServiceRate(load, found.total / load.bytes_in, found.total, slowest.limit, basis, slowest.rests_on, found)


def _flow(system: System, load: Workload, mode: str, gpu: str, source: str, networked: bool) -> Flow:
    part = system.part(gpu)
    if part is None:
        raise InputError(
            f"{gpu} names no part, so its service rate is unknown", hint="give it a part in the description"
        )
    rate, basis, rests = service_rate(part, load.name, mode, networked)
    return Flow(
        source, gpu, cap=rate * load.bytes_in, cap_name=f"GPU service rate ({part.name}, {load.name})",
        cap_basis=basis, cap_rests_on=rests,
    )  # fmt: skip


def service_rate(part: Part, name: str, mode: str, networked: bool = False) -> tuple[float, str, str]:
    """Queries/s that one GPU answers, with basis and source; InputError if nobody has measured it.

    Over the network the host adds `software.<workload>` seconds to each query of a GPU's pipeline.
    """
    rate, basis, rests = stated_rate(part, name, mode)
    cost, cost_basis, cost_rests = software_cost(part, name) if networked else (0.0, "physics", "")
    if not cost:
        return rate, basis, rests
    return 1.0 / (1.0 / rate + cost), weakest([basis, cost_basis]), f"{rests}; {cost_rests}"
