"""The query dispatch over a real RDMA device without hardware: Frontend and nodes in User-Mode Linux.

Correctness and counts; one CPU at 100 Hz says nothing about rates, so none is looked at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from dispatch.verbs_guest import GuestRun
from network.rdma_guest import run_in_guest

from lanewise import _native as native

pytestmark = pytest.mark.guest

RUNS: list[dict[str, Any]] = [
    {"queries": 1000},
    {"queries": 1000, "nodes": 2},
    {"queries": 3000, "nodes": 2, "connections": 2, "kill": True},
]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """What the Frontend in the guest printed of each run."""
    script = Path(__file__).with_name("verbs_guest.py")
    printed = run_in_guest(sys.executable, script, *map(json.dumps, RUNS))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert len(found) == 1 + len(RUNS), printed
    return found


@pytest.mark.parametrize("which", [0, 1])
def test_every_query_has_the_answer_to_its_own_sample(rows: list[dict[str, Any]], which: int) -> None:
    row = rows[1 + which]
    assert row["name"] == "Network SUT: " + ", ".join(["node"] * row["nodes"])
    assert row["failure"] == ["", ""]
    assert (row["answered_once"], row["empty"], row["corrupt"]) == (1000, 0, 0)
    assert sum(each["bytes_out"] for each in row["frontend"]) == 1000 * row["sample_bytes"]
    assert all(each["completed"] > 0 and each["stale"] == each["outstanding"] == 0 for each in row["frontend"])


@pytest.mark.parametrize("which", [0, 1])
def test_no_group_of_messages_raises_more_than_one_event(rows: list[dict[str, Any]], which: int) -> None:
    row = rows[1 + which]
    # The first group goes out before any node can be slow: it has more queries than there are connections.
    assert sum(each["doorbells"] for each in row["frontend"]) < sum(node["received"] for node in row["node"])
    for number, node in enumerate(row["node"]):
        connections = [each for each in row["frontend"] if each["node"] == number]
        assert 0 < node["wakeups"] <= sum(each["doorbells"] for each in connections)
        assert 0 < sum(each["wakeups"] for each in connections) <= node["doorbells"]
        assert sum(each["doorbells"] for each in connections) <= node["received"]


def test_a_killed_node_costs_its_queries_alone(rows: list[dict[str, Any]]) -> None:
    row = rows[3]
    assert row["failure"] == ["", ""]
    assert (row["answered_once"], row["corrupt"]) == (3000, 0)
    lost = {number: [each for each in row["frontend"] if each["node"] == number] for number in range(2)}
    assert {each["reason"] for each in lost[0]} == {"killed"}
    assert {each["reason"] for each in lost[1]} == {""}
    assert row["empty"] == sum(each["lost"] for each in lost[0])


def test_an_address_without_sense_is_refused_by_name(rows: list[dict[str, Any]]) -> None:
    said = rows[0]
    for name in ("ring", "ring_key", "key"):
        assert said.pop(name) == f"the other side's RDMA address has no readable {name}"
    assert "2 queue pairs, not 1" in said.pop("pairs")
    assert "GID is not hexadecimal" in said.pop("gid")
    assert said == {"unconnected": "a queue pair is not connected"}


def test_a_device_that_is_not_there_is_named() -> None:
    try:
        native.verbs_devices()
    except native.ProbeFailure as failure:
        pytest.skip(failure.args[0])
    with pytest.raises(native.ProbeFailure, match="RDMA device none cannot be opened"):
        native.VerbsEndpoint.of_frontend(GuestRun(), "none")
