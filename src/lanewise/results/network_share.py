"""The Network division as a share of the Closed division on the same accelerators."""

from __future__ import annotations

import math
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NetworkShare:
    """A service whose queries come over the network, compared with the Closed division on the same accelerators.

    `ingress` (B/s) is queries/s times the bytes of a query, as MLPerf's rules state it. `closed` is the Closed rate in
    queries/s, found the same way, and `share` the Network rate over it with its `interval`; None where there is nothing
    to compare with. `software` (s) is what a query costs on the hosts of the network, None where nobody has stated it:
    it is then taken as 0, and `note` and `hint` say so.
    """

    ingress: float
    software: float | None
    closed: float | None = None
    share: float | None = None
    interval: Interval | None = None
    note: str = ""
    hint: str = ""


def share_interval(network: Interval, closed: Interval) -> Interval | None:
    """Where the ratio of two rates lies, given the interval of each: lowest over highest to highest over lowest.

    Wider than the interval of a ratio of independent errors; None where an end is not a positive number.
    """
    ends = (*network, *closed)
    if not all(0.0 < end < math.inf for end in ends):
        return None
    return network[0] / closed[1], network[1] / closed[0]
