"""Copies whose pages alternate between NUMA nodes, beside copies of their own to each."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.errors import InputError
from lanewise.perf.flow import parse_flows
from lanewise.probes.gpu.flows import measurable_flow
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def machine(cpu: str, gpu: str, link: str, sockets: int = 2, nodes: int = 2) -> System:
    """One GPU at the first of these sockets, `nodes` NUMA nodes in all."""
    joined = "\n  - {from: cpu0, to: cpu1, socket: 1}" if sockets == 2 else ""
    text = f"""
lanewise: 1
system: s
devices:
  "cpu[0-{sockets - 1}]": {{cpu: {cpu}, numa_nodes: {nodes // sockets}}}
  gpu0: {{gpu: {gpu}, numa: 0}}
links:
  - {{from: cpu0, to: gpu0, pcie: {link}}}{joined}
"""
    return read_system(text, "s.yaml")


def test_writes_to_pages_of_both_sockets_in_turn_wait_for_each_other() -> None:
    # MeluXina and Vega: 16.4 of 23.2 and 18.1 of 26.2 GB/s; reads 26.2 and 26.3 as from one socket.
    system = machine("rome", "a100-sxm-40gb", "gen4 x16")
    share = builtin().get("rome").number("intersocket.spread_writes")
    near, own, pages = (
        lanewise.predict(system, f"gpu0->host0:{end}") for end in ("0", "[0-1]", "[0-1] interleaved")
    )
    assert pages.total == pytest.approx(share * near.total)  # type: ignore[operator]
    assert own.total == pytest.approx(near.total)
    assert own.total_low <= pages.total
    assert pages.total_low < pages.total <= pages.total_high
    reads, near_reads = (lanewise.predict(system, f"host0:{end}->gpu0").total for end in ("[0-1]", "0"))
    assert lanewise.predict(system, "host0:[0-1]->gpu0 interleaved").total == pytest.approx(reads)
    assert reads == pytest.approx(near_reads)


def test_reads_wait_behind_writes_that_wait_for_both_sockets() -> None:
    # MeluXina and Vega: 14.7 and 16.1 to such pages beside 7.3 and 8.0 GB/s from them; alone 16.4 and 18.1.
    system = machine("rome", "a100-sxm-40gb", "gen4 x16")
    weight = builtin().get("rome").number("intersocket.write_weight") or 0.0
    both = lanewise.predict(system, "host0:[0-1]<->gpu0 interleaved")
    alone = lanewise.predict(system, "gpu0->host0:[0-1] interleaved").total
    reads, writes = (
        sum(each.rate for each in both.rates if (each.flow.dst == "gpu0") is into) for into in (True, False)
    )
    assert writes / reads == pytest.approx(weight)
    assert 0.85 * alone < writes < alone
    one_way = lanewise.predict(system, "host0:[0-1]->gpu0 interleaved").total
    assert reads < 0.4 * one_way


def test_pages_of_a_slow_node_hold_those_of_a_fast_one() -> None:
    # One UPI link carries less than half of what the GPU reads: far pages arrive at its rate, and near ones with them.
    system = machine("ice-lake-sp", "a100-sxm-40gb", "gen4 x16")
    far = lanewise.predict(system, "host0:1->gpu0").total
    own, pages = (lanewise.predict(system, f"host0:[0-1]->gpu0{word}") for word in ("", " interleaved"))
    assert pages.total == pytest.approx(2 * far)
    assert pages.rates[0].rate == pytest.approx(pages.rates[1].rate)
    assert own.total > 1.05 * pages.total


def test_nodes_of_one_socket_cost_nothing() -> None:
    system = machine("milan", "a100-sxm-40gb", "gen4 x16", sockets=1, nodes=4)
    for flows in ("gpu0->host0:[0-3]", "host0:[0-3]->gpu0"):
        assert lanewise.predict(system, f"{flows} interleaved").total == pytest.approx(
            lanewise.predict(system, flows).total
        )


def test_no_copy_of_a_measurement_can_be_given_such_memory() -> None:
    (flow,) = parse_flows("gpu0->host0:0 interleaved")
    with pytest.raises(InputError, match="memory of alternating nodes"):
        measurable_flow(flow, node=None, sweep=False)
