"""What is asked of a system: plain flows, and services of several tenants with the queries a second they want."""

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

    `each` is what one GPU answers in queries/s where the user states it; else the GPU's part must.
    """

    name: str
    load: ServiceLoad
    each: float | None = None

    @property
    def workload(self) -> Workload:
        """What a query is."""
        return self.load.workload

    @property
    def qps(self) -> float:
        """The demand in queries a second."""
        return self.load.qps

    @property
    def wanted(self) -> float:
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
class Serving:
    """A tenant and the GPUs that serve it in one placement."""

    tenant: Tenant
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Flows and services that run at once; plain flows are judged `by` their slowest or their total."""

    flows: tuple[Flow, ...] = ()
    services: tuple[Serving, ...] = ()
    by: str = "total"


def parse_service(text: str, find: Callable[[str], Workload] = workload) -> Tenant:
    """Read 'resnet50 170000 QPS on host0 from frontend each 43367 QPS as shop'; FormatError, UnknownName.

    Its own words are `each`, `as` and the mode; the rest is a load as everywhere. `find` gives the workload of a name.
    """
    words = deque(text.split())
    rest: list[str] = []
    each, name, mode = None, None, "server"
    while words:
        word = words.popleft()
        if word == "each" and words:
            each = _rate(text, words)
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
        raise FormatError(f"'{text}' says no demand above zero", hint=_HINT)
    return tenant(load, each, mode, name)


def tenant(load: ServiceLoad, each: float | None = None, mode: str = "server", name: str | None = None) -> Tenant:
    """A tenant with that load; FormatError for a demand that is not above zero, UnknownName for another mode."""
    what = load.workload.name
    for said, value in (("the demand", load.qps), ("what one GPU answers", each)):
        if value is not None:
            try:
                check_rate(value)
            except InputError as error:
                raise FormatError(f"{said} of {what} is {value:g} QPS", hint=error.hint) from None
    if mode not in _MODES:
        raise unknown_name("mode", mode, _MODES)
    return Tenant(name or what, replace(load, scenario=mode), each)


def named(tenants: list[Tenant]) -> tuple[Tenant, ...]:
    """Tenants under names of their own; FormatError for two that bear one name."""
    seen: set[str] = set()
    for each in tenants:
        if each.name in seen:
            hint = "name them: '... as shop', '... as search'"
            raise FormatError(f"two services are called '{each.name}'", hint=hint)
        seen.add(each.name)
    return tuple(tenants)


def _rate(text: str, words: deque[str]) -> float:
    """A number with its unit, which may stand apart or be left out."""
    quantity = words.popleft().replace("QPS", "").rstrip()
    if words and words[0] in ("QPS", "1/s"):
        words.popleft()
    try:
        return units.parse(f"{quantity} QPS", "1/s")
    except FormatError:
        raise FormatError(f"'{text}': '{quantity}' is not a number of queries a second", hint=_HINT) from None
