"""What a scenario of a study or a plan asks: the most that a service reaches, by event simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.serving.load import Load
from lanewise.serving.peak import Sought, at_peak, offline
from lanewise.serving.simulation import Simulation
from lanewise.serving.workload import workload

if TYPE_CHECKING:
    from lanewise.results.loaded import Loaded
    from lanewise.results.plan import Service
    from lanewise.topology.model import System

FRONTEND = "frontend"


def under_load(system: System, asked: Service, sought: Sought = Sought()) -> Loaded:
    """The service at its peak (server) or at full speed (offline); InputError for what cannot be answered."""
    load = Load(
        workload(asked.workload), qps=1.0, scenario=asked.mode, host=asked.host,
        frontend=FRONTEND if asked.division == "network" else None,
    )  # fmt: skip
    simulation = Simulation(system, [load])
    if asked.mode == "offline":
        return offline(simulation)
    return at_peak(simulation, 0, [load.qps], sought)[0]
