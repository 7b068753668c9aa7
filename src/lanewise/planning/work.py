"""What is asked of a system: plain flows, and services of several tenants with the queries a second they want."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from lanewise import units
from lanewise.errors import FormatError, unknown_name
from lanewise.perf.flow import Flow
from lanewise.serving.workload import Workload, workload

_HINT = "write 'resnet50 170000 QPS', then if you like: on HOST, from HOST, each 43367 QPS, as NAME"
_MODES = ("server", "offline")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A service that wants `qps` queries a second; `host` (None: any) serves it, `source` (None: the same) sends.

    `each` is what one GPU answers in queries/s where the user states it; else the GPU's part must.
    """

    name: str
    load: Workload
    qps: float
    host: str | None = None
    source: str | None = None
    each: float | None = None
    mode: str = "server"

    @property
    def wanted(self) -> float:
        """The demand in bytes a second of queries."""
        return self.qps * self.load.bytes_in


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


def parse_service(text: str) -> Tenant:
    """Read 'resnet50 170000 QPS on host0 from frontend each 43367 QPS as shop'; FormatError, UnknownName."""
    words = deque(text.split())
    if not words:
        raise FormatError("no service given", hint=_HINT)
    load = workload(words.popleft())
    if not words:
        raise FormatError(f"'{text}' says no demand", hint=_HINT)
    qps = _rate(text, words)
    found: dict[str, str | float] = {}
    while words:
        word = words.popleft()
        if word in _MODES:
            key, value = "mode", word
        elif word not in ("on", "from", "each", "as") or not words:
            raise FormatError(f"'{text}': '{word}' is not understood", hint=_HINT)
        elif word == "each":
            found["each"] = _rate(text, words)
            continue
        else:
            key, value = {"on": "host", "from": "source", "as": "name"}[word], words.popleft()
        found[key] = value
    return tenant(load, qps, **found)  # type: ignore[arg-type]


def tenant(
    load: Workload,
    qps: float,
    host: str | None = None,
    source: str | None = None,
    each: float | None = None,
    mode: str = "server",
    name: str | None = None,
) -> Tenant:
    """A tenant of that workload; FormatError for a demand that is not above zero, UnknownName for another mode."""
    for what, value in (("the demand", qps), ("what one GPU answers", each)):
        if value is not None and (value <= 0 or not math.isfinite(value)):
            raise FormatError(f"{what} of {load.name} is {value:g} QPS", hint="give a rate above zero")
    if mode not in _MODES:
        raise unknown_name("mode", mode, _MODES)
    return Tenant(name or load.name, load, qps, host, source, each, mode)


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


__all__ = ["Serving", "Tenant", "Work", "named", "parse_service", "tenant"]
