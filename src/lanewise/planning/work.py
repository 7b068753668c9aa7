"""The work of a system: plain flows, and services of several tenants with their demand in queries a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.perf.flow import Flow
from lanewise.serving.load import ServiceLoad, check_rate, parse_load
from lanewise.serving.workload import Workload, workload

_HINT = "write 'resnet50 170000 QPS', then if you like: on HOST, on gpu[0-3], from HOST, each 43367 QPS, as NAME"
_MODES = ("server", "offline")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A load under a name of its own; its `gpus` are those, or those of the hosts, that may serve it (none: any may).

    `gpu_rate` is what one GPU answers in queries/s if the user states it; otherwise the GPU's part does.
    """

    name: str
    load: ServiceLoad
    gpu_rate: float | None = None

    @property
    def workload(self) -> Workload:
        """What a query is."""
        return self.load.workload

    @property
    def qps(self) -> float:
        """The demand in queries a second."""
        return self.load.qps

    @property
    def demand(self) -> float:
        """The demand in bytes a second of queries."""
        return self.qps * self.workload.bytes_in

    @property
    def bound(self) -> float | None:
        """The latency bound in s, None for an offline tenant."""
        return self.workload.bound if self.load.scenario == "server" else None

    def takes(self, gpu: str, host: str | None) -> bool:
        """Whether a GPU at that host may serve it."""
        return not self.load.gpus or gpu in self.load.gpus or host in self.load.gpus

    def raised(self, factor: float) -> Tenant:
        """The same with that many times the demand."""
        return replace(self, load=replace(self.load, qps=self.qps * factor))


@dataclass(frozen=True, slots=True)
class TenantGpus:
    """A tenant and the GPUs that serve it in one placement."""

    tenant: Tenant
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Flows and services that run at once; plain flows are judged `by` their slowest or their total."""

    flows: tuple[Flow, ...] = ()
    services: tuple[TenantGpus, ...] = ()
    by: str = "total"


def parse_service(text: str, find: Callable[[str], Workload] = workload) -> Tenant:
    """Read 'resnet50 170000 QPS on host0 from frontend each 43367 QPS as shop'; FormatError, UnknownName.

    Its own words are `each`, `as` and the mode; the rest is a load as everywhere. `find` gives the workload of a name.
    """
    words = deque(text.split())
    rest: list[str] = []
    gpu_rate, name, mode = None, None, "server"
    while words:
        word = words.popleft()
        if word == "each" and words:
            gpu_rate = _rate(text, words)
        elif word == "as" and words:
            name = words.popleft()
        elif word in _MODES and rest:
            mode = word
        else:
            rest.append(word)
    try:
        load = parse_load(" ".join(rest), find)
    except FormatError as error:
        error.hint = _HINT
        raise
    if load.qps == 0.0:
        raise FormatError(f"'{text}' states no demand above zero", hint=_HINT)
    return tenant(load, gpu_rate, mode, name)


def tenant(load: ServiceLoad, gpu_rate: float | None = None, mode: str = "server", name: str | None = None) -> Tenant:
    """A tenant with that load; FormatError for a demand that is not above zero, UnknownName for another mode."""
    workload_name = load.workload.name
    for what, value in (("the demand", load.qps), ("what one GPU answers", gpu_rate)):
        if value is not None:
            try:
                check_rate(value)
            except InputError as error:
                raise FormatError(f"{what} of {workload_name} is {value:g} QPS", hint=error.hint) from None
    if mode not in _MODES:
        raise unknown_name("mode", mode, _MODES)
    return Tenant(name or workload_name, replace(load, scenario=mode), gpu_rate)


def unique_tenants(tenants: list[Tenant]) -> tuple[Tenant, ...]:
    """The tenants; FormatError if two have the same name."""
    names = [tenant.name for tenant in tenants]
    for name in names:
        if names.count(name) > 1:
            hint = "name them: '... as shop', '... as search'"
            raise FormatError(f"two services are called '{name}'", hint=hint)
    return tuple(tenants)


def _rate(text: str, words: deque[str]) -> float:
    """A number with its unit, if it has one."""
    quantity = words.popleft().replace("QPS", "").rstrip()
    if words and words[0] in ("QPS", "1/s"):
        words.popleft()
    try:
        return units.parse(f"{quantity} QPS", "1/s")
    except FormatError:
        raise FormatError(f"'{text}': '{quantity}' is not a number of queries a second", hint=_HINT) from None
