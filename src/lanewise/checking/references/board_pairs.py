"""What two GPUs of a board with NVSwitches reach by the model of collectives, whose parts their name alone says."""

from __future__ import annotations

from functools import lru_cache

from lanewise.catalog import Part
from lanewise.checking.tolerances import TOLERANCES
from lanewise.collectives.model import Collective, CollectiveSettings
from lanewise.errors import LanewiseError
from lanewise.topology.read import read_system


def fine_all_reduce_of_two(part: Part, size: float) -> float | None:
    """The bus bandwidth in B/s from which on an all_reduce of `size` B by two such GPUs is fine.

    It is the prediction less the tolerance of collectives; None where the model has no such part.
    """
    links, tolerance = part.number("nvlink.links"), TOLERANCES["collective"].relative
    predicted = _all_reduce_of_two(part.name, int(links), size) if links else None
    return None if predicted is None else (1 - tolerance) * predicted


@lru_cache(maxsize=64)
def _all_reduce_of_two(part: str, links: int, size: float) -> float | None:
    from lanewise.collectives.curve import collective_model  # here: few checks need it

    description = f"""lanewise: 1
system: two-of-a-board
devices:
  cpu0: {{cpu: null}}
  "gpu[0-1]": {{gpu: {part}}}
  nvs: {{nvswitch: null}}
links:
  - {{from: cpu0, to: "gpu[0-1]", pcie: auto}}
  - {{from: "gpu[0-1]", to: nvs, nvlink: {links}}}
"""
    try:
        system = read_system(description, "two of a board")
        model = collective_model(system, Collective.ALL_REDUCE, ("gpu0", "gpu1"), CollectiveSettings())
    except LanewiseError:  # a part of a user's own
        return None
    return model.point(size).bus_bandwidth
