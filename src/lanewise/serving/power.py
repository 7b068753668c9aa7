"""What a GPU serves at a power limit below the one it is delivered with, as published systems did.

Clocks fall less than power: rate over rate = (limit over limit)^exponent. The exponents are those of MLPerf's Offline
scores at a power limit (MaxQ) over the same system's scores without one, of NVIDIA's closed submissions to Inference
v2.0, v2.1 and v3.0: benchmarks/runs/2026-11-23-power-limits.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

from lanewise.catalog import Figure, Part
from lanewise.errors import Contradiction
from lanewise.topology.model import Device
from lanewise.units import readable

# Medians of A100 and H100 boards, by workload, and of all 32 pairs; the least and the most of all.
EXPONENTS = {"resnet50": 0.52, "bert-99": 0.63, "bert-99.9": 0.78, "retinanet": 0.40}
ANY = 0.58
LEAST, MOST = 0.30, 1.06


def rate_ratio(name: str, limit: float, other: float) -> float:
    """The rate of a workload at a power limit over that at another one (both in W), as published systems have it."""
    return math.pow(limit / other, EXPONENTS.get(name, ANY))


def at_power_limit(part: Part, gpu: Device) -> Part:
    """The part with the rates of its workloads at the power limit of that GPU; as it is where none is stated.

    Contradiction for a limit above the power that the part is delivered with.
    """
    limit = gpu.power_limit
    if limit is None:
        return part
    full = part.number("power.limit")
    if full is not None and limit > full:
        raise Contradiction(
            f"the power limit of {gpu.name}, {readable(limit, 'W')}, is above the {readable(full, 'W')} of {part.name}",
            location=gpu.location, hint="state a limit below, or a figure power.limit of the part",
        )  # fmt: skip
    figures = {
        key: _limited(key, figure, limit, full) for key, figure in part.figures.items() if key.startswith("service.")
    }
    return replace(part, figures={**part.figures, **figures})


def _limited(key: str, figure: Figure, limit: float, full: float | None) -> Figure:
    if not isinstance(figure.value, float):
        return figure
    if full is None:
        source = f"{figure.source}; what {readable(limit, 'W')} change is not known: the part has no power.limit"
        return replace(figure, source=source, basis="typical")
    workload = key.removeprefix("service.").rpartition(".")[0]
    share, low, high = ((limit / full) ** exponent for exponent in (EXPONENTS.get(workload, ANY), MOST, LEAST))
    source = (
        f"{100 * share:.0f} % of {readable(figure.value, '1/s')} at {readable(limit, 'W')} of {readable(full, 'W')}, "
        f"as published systems kept ({100 * low:.0f} to {100 * high:.0f} %); {figure.source}"
    )
    return replace(figure, value=figure.value * share, low=figure.value * low, high=figure.value * high, source=source,
                   basis="typical")  # fmt: skip
