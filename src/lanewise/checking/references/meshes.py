"""GPUs on boards that join each of them to each other by a link of its own: AMD's Instinct MI300X and later."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.catalog import Catalog
from lanewise.checking.named.abilities import GpuAbility
from lanewise.checking.references.parts import LEAST_MESSAGE, RING_COLLECTIVES, Reference
from lanewise.results.observation import Observation

# AMD's data sheets of the platforms MI300X, MI325X, MI350X, MI355X: eight GPUs, seven links each, one to each other.
_MESH, _ON_A_BOARD = re.compile(r"mi3\d\dx$"), 8
# What rings over all links of such GPUs reach of them: eight MI350X and MI355X 0.91 to 0.98 and MI300X 0.95 in long
# messages, four MI355X 0.96; AMD's guide to accepting an MI350X asks for 0.76. A hiccup leaves 0.58 of one size.
_FINE, _SLOW = 0.74, 0.5
# A pair has one of the links: kernels and engines reach 0.97 to 1.02 of its figure, AMD's health test asks for 0.7.
_FINE_PAIR = 0.68


def link_of_mesh(part: GpuAbility, catalog: Catalog) -> float:
    """What copies get of the link between two GPUs of such a board, B/s; 0 for other GPUs."""
    name = part.part.text("nvlink.part") if part.part is not None and _MESH.match(part.part.name) else None
    return (catalog.get(name).number("nvlink.goodput") or 0.0) if name and name in catalog else 0.0


def collective_over_mesh(row: Observation, part: GpuAbility, catalog: Catalog, ranks: int) -> Iterator[Reference]:
    """A collective within such a board: each rank has a link to each of the others."""
    link = link_of_mesh(part, catalog)
    if not link or not 1 < ranks <= _ON_A_BOARD or row.settings.get("bytes", LEAST_MESSAGE) < LEAST_MESSAGE // 2:
        return
    nominal = (ranks - 1) * link
    # Sends of pairs take one link of each.
    long = row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE and row.scenario.startswith(RING_COLLECTIVES)
    slow = _SLOW * nominal if long else 0.0
    limit = f"the {ranks - 1} links between {ranks} {part.title}"
    yield Reference("parts", nominal, _FINE * nominal, slow, None, limit, part.source)


def copy_over_mesh(row: Observation, part: GpuAbility, catalog: Catalog) -> Iterator[Reference]:
    """A peer copy of one pair of such a board, one way or both."""
    nominal = link_of_mesh(part, catalog) * (2 if row.metric == "total" else 1)
    if nominal and row.how.get("p2p") == "on":
        limit = f"the link between two {part.title}"
        yield Reference("parts", nominal, _FINE_PAIR * nominal, _SLOW * nominal, None, limit, part.source)
