"""Copies out of one GPU behind NVSwitches take turns: closed forms, bounds, what takes none, alike in all verbs."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.catalog import builtin
from lanewise.perf.concurrent_flows import flow_demands, solver_input
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.sharing import SolverFlow, finish_times, share
from lanewise.perf.transfers import finish_times as finished
from lanewise.planning.score import by_model
from lanewise.planning.work import Work
from lanewise.serving.ceiling import ceiling
from lanewise.serving.load import ServiceLoad
from lanewise.serving.simulation import Simulation, SimulationInput
from lanewise.serving.workload import workload
from lanewise.topology.read import read_system

FOUR = """
lanewise: 1
system: four
devices:
  cpu0: {cpu: emerald-rapids}
  "gpu[0-3]": {gpu: h200-sxm}
  nvs: {nvswitch: null}
links:
  - {from: cpu0, to: "gpu[0-3]", pcie: gen5 x16}
  - {from: "gpu[0-3]", to: nvs, nvlink: 18}
"""
APART = FOUR.replace("  nvs: {nvswitch: null}\n", "").replace(
    '  - {from: "gpu[0-3]", to: nvs, nvlink: 18}', '  - {mesh: "gpu[0-3]", nvlink: 6}'
)
LINK = builtin().get("h200-sxm").number("engine.nvlink") or 0.0


def predicted(flows: str, system: str = FOUR) -> Prediction:
    return predict(read_system(system, "four.yaml"), parse_flows(flows, True))


def rates(flows: str, system: str = FOUR) -> list[float]:
    return [round(rate.rate / LINK, 3) for rate in predicted(flows, system).rates]


@pytest.mark.parametrize("read", ["", " read"])
def test_a_third_gpus_copy_has_the_port_alone_while_the_turn_is_elsewhere(read: str) -> None:
    flows = ", ".join(f"{flow}{read}" for flow in ("gpu0->gpu1", "gpu0->gpu2", "gpu3->gpu1"))
    assert rates(flows) == pytest.approx([1 / 3, 1 / 3, 2 / 3], rel=0.01)
    assert [rate.limit for rate in predicted(flows).rates[:2]] == ["gpu0 sends to one GPU at a time"] * 2
    assert predicted(flows).rates[2].limit == "link nvs->gpu1 (NVLink x18)"


def test_what_shares_no_port_with_another_gpu_gets_what_flows_all_the_time_get() -> None:
    assert rates("gpu0->gpu[1-3]") == [0.333] * 3
    assert rates("gpu[1-3]->gpu0") == [0.333] * 3
    assert rates("gpu0->gpu1, gpu0->gpu2, gpu1->gpu3") == pytest.approx([0.5, 0.5, 1.0], rel=0.01)


def test_kernels_and_gpus_with_links_of_their_own_take_no_turns() -> None:
    assert rates("gpu0->gpu1 sm, gpu0->gpu2 sm, gpu3->gpu1 sm") == [0.5] * 3
    alone = predicted("gpu0->gpu1", APART).rates[0].rate
    together = predicted("gpu0->gpu1, gpu0->gpu2, gpu3->gpu1", APART)
    assert [rate.rate for rate in together.rates] == pytest.approx([alone] * 3)


def test_where_two_gpus_take_turns_the_interval_reaches_from_always_to_never_meeting() -> None:
    each = predicted("gpu0->gpu1, gpu0->gpu2, gpu3->gpu1, gpu3->gpu2").rates
    for rate in each:
        assert rate.low < 0.25 * LINK < 0.3 * LINK < rate.rate < 0.5 * LINK < rate.high


def test_copies_from_and_to_a_host_as_those_of_pools_take_no_turns() -> None:
    system = read_system(FOUR, "four.yaml")
    flows = parse_flows("host0->gpu0, host0->gpu1, gpu0->host0, gpu0->gpu1", True)
    assert [demand.sender for demand in flow_demands(system, flows)] == ["", "", "", "gpu0"]
    assert {flow.sender for flow in solver_input(flow_demands(system, flows))[1]} == {""}  # gpu0 sends to one other GPU


def test_a_flow_with_a_cap_or_a_weight_takes_no_turns() -> None:
    capped = predicted("gpu0->gpu1 cap 20 GB/s, gpu0->gpu2, gpu3->gpu1").rates
    assert [round(rate.rate / 1e9) for rate in capped] == [20, 376, 376]
    assert rates("gpu0->gpu1 x3, gpu0->gpu2") == [0.75, 0.25]


def test_copies_to_one_gpu_share_its_port_all_the_time() -> None:
    assert rates("gpu0->gpu1, gpu0->gpu1, gpu3->gpu1") == [0.333] * 3


@pytest.mark.parametrize("count", [4, 8, 9, 16])
def test_all_to_all_gets_about_half_of_the_ports_however_many_gpus_there_are(count: int) -> None:
    system = FOUR.replace("[0-3]", f"[0-{count - 1}]").replace("emerald-rapids", "null")
    every = predicted(f"gpu[0-{count - 1}]->gpu[0-{count - 1}] all-to-all", system)
    assert 0.45 < every.total / (count * LINK) < 0.65
    assert every.total_high == pytest.approx(count * LINK, rel=0.07)


PAIRS = list(itertools.permutations(range(4), 2))
SETS = st.lists(st.sampled_from(PAIRS), min_size=2, max_size=8, unique=True)


def flows_of(pairs: list[tuple[int, int]]) -> list[SolverFlow]:
    """Each from the port out of one GPU to the port into another; those of a GPU with several take turns."""
    several = {a for a, _ in pairs if sum(a == other for other, _ in pairs) > 1}
    return [SolverFlow(((a, 1.0), (4 + b, 1.0)), sender=str(a) if a in several else "") for a, b in pairs]


def senders_of(flows: list[SolverFlow]) -> set[str]:
    return {flow.sender for flow in flows} - {""}


@given(SETS)
def test_no_port_and_no_turn_is_used_more_than_all_the_time(pairs: list[tuple[int, int]]) -> None:
    flows = flows_of(pairs)
    shares = share([1.0] * 8, flows)
    for index in range(8):
        using = [index in dict(flow.amounts) for flow in flows]
        assert math.fsum(itertools.compress(shares.rates, using)) <= 1.0 + 1e-9
    # Turns of one sender are as long as each other, so that all its flows get the same.
    for sender in senders_of(flows):
        own = [rate for rate, flow in zip(shares.rates, flows, strict=True) if flow.sender == sender]
        assert max(own) <= 1.08 * min(own)


@given(SETS)
def test_until_the_first_of_equal_transfers_ends_they_run_at_the_rates_of_endless_flows(
    pairs: list[tuple[int, int]],
) -> None:
    flows = flows_of(pairs)
    ends = finish_times([1.0] * 8, flows, range(len(flows)), [1.0] * len(flows), [0.0] * len(flows))
    # Where several senders take turns, their phases go on changing.
    tolerance = 0.02 if len(senders_of(flows)) < 2 else 0.12
    assert 1 / ends.min() == pytest.approx(max(share([1.0] * 8, flows).rates), rel=tolerance)


@given(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=4, unique=True), st.sampled_from([1, 2, 3]))
def test_one_more_copy_of_a_gpu_never_speeds_its_others(pairs: list[tuple[int, int]], to: int) -> None:
    own = [pair for pair in pairs if pair[0] == 0 and pair[1] != to]
    others = list({a: (a, b) for a, b in pairs if a != 0}.values())  # one each: no other GPU takes turns
    fewer, more = (share([1.0] * 8, flows_of([*own, *others, *new])).rates for new in ([], [(0, to)]))
    for before, after in zip(fewer[: len(own)], more, strict=False):
        assert after <= before * 1.03


@given(SETS, st.lists(st.floats(0.1, 10), min_size=8, max_size=8))
def test_a_sender_of_one_flow_changes_no_bit(pairs: list[tuple[int, int]], sizes: list[float]) -> None:
    plain = [SolverFlow(flow.amounts) for flow in flows_of(pairs)]
    named = [SolverFlow(flow.amounts, sender=str(number)) for number, flow in enumerate(plain)]
    columns = range(len(plain)), sizes[: len(plain)], [0.0] * len(plain)
    assert share([1.0] * 8, named) == share([1.0] * 8, plain)
    assert (finish_times([1.0] * 8, named, *columns) == finish_times([1.0] * 8, plain, *columns)).all()


THREE = "gpu0->gpu1, gpu0->gpu2, gpu3->gpu1"


def test_transfers_take_turns() -> None:
    sized = ", ".join(f"{flow} 396 GB" for flow in THREE.split(", "))
    ends = [transfer.finish for transfer in finished(read_system(FOUR, "four.yaml"), parse_flows(sized, True))]
    # gpu3's runs at 2/3 of a link; then both of gpu0 have half of their bytes left, and its port for themselves.
    assert ends == pytest.approx([2.5, 2.5, 1.5], rel=0.02)


def test_a_transfer_that_comes_later_waits_for_a_turn_only() -> None:
    sized = "gpu0->gpu1 396 GB, gpu0->gpu2 39.6 GB @ 0.5 s"
    ends = [transfer.finish for transfer in finished(read_system(FOUR, "four.yaml"), parse_flows(sized, True))]
    assert ends == pytest.approx([1.1, 0.7], rel=0.03)


def test_plans_share_as_predictions_do() -> None:
    lines = by_model(read_system(FOUR, "four.yaml"), Work(tuple(parse_flows(THREE, True)), ())).lines
    assert [line.rate for line in lines] == pytest.approx([rate.rate for rate in predicted(THREE).rates])
    assert [line.limit for line in lines] == [rate.limit for rate in predicted(THREE).rates]


def test_background_traffic_of_a_simulated_service_takes_turns() -> None:
    load = ServiceLoad(workload("resnet50"), qps=1000.0, gpus=("gpu0",))
    simulation = Simulation(read_system(FOUR, "four.yaml"), [load], parse_flows(THREE, True))
    moved = simulation.run([1000.0], SimulationInput(1.0)).moved[-3:]
    assert moved == pytest.approx([rate.rate for rate in predicted(THREE).rates], rel=0.02)
    assert ceiling(simulation, 0, [1000.0]).qps > 0
