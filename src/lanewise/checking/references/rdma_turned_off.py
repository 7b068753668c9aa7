"""The reference of a row over TCP sockets where a variable turns RDMA off and somebody names a card that has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.references.lines import SLOW_SHARE
from lanewise.checking.references.parts import LEAST_MESSAGE, Reference
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, Statement

# Variables that leave TCP sockets to NCCL and UCX, with the values that do (their documentation).
LEAVE_SOCKETS = {
    "NCCL_IB_DISABLE": r"1",
    "NCCL_NET": r"(?i)socket",
    "UCX_TLS": r"(?i)(?!.*\b(?:rc|dc|ud|ib|all)(?:_\w+|x)?\b).*\btcp\b.*",
}
# From ConnectX-4 Lx on a port has 25 Gb/s and more (NVIDIA's user manuals of ConnectX and BlueField).
_RDMA_CARD, _LEAST_PORT = re.compile(r"\b(?:connect-?x|cx)[ -]?[4-9]\b|\bbluefield(?:-\d)?", re.IGNORECASE), 3.125e9


def of_rdma_turned_off(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """The least port of a stated card whose RDMA a variable turns off, for long messages of a GPU."""
    long = row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE
    if row.path != "network" or "gpu" not in row.flow or row.metric != "goodput" or not long:
        return
    facts = (*posted.statements, *posted.unused)
    cards = [match[0] for each in facts if (match := _RDMA_CARD.search(each.value))]
    off = [f"{each.key}={each.value}" for each in facts if leaves_sockets(each)]
    if cards and off:
        limit, slow = f"the least port of {cards[0]}, whose RDMA {off[0]} turns off", SLOW_SHARE * _LEAST_PORT
        yield Reference("line", _LEAST_PORT, slow, slow, None, limit, "as stated", own=False)


def leaves_sockets(statement: Statement) -> bool:
    """Whether a variable turns RDMA off."""
    return re.fullmatch(LEAVE_SOCKETS.get(statement.key, r"(?!)"), statement.value.strip()) is not None
