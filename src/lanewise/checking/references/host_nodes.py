"""References of copies from or to a stated NUMA node: the same copy with another node, and other GPUs at that node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.references.parts import Reference, best_of, of_another_row
from lanewise.results.observation import Observation

STATED_NODE = re.compile(r"(?<=host):\d+|(?<=host\d):\d+")
# Memory of the far socket keeps 0.66 (two EPYC 9575F) to 0.95 of what near memory gives; less than three quarters of
# it is worth the question.
_OF_NEAR = 0.75


def without_nodes(flows: str) -> str:
    """Flows without the NUMA nodes that they state."""
    return STATED_NODE.sub("", flows).replace(" ", "")


def of_other_node(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The same copies with the memory of another stated node."""
    flows = row.how.get("flows", row.flow)
    if row.path not in ("host to device", "device to host") or not STATED_NODE.search(flows):
        return
    like = [
        each for each in rows
        if each.path == row.path and each.metric == row.metric and each.value and each.settings == row.settings
        and each.how.get("flows", each.flow) != flows and STATED_NODE.search(each.how.get("flows", each.flow))
        and without_nodes(each.how.get("flows", each.flow)) == without_nodes(flows)
        and without_nodes(each.flow) == without_nodes(row.flow)
        and all(each.how.get(key) == row.how.get(key) for key in ("engine", "host memory", "tool"))
    ]  # fmt: skip
    if (best := best_of(like)) is not None:
        yield of_another_row(best.value or 0.0, _OF_NEAR, f"{best.flow}, the memory of another node")
