"""An inference service in steady state: what the GPUs can answer, and what the paths that feed them let through.

This is the ceiling that queueing approaches from below; it knows no latency bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.catalog import Part
from lanewise.errors import unknown_name
from lanewise.perf.flow import Flow
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.resources import weakest
from lanewise.results.network_share import NetworkShare
from lanewise.serving.host_cost import host_cpu, host_doubt
from lanewise.serving.load import ServiceLoad, check_frontend, gpus_of
from lanewise.serving.times import gpu_part, server_from_offline, service_times, software_cost, stated_rate
from lanewise.serving.workload import Workload
from lanewise.topology.model import System

MODES = ("server", "offline")


@dataclass(frozen=True, slots=True)
class ServiceRate:
    """A service's `qps` (queries/s), its `goodput` (B/s of input), the limit of the slowest GPU and its basis.

    `network` compares it with the Closed division, if requested. Where Server follows from Offline, `note` says how
    well.
    """

    workload: Workload
    qps: float
    goodput: float
    limit: str
    basis: str
    rests_on: tuple[str, ...]
    prediction: Prediction
    network: NetworkShare | None = None
    note: str = ""


def steady_rate(system: System, load: ServiceLoad) -> ServiceRate:
    """The rate of a service, its queries from its own host or over the fabric from `load.frontend`.

    InputError for a GPU of unknown service rate, UnknownName for a scenario other than server and offline.
    """
    if load.scenario not in MODES:
        raise unknown_name("mode", load.scenario, MODES)
    gpus = gpus_of(system, load)
    prediction = predict(system, [service_flow(system, load, gpu) for gpu in gpus])
    slowest = min(prediction.rates, key=lambda flow: flow.rate)
    basis = weakest([slowest.basis, *(flow.basis for flow in prediction.rates)])
    qps, limit, rests_on = prediction.total / load.workload.bytes_in, slowest.limit, slowest.rests_on
    host = load.frontend or system.device(gpus[0]).host
    cpu = host_cpu(system, host, load.workload)
    if cpu is not None and load.workload.host_cost and cpu.capacity / load.workload.host_cost < qps:
        qps, limit, rests_on = cpu.capacity / load.workload.host_cost, cpu.name, (cpu.rests_on,)
        basis = weakest([basis, cpu.basis])
    scores = [server_from_offline(gpu_part(system, gpu), load.workload) for gpu in gpus if load.mode == "server"]
    notes = dict.fromkeys([*(score.doubt for score in scores if score is not None),
                           host_doubt(system, host, load.workload)])  # fmt: skip
    return ServiceRate(
        load.workload, qps, qps * load.workload.bytes_in, limit, basis, rests_on, prediction,
        note="; ".join(filter(None, notes)),
    )  # fmt: skip


def service_flow(system: System, load: ServiceLoad, gpu: str, stated: float | None = None) -> Flow:
    """The queries of a load to one GPU, capped at what it answers: `stated` queries/s, else what its part says.

    InputError if that is unknown.
    """
    host = system.device(gpu).host
    check_frontend(load.frontend, host)
    if stated is None:
        rate, basis, rests = service_rate(gpu_part(system, gpu), load.workload, load.mode, load.networked)
    else:
        rate, basis, rests = stated, "calibrated", "stated with the service"
    part = system.part(gpu)
    return Flow(
        load.frontend or host or "", gpu, cap=rate * load.workload.bytes_in, cap_basis=basis, cap_rests_on=rests,
        cap_name=f"GPU service rate ({part.name if part else gpu}, {load.workload.name})",
    )  # fmt: skip


def service_rate(part: Part, work: Workload, mode: str, networked: bool = False) -> tuple[float, str, str]:
    """Queries/s that one GPU answers, with basis and source; InputError if nobody has measured it.

    Over the network the host adds `software.<workload>` seconds to each query of a GPU's pipeline.
    """
    derived = server_from_offline(part, work) if mode == "server" else None
    if derived is not None:
        rate, basis, rests = derived.qps, "typical", derived.source
    elif not part.figure(f"service.{work.name}.{mode}").known:  # stated times may tell, as they do under load
        times = service_times(part, work, mode, networked)
        return times.rate(times.batch), times.basis, "; ".join(times.rests_on)
    else:
        rate, basis, rests = stated_rate(part, work.name, mode)
    cost, cost_basis, cost_rests = software_cost(part, work) if networked else (0.0, "physics", "")
    if not cost:
        return rate, basis, rests
    return 1.0 / (1.0 / rate + cost), weakest([basis, cost_basis]), f"{rests}; {cost_rests}"
