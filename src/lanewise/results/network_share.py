"""The Network division as a share of the Closed division on the same accelerators."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.errors import InputError
from lanewise.results.match import service_path

if TYPE_CHECKING:
    from lanewise.results.observation import Observation

Interval = tuple[float, float]
INTERVAL = "{:.6g} to {:.6g} queries/s"  # `how` of a measured peak: where it lies with 90 %
OTHER_WORK = "what else this machine does"  # and its limit, where other work disturbed the search


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


def disturbance(sides: Sequence[str]) -> str:
    """What is to be said of a share if other work disturbed the searches of these divisions; '' of none."""
    if not sides:
        return ""
    searches = f"{' and the '.join(sides)} {'search' if len(sides) == 1 else 'searches'}"
    return f"other work disturbed the {searches}: let nothing else run and measure again"


def share_interval(network: Interval, closed: Interval) -> Interval | None:
    """Where the ratio of two rates lies, given the interval of each: lowest over highest to highest over lowest.

    Wider than the interval of a ratio of independent errors; None where an end is not a positive number.
    """
    ends = (*network, *closed)
    if not all(0.0 < end < math.inf for end in ends):
        return None
    return network[0] / closed[1], network[1] / closed[0]


def measured_share(left: Sequence[Observation], right: Sequence[Observation]) -> NetworkShare | None:
    """The share of measured peaks, Closed on one side and Network on the other; None if they are not there once each.

    InputError where the two are not of the same devices, bound and sample size.
    """
    sides = [[row for row in rows if row.metric == "qps" and row.value] for rows in (left, right)]
    paths = {row.path for rows in sides for row in rows}
    if [len(rows) for rows in sides] != [1, 1] or paths != {service_path(""), service_path("network")}:
        return None
    network, closed = sorted((rows[0] for rows in sides), key=lambda row: row.path, reverse=True)
    if differences := _differences(closed, network):
        raise InputError(f"Network has no share of Closed: {'; '.join(differences)}",
                         hint="measure both with the same devices, bound and samples")  # fmt: skip
    intervals = [_interval(row) for row in (network, closed)]
    known = share_interval(intervals[0], intervals[1]) if intervals[0] and intervals[1] else None
    assert network.value
    assert closed.value
    ingress = network.value * network.settings.get("bytes", 0)
    peaks = {"Closed": closed, "Network": network}
    note = disturbance([name for name, row in peaks.items() if row.how.get("limit", "").startswith(OTHER_WORK)])
    return NetworkShare(ingress, None, closed.value, network.value / closed.value, known, note=note)


def _differences(closed: Observation, network: Observation) -> list[str]:
    facts = {"devices": (closed.flow, network.flow), "scenario and bound": (closed.scenario, network.scenario),
             "bytes of a sample": (closed.settings.get("bytes"), network.settings.get("bytes"))}  # fmt: skip
    return [f"{name} differ: Closed {one}, Network {other}" for name, (one, other) in facts.items() if one != other]


def _interval(row: Observation) -> Interval | None:
    ends = re.fullmatch(r"(\S+) to (\S+) queries/s", row.how.get("interval", ""))
    return (float(ends[1]), float(ends[2])) if ends else None
