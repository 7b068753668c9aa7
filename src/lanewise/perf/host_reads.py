"""What GPUs read of hosts with CPUs of AMD and of Intel: by the same engine the latter give less.

Reads wait for their data, which the host sends in completions of its own size and time (PCI Express Base Specification,
read completion boundary); what GPUs write to hosts waits for credits alone, and is the same at both. Of GPUs that were
measured at both makers' CPUs Intel's give 0.964 to 0.965: A100 at Gen4 (Ice Lake, Rome), H200 (Emerald Rapids, Genoa)
and B300 (Granite Rapids, Turin) at Gen5; 0.994 of an RTX 5090 whose EPYC has two of twelve channels. Which property of
the host it is, nobody published. A figure is the median of its hosts, whoever made their CPUs; where those are known,
it is brought to the maker of the host in question.
"""

from __future__ import annotations

import statistics

from lanewise.catalog import Figure, Part
from lanewise.catalog.host_makers import MAKERS, values_by_maker
from lanewise.catalog.keys import GENERATIONS
from lanewise.perf.known_parts import maker
from lanewise.routes.paths import memoized_by_figures
from lanewise.topology.model import System

_KEYS = tuple(f"engine.h2d.gen{gen}" for gen in GENERATIONS)


def read_factor(system: System, gpu: Part, gen: int, cpu: Part | None) -> float:
    """What the figure engine.h2d.gen<gen> of a GPU is times at a host with such a CPU; 1 where nothing tells it.

    A typical figure is that of the GPUs it comes from: the median of what theirs are.
    """
    host = maker(cpu) if cpu is not None else ""
    if host not in MAKERS:
        return 1.0
    key = f"engine.h2d.gen{gen}"
    figure = gpu.figure(key)
    return _typical(system, maker(gpu), key, host) if figure.basis == "typical" else _factor(system, figure, host)


def _factor(system: System, figure: Figure, host: str) -> float:
    intel = _intel_share(system)
    to_host = {"AMD": {"AMD": 1.0, "Intel": 1 / intel}, "Intel": {"AMD": intel, "Intel": 1.0}}[host]
    values = [value * to_host[own] for own, value in values_by_maker(figure)]
    return statistics.median(values) / figure.value if values and isinstance(figure.value, float) else 1.0


@memoized_by_figures
def _typical(system: System, gpu_maker: str, key: str, host: str) -> float:
    figures = [figure for part, figure in _measured(system, key) if maker(part) == gpu_maker]
    return statistics.median([_factor(system, each, host) for each in figures] or [1.0])


@memoized_by_figures
def _intel_share(system: System) -> float:
    """What Intel's CPUs give of what AMD's give, median over the GPUs that were measured at both; 1 without any."""
    shares = []
    for _, figure in (pair for key in _KEYS for pair in _measured(system, key)):
        by_maker = values_by_maker(figure)
        medians = {name: [value for own, value in by_maker if own == name] for name in MAKERS}
        if all(medians.values()):
            shares.append(statistics.median(medians["Intel"]) / statistics.median(medians["AMD"]))
    return statistics.median(shares or [1.0])


def _measured(system: System, key: str) -> list[tuple[Part, Figure]]:
    """GPUs with a figure of their own from hosts whose CPUs are named; what parts share by `extends` counts once."""
    figures = [(part, part.figure(key)) for part in system.catalog.parts.values() if part.kind == "gpu"]
    own = {(each.value, each.source): (part, each) for part, each in figures if not each.carried_from}
    return [(part, each) for part, each in own.values() if values_by_maker(each)]
