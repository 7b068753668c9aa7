"""Finite transfers: who finishes when, with every link shared by max-min at every moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.perf.plans import plan_all, staging_mode
from lanewise.perf.predict import compete
from lanewise.perf.sharing import FlowClass, Transfer, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.perf.flow import Flow
    from lanewise.topology.model import System


@dataclass(frozen=True, slots=True)
class Finished:
    """One transfer: from `start` to `finish` in s, so at `rate` B/s on average."""

    flow: Flow
    start: float
    finish: float

    @property
    def rate(self) -> float:
        """Average goodput in B/s; zero for an empty transfer."""
        took = self.finish - self.start
        return (self.flow.size or 0.0) / took if took > 0 else 0.0


def finish_times(system: System, flows: Sequence[Flow]) -> tuple[Finished, ...]:
    """When each of `flows` ends; InputError if one has no size."""
    endless = next((flow for flow in flows if flow.size is None), None)
    if endless is not None:
        raise InputError(f"{endless.name} has no size, so it never ends", hint=f"write '{endless.name} 1 GiB'")
    planned = plan_all(system, flows)
    resources, taken = compete(planned)
    known: dict[FlowClass, int] = {}
    member = []
    for item, uses in zip(planned, taken, strict=True):
        # Flows with the same uses, weight and cap are one class: the solver's cost depends on classes alone.
        made = FlowClass(uses, item.flow.weight, item.cap(staging_mode(item, planned)))
        member.append(known.setdefault(made, len(known)))
    jobs = [Transfer(k, flow.size or 0.0, flow.start) for k, flow in zip(member, flows, strict=True)]
    timeline = run([resource.capacity for resource in resources], list(known), jobs)
    return tuple(Finished(f, f.start, end) for f, end in zip(flows, timeline.finishes, strict=True))
