"""Does a placement keep its latency bounds? All its tenants simulated at once, at their rates, on the GPUs they got.

The same question has the same answer: one run, one seed. What runs on a GPU whose rate is stated with the service is
simulated at that rate, as if its part stated it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.catalog import Figure, Part
from lanewise.errors import LanewiseError
from lanewise.planning.work import Tenant, TenantGpus, Work
from lanewise.results.service_result import ServiceResult
from lanewise.serving.load import ServiceLoad
from lanewise.serving.peak import simulate
from lanewise.serving.times import stated_rate
from lanewise.topology.model import System

SEED = 1
SECONDS = 30.0  # bound / SECONDS is how close to saturation a queue still shows: 0.05 % at 15 ms
MOST_QUERIES = 5e6  # of one run, about a second
FEWEST_QUERIES = 5e3  # of the rarest tenant, enough to claim a p99
BEHIND = 0.98  # answered less than this of what came: its queue grows as long as the run lasts
NO_BOUND = 1e6  # s, in place of a bound where there is none


@dataclass(frozen=True, slots=True)
class TenantLatency:
    """The simulated latency (s) of a tenant at the percentile of its bound, the verdict, and the limit.

    `bound` is None for an offline tenant. If its queue `grows`, the latency depends on how long the run was.
    """

    tenant: str
    qps: float
    latency: float
    percentile: float
    bound: float | None
    valid: bool
    reason: str
    limit: str
    grows: bool

    @property
    def late(self) -> bool:
        """Whether the bound is broken; a run with too few queries to tell breaks none."""
        return self.bound is not None and not self.valid and self.latency > self.bound

    def show(self) -> str:
        """'p99 5.2 ms of 15 ms, VALID'."""
        if self.bound is None:
            return "offline, no bound"
        if self.late and self.grows:
            return "queue grows, INVALID"
        latency = units.readable(self.latency, "s", 3)
        verdict = "VALID" if self.valid else "INVALID" if self.late else "too few queries to tell"
        return f"p{100 * self.percentile:g} {latency} of {units.readable(self.bound, 's')}, {verdict}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A placement as simulated for `seconds`: each tenant with a GPU, or the `reason` why it could not be."""

    tenants: tuple[TenantLatency, ...] = ()
    seconds: float = 0.0
    reason: str = ""

    @property
    def late(self) -> tuple[TenantLatency, ...]:
        """The tenants whose bound is broken."""
        return tuple(tenant for tenant in self.tenants if tenant.late)

    @property
    def bounds_kept(self) -> bool:
        """Whether every tenant that was simulated keeps its bound, as far as the run tells."""
        return not self.reason and all(tenant.valid or tenant.bound is None for tenant in self.tenants)

    def latency_of(self, tenant: str) -> TenantLatency | None:
        """The result of that tenant, None if it was not simulated."""
        return next((result for result in self.tenants if result.tenant == tenant), None)


Confirm = Callable[["System", Work], Confirmation]


def by_simulation(system: System, work: Work) -> Confirmation:
    """All tenants that have a GPU, simulated with the work's flows; no simulation if none of them has a bound."""
    serving = [served for served in work.services if served.gpus]
    if all(served.tenant.bound is None for served in serving):
        return Confirmation(tuple(_unbounded(served.tenant) for served in serving))
    rates = [served.tenant.qps for served in serving]
    seconds = min(max(SECONDS, FEWEST_QUERIES / min(rates)), MOST_QUERIES / sum(rates))
    try:
        loads = [_load(served) for served in serving]
        results = simulate(_with_rates(system, serving), loads, work.flows, seconds, SEED)[0]
    except LanewiseError as error:
        return Confirmation(reason=error.cause)
    return Confirmation(tuple(_confirmed(a.tenant, b) for a, b in zip(serving, results, strict=True)), seconds)


def _load(serving: TenantGpus) -> ServiceLoad:
    """The tenant's load on its GPUs; without a bound it comes at its rate all the same, and nothing is late."""
    tenant = serving.tenant
    bound = tenant.bound or NO_BOUND
    return replace(
        tenant.load, gpus=serving.gpus, host=None, scenario="server", workload=replace(tenant.workload, bound=bound)
    )


def _with_rates(system: System, services: Sequence[TenantGpus]) -> System:
    """The system with a part of its own for each GPU whose rate its part does not state in the scenario of the plan."""
    devices, catalog = dict(system.devices), system.catalog
    for served in services:
        for gpu in served.gpus:
            part = system.part(gpu)
            figures = _figures(served.tenant, part)
            if not figures:
                continue
            name = f"{part.name if part else 'GPU'} for {served.tenant.name}"
            stated = part.figures if part else {}
            catalog = catalog.with_part(Part(name, "gpu", name, figures={**stated, **figures}))
            devices[gpu] = replace(devices[gpu], part=name)
    return replace(system, devices=devices, catalog=catalog)


def _figures(tenant: Tenant, part: Part | None) -> dict[str, Figure]:
    """The figures that a part needs in addition to its own for that tenant."""
    name = tenant.workload.name
    if tenant.gpu_rate is not None:
        source = "stated with the service"
        # What one GPU answers has the host's work for a query over the network in it already.
        return {
            f"service.{name}.server": Figure(tenant.gpu_rate, "1/s", source, basis="calibrated"),
            f"software.{name}": Figure(0.0, "s", source),
        }
    if tenant.bound is None and part is not None:
        rate, basis, rests = stated_rate(part, name, tenant.load.mode)
        return {f"service.{name}.server": Figure(rate, "1/s", rests, basis=basis)}
    return {}


def _unbounded(tenant: Tenant) -> TenantLatency:
    return TenantLatency(tenant.name, tenant.qps, 0.0, tenant.workload.percentile, None, True, "", "", False)


def _confirmed(tenant: Tenant, result: ServiceResult) -> TenantLatency:
    if tenant.bound is None:
        return _unbounded(tenant)
    return TenantLatency(
        tenant.name, tenant.qps, result.latency, result.percentile, tenant.bound, result.valid, result.reason,
        result.limit, result.answered < BEHIND * tenant.qps,
    )  # fmt: skip
