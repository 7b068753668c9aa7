"""What must hold of any prediction on any server: 500 random systems each."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from example_counts import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from oracles import slow_maxmin
from perf.server_trees import SERVERS, flows_in, made

from lanewise.catalog import BASES
from lanewise.perf.concurrent_flows import arbitrated, flow_demands, solver_input
from lanewise.perf.flow import Flow
from lanewise.perf.predict import predict
from lanewise.perf.transfers import finish_times
from lanewise.topology.model import Kind, System

MANY = examples(500, suppress_health_check=[HealthCheck.too_slow])
FEW = examples(100, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(SERVERS, st.integers(1, 8), st.integers(0, 10**6))
@example(made(2, 1, 7, 1615), 2, 7)  # one name for the far memory one way, the other way and both ways
def test_nothing_carries_more_than_it_can_and_every_flow_has_a_limit(system: System, count: int, seed: int) -> None:
    found = predict(system, flows_in(system, count, seed))
    assert max(found.utilization.values()) <= 1 + 1e-9
    for flow in found.rates:
        assert flow.rate > 0
        if "staging" not in flow.limit:
            assert found.utilization[flow.limit] == pytest.approx(1)
        assert flow.low <= flow.rate * (1 + 1e-12)
        assert flow.basis in BASES
        assert flow.rests_on[0]


@MANY
@given(SERVERS, st.integers(1, 6), st.integers(0, 10**6))
def test_rates_agree_with_the_slow_solver(system: System, count: int, seed: int) -> None:
    flows = flows_in(system, count, seed)
    resources, solver_flows = solver_input(arbitrated(flow_demands(system, flows)))
    slow = [slow_maxmin.Flow(dict(c.amounts), c.weight, None if math.isinf(c.cap) else c.cap) for c in solver_flows]
    expected = [share.rate for share in slow_maxmin.max_min([r.capacity for r in resources], slow)]
    assert [flow.rate for flow in predict(system, flows).rates] == pytest.approx(expected, rel=1e-9)


@FEW
@given(SERVERS, st.integers(1, 6), st.integers(0, 10**6))
@example(made(1, 3, 6, 399634), 5, 3)  # flows that take different amounts of one engine
def test_the_order_of_flows_does_not_matter(system: System, count: int, seed: int) -> None:
    flows = flows_in(system, count, seed)
    forward = [flow.rate for flow in predict(system, flows).rates]
    backward = [flow.rate for flow in predict(system, flows[::-1]).rates][::-1]
    assert forward == pytest.approx(backward, rel=1e-9)


@FEW
@given(SERVERS, st.integers(0, 10**6))
def test_a_flow_alone_is_never_slower_than_in_company(system: System, seed: int) -> None:
    flows = flows_in(system, 4, seed)
    together = predict(system, flows).rates
    for flow, shared in zip(flows, together, strict=True):
        assert predict(system, [flow]).rates[0].rate >= shared.rate * (1 - 1e-9)


@FEW
@given(SERVERS, st.integers(0, 10**6))
def test_raw_is_never_below_goodput(system: System, seed: int) -> None:
    for flow in predict(system, flows_in(system, 3, seed)).rates:
        assert flow.raw >= flow.rate * (1 - 1e-12)


@FEW
@given(SERVERS, st.integers(1, 5), st.integers(0, 10**6))
def test_finite_transfers_deliver_their_bytes_no_faster_than_alone(system: System, count: int, seed: int) -> None:
    flows = [replace(flow, size=1e9, start=0.01 * i) for i, flow in enumerate(flows_in(system, count, seed))]
    for done in finish_times(system, flows):
        alone = predict(system, [replace(done.flow, weight=1.0)]).rates[0]
        assert done.finish > done.start
        assert done.rate <= max(alone.high, alone.rate) * (1 + 1e-9)


@FEW
@given(SERVERS)
def test_peer_access_never_slows_a_copy_within_one_switch(system: System) -> None:
    gpus = system.of_kind(Kind.GPU)
    for a, b in itertools.pairwise(gpus):
        if system.device(a).part != system.device(b).part or system.links_at(a)[0].lanes != system.links_at(b)[0].lanes:
            continue  # two engines of different efficiency may serve a staged copy better than one serves a peer copy
        on, off = (predict(system, [Flow(a, b, p2p=p2p)]).rates[0] for p2p in (True, False))
        if on.routes[0].cls == "PIX":
            assert on.rate >= off.rate * (1 - 1e-9)
