"""What pairs of GPUs whose number of NVLinks is known, and not their name, copy over them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.references.parts import Reference
from lanewise.checking.references.siblings import flows_of, one_pair
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import Kind, LinkKind, System

# One direction of a link: 25 GB/s of NVLink 2 to 4 (V100, A100 and H100 white papers), 14.06 of GeForce and RTX cards
# with four of them (112.5 GB/s both ways, GA102 white paper). NVLink 5 has 50, and boards with it 18 links.
_LINK, _LEAST_LINK, _NVLINK_5 = 25e9, 14.06e9, 18
# Copies reach 0.9 of all links (perf.link_capacity.NVLINK_SHARE, the median of the GPUs measured), kernels less.
_FINE, _SLOW = 0.75, 0.5
OF_LINKS = "NVLinks of GPUs that nobody named"


# As nvidia-smi topo -m counts the links of a pair.
_COUNTED = re.compile(r"\bNV(\d{1,2})\b")


def of_counted_links(row: Observation, system: System | None, posted: PostedFacts) -> Iterator[Reference]:
    """A copy between two GPUs that so many NVLinks join, directly or over a switch, as a matrix or words state."""
    count = _links(row, system) if system is not None else _stated_links(row, posted)
    if 0 < count < _NVLINK_5:
        both = 2 if row.metric == "total" else 1
        nominal, least = both * count * _LINK, both * count * _LEAST_LINK
        yield Reference("parts", nominal, _FINE * nominal, _SLOW * least, None, f"{count} {OF_LINKS}", "their matrix")


def _stated_links(row: Observation, posted: PostedFacts) -> int:
    """The NVLinks between the two GPUs of a row typed in, by its name or what is stated of all pairs; else 0."""
    words = [row.scenario, *(statement.value for statement in posted.stated("NVLinks of a pair"))]
    counts = {int(count) for text in words for count in _COUNTED.findall(text)}
    direct = row.path == "peer" and row.how.get("p2p") != "off" and row.how.get("tool") == "typed in"
    return counts.pop() if direct and len(counts) == 1 and flows_of(row) and one_pair(row) else 0


def _links(row: Observation, system: System) -> int:
    """The NVLinks between the GPUs of a row with peer copies, if neither has a name; else 0."""
    flows = flows_of(row)
    if row.path != "peer" or row.how.get("p2p") == "off" or not flows or not one_pair(row):
        return 0
    pair = [flows[0].src, flows[0].dst]
    if not all(name in system.devices and system.part(name) is None for name in pair):
        return 0
    over = [_at_switch(system, name) for name in pair]
    direct = sum(link.count for link in system.links_between(*pair) if link.kind is LinkKind.NVLINK)
    return direct or min(over)


def _at_switch(system: System, gpu: str) -> int:
    """The NVLinks of a GPU to switches."""
    links = [link for link in system.links_at(gpu) if link.kind is LinkKind.NVLINK]
    switches = set(system.of_kind(Kind.NVSWITCH))
    return sum(link.count for link in links if {link.a, link.b} & switches)
