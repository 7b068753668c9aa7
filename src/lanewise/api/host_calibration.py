"""A machine's own measurements, and what they say of the paths that were not measured on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.arguments import one_or_more
from lanewise.api.checking import read_results
from lanewise.api.loading import as_system
from lanewise.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.perf.host_calibration import HostCalibration
    from lanewise.topology.model import System


def calibrate_host(system: System | str | Path, results: str | Path | Sequence[str | Path]) -> HostCalibration:
    """The system with the capacities that its own measurements tell, for predictions of all its other paths.

    `results` are runs of `lanewise measure` or results of other tools, measured on this very machine and named as its
    description names the devices. Each rate that the model does not give is explained by the one class of capacities
    (an engine, memory, staged copies) that has to move the least within its range. `steps` says what each rate told.

    Raises what read_results raises, and InputError for results without a rate of copies between devices of the system.

    >>> calibrated = lanewise.calibrate_host("rack-16gpu", "copies.txt")
    >>> lanewise.predict(calibrated.system, "host0->gpu1").rates[0].basis
    'calibrated'
    """
    from lanewise.checking.host_rates import host_rates
    from lanewise.perf.host_calibration import calibrate_host as calibrate

    described = as_system(system)
    rates = host_rates(described, read_results(results).observations)
    if not rates:
        first = one_or_more(results)[0]
        raise InputError("no rate of copies between devices of the system", location=Location(str(first)),
                         hint="measure some: lanewise measure gpu --flows 'gpu0<->gpu1' -o run.json")  # fmt: skip
    return calibrate(described, rates)
