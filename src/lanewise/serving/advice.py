"""What holds a service down and what would help: by what is busy, or by where the slowest queries' time goes."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.results.service_result import Advice, ServiceResult
from lanewise.serving.ceiling import RAISE, apart, ceiling
from lanewise.serving.simulation import Deployment, Simulation, alone_rate

WORTH = 0.005  # gains below this share are noise
BUSY = 0.8  # below this use nothing is full, so what is late is late for another reason
FASTER = f"{100 * (RAISE - 1):g} %"


def advice(simulation: Simulation, place: int, rates: Sequence[float], today: float) -> tuple[Advice, ...]:
    """What to change first where something is full: each limit faster, the GPUs faster, GPUs on links of their own."""
    limits = {index for index in ceiling(simulation, place, rates).limits if index is not None}
    changes = []
    for index in sorted(limits):
        gain = ceiling(simulation, place, rates, raised=index).qps / today
        changes.append(Advice(f"{simulation.resources[index].name} faster by {FASTER}", gain))
    gain = ceiling(simulation, place, rates, gpus=RAISE).qps / today
    changes.append(Advice(f"GPUs that serve {FASTER} more each", gain))
    changes.append(Advice("each GPU on links of its own (lanewise plan places GPUs)", apart(simulation, place) / today))
    gains = [change for change in changes if change.gain is not None and change.gain > 1.0 + WORTH]
    return tuple(sorted(gains, key=lambda change: -(change.gain or 0.0)))


def lone_query(deployment: Deployment) -> float:
    """Seconds that a query takes at best, alone on the slowest of its GPUs: there, served, and back."""
    load = deployment.load.workload
    routes = zip(deployment.times, deployment.inward, deployment.outward, strict=True)
    return max(
        times.at(1) + load.bytes_in / alone_rate(inward) + load.bytes_out / alone_rate(outward)
        for times, inward, outward in routes
    )


def stage_limit(deployment: Deployment, result: ServiceResult) -> tuple[str, tuple[Advice, ...]]:
    """Limit and advice for a service that is late although nothing is full: the stage in which its time goes."""
    load, lone = deployment.load, lone_query(deployment)
    bound = load.workload.bound
    batch = units.readable(max(times.at(deployment.batch) for times in deployment.times), "s")
    if lone > bound:
        limit = f"a lone query takes {units.readable(lone, 's')}, longer than the bound of {units.readable(bound, 's')}"
        return limit, (Advice("a faster GPU, a smaller model, or a longer bound"),)
    if deployment.batch > 1 and load.wait + lone > bound:
        wait = units.readable(load.wait, "s")
        return f"the batching time-out of {wait}", (Advice(f"a shorter time-out: {wait} leaves no time to answer"),)
    longest = max(result.stages, key=lambda stage: stage.slowest, default=None)
    if longest is not None and longest.name == "GPU" and deployment.batch > 1:
        return f"a full batch takes {batch} on the GPU", (Advice(f"batches smaller than {deployment.batch}"),)
    return result.limit, ()


def doubts(simulation: Simulation, deployment: Deployment, seconds: float) -> list[str]:
    """What a reader must know: a time-out that low rates cannot afford, and traffic too rare for the run."""
    load, lone = deployment.load, lone_query(deployment)
    notes = []
    if load.scenario == "server" and deployment.batch > 1 and lone <= load.workload.bound < load.wait + lone:
        notes.append(
            f"at low rates the bound is not kept: a lone query waits {units.readable(load.wait, 's')} for its batch to "
            f"fill and takes {units.readable(lone, 's')}"
        )
    rare = max((flow.every for flow in simulation.background), default=0.0)
    if rare > seconds:
        notes.append(
            f"traffic that comes every {units.readable(rare, 's')} comes once in the {units.readable(seconds, 's')} "
            "simulated, so its part is exaggerated"
        )
    return notes
