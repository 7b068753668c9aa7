"""An inference service in steady state: what the GPUs can answer, and what the paths that feed them let through.

This is the ceiling that queueing approaches from below; it knows no latency bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.catalog import Part
from lanewise.errors import InputError, unknown_name
from lanewise.perf.flow import Flow
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.serving.load import ServiceLoad, gpus_of
from lanewise.serving.times import service_times, software_cost, stated_rate
from lanewise.serving.workload import Workload, workload
from lanewise.topology.model import System

MODES = ("server", "offline")


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


def closed(system: System, name: str | Workload, mode: str = "server", host: str | None = None) -> ServiceRate:
    """The service with load generator and GPUs in one host; InputError for a GPU of unknown service rate."""
    return _rate(system, ServiceLoad(workload(name), scenario=mode, host=host))


def network(
    system: System, name: str | Workload, mode: str = "server", host: str | None = None, frontend: str = "frontend"
) -> ServiceRate:
    """The service with its load from `frontend`: bytes cross the fabric, software takes time for each query."""
    return _rate(system, ServiceLoad(workload(name), scenario=mode, host=host, frontend=frontend))


def _rate(system: System, load: ServiceLoad) -> ServiceRate:
    if load.scenario not in MODES:
        raise unknown_name("mode", load.scenario, MODES)
    workload = load.workload
    flows = [_flow(system, load, gpu) for gpu in gpus_of(system, load)]
    prediction = predict(system, flows)
    slowest = min(prediction.flows, key=lambda flow: flow.rate)
    basis = weakest([slowest.basis, *(flow.basis for flow in prediction.flows)])
    return ServiceRate(
        workload,
        prediction.total / workload.bytes_in,
        prediction.total,
        slowest.limit,
        basis,
        slowest.rests_on,
        prediction,
    )


def _flow(system: System, load: ServiceLoad, gpu: str) -> Flow:
    part, workload = system.part(gpu), load.workload
    if part is None:
        raise InputError(
            f"{gpu} names no part, so its service rate is unknown", hint="give it a part in the description"
        )
    rate, basis, rests = service_rate(part, workload, load.mode, load.networked)
    source = load.frontend or system.device(gpu).host or ""
    return Flow(
        source, gpu, cap=rate * workload.bytes_in, cap_name=f"GPU service rate ({part.name}, {workload.name})",
        cap_basis=basis, cap_rests_on=rests,
    )  # fmt: skip


def service_rate(part: Part, load: str | Workload, mode: str, networked: bool = False) -> tuple[float, str, str]:
    """Queries/s that one GPU answers, with basis and source; InputError if nobody has measured it.

    Over the network the host adds `software.<workload>` seconds to each query of a GPU's pipeline.
    """
    name = load if isinstance(load, str) else load.name
    if not part.figure(f"service.{name}.{mode}").known:  # stated times may tell, as they do under load
        times = service_times(part, load, mode, networked)
        return times.rate(times.batch), times.basis, "; ".join(times.rests_on)
    rate, basis, rests = stated_rate(part, name, mode)
    cost, cost_basis, cost_rests = software_cost(part, load) if networked else (0.0, "physics", "")
    if not cost:
        return rate, basis, rests
    return 1.0 / (1.0 / rate + cost), weakest([basis, cost_basis]), f"{rests}; {cost_rests}"
