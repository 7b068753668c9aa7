"""The reference of a row over TCP sockets by whose text a card has RDMA that is not in use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lanewise.checking.references.lines import SLOW_SHARE
from lanewise.checking.references.parts import LEAST_MESSAGE, RING_COLLECTIVES, Reference
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

# Variables that leave TCP sockets to NCCL and UCX, with the values that do (their documentation).
LEAVE_SOCKETS = {
    "NCCL_IB_DISABLE": r"1",
    "NCCL_NET": r"(?i)socket",
    "UCX_TLS": r"(?i)(?!.*\b(?:rc|dc|ud|ib|all)(?:_\w+|x)?\b).*\btcp\b.*",
}
# From ConnectX-4 Lx on a port has 25 Gb/s and more (NVIDIA's user manuals of ConnectX and BlueField), as the least of
# the instances with GPUs and EFA has (AWS, network specifications: g5.8xlarge, g6.8xlarge).
_RDMA_CARD = re.compile(
    r"^(?!(?:no|none|without|not)\b).*?(\b(?:connect-?x|cx)[ -]?[4-9]\b|\bbluefield(?:-\d)?|\befa\b)", re.IGNORECASE
)
_LEAST_PORT = 3.125e9
_SOCKETS = {**LEAVE_SOCKETS, "network transport": r"(?i)socket|tcp"}


def of_rdma_turned_off(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """The least port of a stated card with RDMA where sockets are stated as well, for long messages of a GPU."""
    long = row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE
    ring = row.metric == "bus_bandwidth" and row.settings.get("hosts", 1) > 1
    ring = ring and row.scenario.startswith(RING_COLLECTIVES)
    if not long or not (ring or (row.path == "network" and row.metric == "goodput" and "gpu" in row.flow)):
        return
    facts = (*posted.statements, *posted.unused)
    cards = [match[1] for each in facts if (match := _RDMA_CARD.search(each.value))]
    sockets = [f"{each.key}={each.value}" for each in facts if _matches(each, _SOCKETS)]
    if cards and sockets:
        limit, slow = f"the least port of {cards[0]}, not used by RDMA ({sockets[0]})", SLOW_SHARE * _LEAST_PORT
        yield Reference("line", _LEAST_PORT, slow, slow, None, limit, "as stated", own=False)


def leaves_sockets(statement: Statement) -> bool:
    """Whether a variable turns RDMA off."""
    return _matches(statement, LEAVE_SOCKETS)


def _matches(statement: Statement, values: Mapping[str, str]) -> bool:
    return re.fullmatch(values.get(statement.key, r"(?!)"), statement.value.strip()) is not None
