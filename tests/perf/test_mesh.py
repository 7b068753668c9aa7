"""Memory of another NUMA node of a socket: over the mesh of an Intel CPU each border costs, on an EPYC none does."""

from __future__ import annotations

import pytest

from lanewise.catalog import builtin
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import FlowRate, predict
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def host(cpu: str, nodes: int, without: str = "") -> System:
    """Two sockets of some NUMA nodes, a GPU of Gen5 x16 at the first node."""
    text = f"""
lanewise: 1
system: clustered
devices:
  "cpu[0-1]": {{cpu: {cpu}, numa_nodes: {nodes}}}
  gpu0: {{gpu: h100-sxm, numa: 0}}
links:
  - {{from: cpu0, to: cpu1, socket: auto}}
  - {{from: cpu0, to: gpu0, pcie: gen5 x16}}
"""
    catalog = builtin().without_machine(without) if without else builtin()
    return read_system(text, "clustered.yaml", catalog=catalog)


def rates(system: System, text: str) -> list[FlowRate]:
    """Each flow of a text alone."""
    return [predict(system, [flow]).rates[0] for flow in parse_flows(text)]


FROM_NODES = "host0:0->gpu0, host0:1->gpu0, host0:2->gpu0, host0:3->gpu0, host0:4->gpu0"
TO_NODES = "gpu0->host0:0, gpu0->host0:1, gpu0->host0:2, gpu0->host0:3, gpu0->host0:4"


@pytest.mark.parametrize("without", ["", "h100-claix-snc4"])
@pytest.mark.parametrize("text", [FROM_NODES, TO_NODES])
def test_a_nearer_node_of_an_intel_socket_gives_and_takes_more(text: str, without: str) -> None:
    system = host("sapphire-rapids", 4, without)
    own, beside, below, diagonal, other_socket = (flow.rate for flow in rates(system, text))
    assert own > beside == below > diagonal >= other_socket


def test_what_each_border_costs_is_measured_or_nearly_nothing() -> None:
    own, beside, _, diagonal, _ = rates(host("sapphire-rapids", 4), FROM_NODES)
    assert beside.rate / own.rate == pytest.approx(0.79, abs=0.01)
    assert diagonal.rate / own.rate == pytest.approx(0.79**2, abs=0.01)
    assert beside.limit == "mesh of cpu0, NUMA nodes 0 and 1"
    own, _, _, diagonal, _ = rates(host("sapphire-rapids", 4, "h100-claix-snc4"), FROM_NODES)
    assert 0.9 < diagonal.rate / own.rate < 1
    assert diagonal.low < 0.8 * own.low


def test_where_nodes_have_more_memory_than_the_link_carries_the_way_may_still_be_short() -> None:
    own, beside = rates(host("granite-rapids", 2), "host0:0->gpu0, host0:1->gpu0")
    assert beside.rate == own.rate
    assert beside.low < 0.6 * own.low


@pytest.mark.parametrize("cpu", ["genoa", "turin"])
def test_an_epyc_has_no_mesh(cpu: str) -> None:
    own, *others, _ = rates(host(cpu, 4), FROM_NODES)
    assert all(flow.rate == own.rate for flow in others)


def test_the_own_node_serves_others_beside_a_far_reader() -> None:
    both = "host0:0->gpu0, host0:3->gpu0"
    alone = rates(host("sapphire-rapids", 4), both)
    together = predict(host("sapphire-rapids", 4), list(parse_flows(both))).rates
    assert together[0].rate <= alone[0].rate
    assert together[1].rate <= alone[1].rate
