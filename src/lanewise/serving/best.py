"""What a scenario of a study or a plan asks: the most that a service reaches, by event simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.serving.load import ServiceLoad
from lanewise.serving.peak import SearchOptions, seek, simulate
from lanewise.serving.workload import workload

if TYPE_CHECKING:
    from lanewise.results.plan import Service
    from lanewise.results.service_result import ServiceResult
    from lanewise.topology.model import System

FRONTEND = "frontend"
OFFLINE_SECONDS = 5.0


def under_load(system: System, asked: Service) -> ServiceResult:
    """The service at its peak (server) or at full speed (offline); InputError for what cannot be answered."""
    load = ServiceLoad(
        workload(asked.workload), qps=1.0, scenario=asked.mode, host=asked.host,
        frontend=FRONTEND if asked.division == "network" else None,
    )  # fmt: skip
    if asked.mode == "offline":
        return simulate(system, [load], seconds=OFFLINE_SECONDS)[0][0]
    return seek(system, load, (), (), SearchOptions())[0][0]
