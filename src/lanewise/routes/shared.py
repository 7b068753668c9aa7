"""Which links several routes share: where they will compete."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.routes.model import Hop, Route


def shared_links(routes: Sequence[Route]) -> dict[tuple[str, str, str], tuple[Route, ...]]:
    """Link directions that more than one of `routes` crosses, with those routes, most shared first."""
    crossed: dict[tuple[str, str, str], dict[int, Route]] = defaultdict(dict)
    for index, each in enumerate(routes):
        for hop in each.hops:
            crossed[hop.key][index] = each
    found = {key: tuple(by_index.values()) for key, by_index in crossed.items() if len(by_index) > 1}
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def sharers(route: Route, others: Sequence[Route]) -> dict[Hop, tuple[Route, ...]]:
    """For each hop of `route`: the other routes that cross it in the same direction."""
    return {hop: tuple(o for o in others if o is not route and hop.key in {h.key for h in o.hops}) for hop in route.hops}
