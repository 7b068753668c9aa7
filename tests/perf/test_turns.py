"""Copies out of one GPU behind NVSwitches take turns: closed forms, bounds, and what takes none."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import Prediction, predict
from lanewise.perf.sharing import SolverFlow, share
from lanewise.perf.turns import in_turns
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
LINK = 396e9


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
    assert rates("gpu0->gpu1, gpu0->gpu2, gpu1->gpu3") == [0.5, 0.5, 1.0]


def test_kernels_and_gpus_with_links_of_their_own_take_no_turns() -> None:
    assert rates("gpu0->gpu1 sm, gpu0->gpu2 sm, gpu3->gpu1 sm") == [0.5] * 3
    alone = predicted("gpu0->gpu1", APART).rates[0].rate
    together = predicted("gpu0->gpu1, gpu0->gpu2, gpu3->gpu1", APART)
    assert [rate.rate for rate in together.rates] == pytest.approx([alone] * 3)


def test_where_two_gpus_take_turns_the_interval_reaches_from_always_to_never_meeting() -> None:
    each = predicted("gpu0->gpu1, gpu0->gpu2, gpu3->gpu1, gpu3->gpu2").rates
    for rate in each:
        assert rate.low < 0.25 * LINK < 0.3 * LINK < rate.rate < 0.5 * LINK < rate.high


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


@given(st.lists(st.sampled_from(PAIRS), min_size=2, max_size=8, unique=True))
def test_no_port_and_no_turn_is_used_more_than_all_the_time(pairs: list[tuple[int, int]]) -> None:
    ports = [("out", gpu) for gpu in range(4)] + [("in", gpu) for gpu in range(4)]
    flows = [SolverFlow(((ports.index(("out", a)), 1.0), (ports.index(("in", b)), 1.0))) for a, b in pairs]
    senders = [str(a) if sum(a == other for other, _ in pairs) > 1 else "" for a, _ in pairs]
    together = share([1.0] * 8, flows)
    shares = in_turns(together, [1.0] * 8, flows, senders)
    for index in range(8):
        using = [index in dict(flow.amounts) for flow in flows]
        load = math.fsum(itertools.compress(shares.rates, using))
        assert load <= 1.02
    # Copies of one sender are as long as each other, so that all its flows get the same.
    for sender in set(senders) - {""}:
        own = [rate for rate, each in zip(shares.rates, senders, strict=True) if each == sender]
        assert max(own) <= 1.08 * min(own)
