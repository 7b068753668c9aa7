"""Where routes meet: the links that more than one of them crosses in the same direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanewise.routes.model import Route


def shared_links(routes: Iterable[Route]) -> dict[tuple[str, str, str], tuple[Route, ...]]:
    """For every link direction (`Hop.key`) that two or more routes cross, those routes; busiest first."""
    users: dict[tuple[str, str, str], list[Route]] = {}
    for route in routes:
        for key in dict.fromkeys(hop.key for hop in route.hops):
            users.setdefault(key, []).append(route)
    meeting = {key: tuple(found) for key, found in users.items() if len(found) > 1}
    return dict(sorted(meeting.items(), key=lambda item: -len(item[1])))
