"""Nodes of a Ray of this machine: an actor answers, one that dies or is silent is a lost node. `make ray` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from fleet_agents import TestAgent

from lanewise.engines.ray_engine import RayEngine
from lanewise.fleet.ray_actors import RayConnections, named_nodes
from lanewise.fleet.survey import NodeJob

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (pip install 'lanewise[ray]')"),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # workers import fleet_agents
        with RayEngine("", 1) as ray:
            yield ray


@pytest.mark.parametrize(
    ("do", "limit", "failure"),
    [("die", 120.0, "actor"), ("sleep", 0.5, "no answer within 0 s")],
)
def test_a_node_answers_and_is_lost_when_its_actor_dies_or_is_silent(
    engine: RayEngine, do: str, limit: float, failure: str
) -> None:
    nodes = RayConnections(engine, TestAgent)
    try:
        ((name, address),) = nodes.addresses.items()
        assert address == "127.0.0.1"
        (report,) = nodes.do({name: NodeJob("facts")}, 120.0)
        assert (report.name, report.facts, report.failure) == (name, {"did": "facts"}, "")
        (lost,) = nodes.do({name: NodeJob(do)}, limit)
        assert failure in lost.failure
    finally:
        nodes.close()


def test_a_ray_of_its_own_has_so_many_agents_on_one_machine(engine: RayEngine) -> None:
    nodes = RayConnections(engine, TestAgent, ("ray0", "ray1"))
    try:
        assert nodes.addresses == {"ray0": "127.0.0.1", "ray1": "127.0.0.1"}
        reports = list(nodes.do(dict.fromkeys(nodes.addresses, NodeJob("facts")), 120.0))
        assert {(report.name, report.failure) for report in reports} == {("ray0", ""), ("ray1", "")}
    finally:
        nodes.close()


def test_nodes_have_their_host_names_or_their_addresses_where_several_share_one() -> None:
    said = [(True, "a", "1"), (True, "b", "2"), (True, "b", "3"), (False, "c", "4")]
    nodes = [dict(zip(("Alive", "NodeManagerHostname", "NodeManagerAddress"), each, strict=True)) for each in said]
    assert list(named_nodes(nodes)) == ["a", "2", "3"]
