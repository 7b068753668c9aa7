"""Whether NVLinks join the hosts of a collective, as they do within a rack of GB200 or GB300 NVL72."""

from __future__ import annotations

import re

from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# What NCCL calls it (NCCL_MNNVL_ENABLE; its log's cliqueSize), and NVIDIA's word for what one rack's switches join.
_ONE_DOMAIN = re.compile(
    r"\b(?:one|same|single) (?:NVLink|NVL72|IMEX) (?:domain|rack)|\bclique ?size:? ?[2-9]\d?\b|\bMNNVL\b|"
    r"\btrays?\b.{0,40}\bsame rack|\bsame rack\b.{0,40}\btrays?\b",
    re.IGNORECASE,
)
# Trays of a rack have no other links to each other than its NVLinks and the network.
_RACK, _TRAYS = re.compile(r"\bNVL72\b", re.IGNORECASE), re.compile(r"\btrays \w+ (?:and|to|&) \w+", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"MNNVL(?:_ENABLE)?\b.{0,12}(?:\b0\b|\boff\b|disabled|false|unsupported|\bnot?\b)|"
    r"\b(?:several|different|other|two|across) (?:racks|NVLink domains)|without MNNVL|no MNNVL",
    re.IGNORECASE,
)
# A row that is of the network by its own name, whatever else joins the hosts.
_OF_THE_NETWORK = re.compile(r"\b(?:RoCE|RDMA|InfiniBand|IB|TCP|sockets?)\b", re.IGNORECASE)


def are_hosts_joined(row: Observation, posted: PostedFacts) -> bool:
    """Whether the words of a row or its machine say that all its hosts are in one NVLink domain."""
    if row.settings.get("hosts", 1) < 2:
        return False
    facts = " ; ".join(f"{each.key} {each.value}" for each in (*posted.statements, *posted.unused))
    words = f"{row.scenario} ; {row.note} ; {posted.title('gpu')} ; {facts}"
    said = _ONE_DOMAIN.search(words) or (_RACK.search(words) and _TRAYS.search(words))
    return said is not None and not _OTHERWISE.search(words) and not _OF_THE_NETWORK.search(row.scenario)
