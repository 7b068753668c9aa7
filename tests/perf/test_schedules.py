"""Benchmarks' orders of copies, worked out by hand on links of simple rates."""

import math

import pytest

import lanewise
from lanewise.errors import UnknownName
from lanewise.options.predict import SCHEDULES as NAMES
from lanewise.perf.flow import Flow
from lanewise.perf.schedules import SCHEDULES, share_in_order
from lanewise.perf.sharing import SolverFlow
from lanewise.perf.uncertainty import RANGES


def total(name: str, pairs: str, rates: dict[str, float] | None = None) -> float:
    """Sum of the rates of flows such as '01 02': each GPU sends and receives at most 1 B/s, a pair at its rate."""
    flows = [Flow(*pair) for pair in pairs.split()]
    ends = sorted({("out", flow.src) for flow in flows} | {("in", flow.dst) for flow in flows})
    solver_flows = [
        SolverFlow(((ends.index(("out", f.src)), 1.0), (ends.index(("in", f.dst)), 1.0)),
                   cap=(rates or {}).get(f.src + f.dst, math.inf))
        for f in flows
    ]  # fmt: skip
    return math.fsum(share_in_order(SCHEDULES[name], [1.0] * len(ends), flows, solver_flows).rates)


ALL_TO_ALL = " ".join(f"{a}{b}" for a in range(4) for b in range(4) if a != b)


@pytest.mark.parametrize(
    ("name", "pairs", "rates", "expected"),
    [
        ("together", ALL_TO_ALL, {}, 4.0),
        # In each destination's queue 0 comes before 1 before 2: three copies run at a time, the first one alone.
        ("pytorch", ALL_TO_ALL, {}, 1200 / 401),
        # One direction does not wait for the other, nor one destination for another.
        ("pytorch", "01 10 23 32", {}, 4.0),
        # Into one destination one after another, though each alone leaves half of it free: 2 / (1/0.5 + 1/0.5).
        ("pytorch", "10 20", {"10": 0.5, "20": 0.5}, 0.5),
        ("null-stream", "10 20", {"10": 0.5, "20": 0.5}, 1.0),
        # Out of one source one after another, the slow one too: 2 / (1/1 + 1/0.5), where all at once would give 1.
        ("pytorch", "01 02", {"02": 0.5}, 2 / 3),
        ("null-stream", "01 02", {"02": 0.5}, 2 / 3),
        ("together", "01 02", {"02": 0.5}, 1.0),
        # One copy at a time, whatever the two share: 2 / (1/1 + 1/0.5).
        ("one-by-one", "01 10", {"10": 0.5}, 2 / 3),
        ("one-by-one", "01 23", {}, 1.0),
        # The reader's engine takes turns: 2 / (1/0.5 + 1/0.5); two readers share what the source sends.
        ("p2pmark", "10 20", {"10": 0.5, "20": 0.5}, 0.5),
        ("p2pmark", "01 02", {}, 1.0),
        # Equal sizes both ways, counted until the slower one ends.
        ("p2pBandwidthLatencyTest", "01 10", {"10": 0.5}, 1.0),
        ("together", "01 10", {"10": 0.5}, 1.5),
    ],
)  # fmt: skip
def test_what_a_schedule_moves_in_all(name: str, pairs: str, rates: dict[str, float], expected: float) -> None:
    assert total(name, pairs, rates) == pytest.approx(expected, rel=0.006)


@pytest.mark.parametrize(("gpus", "least", "most"), [(4, 0.57, 0.65), (8, 0.53, 0.57)])
def test_streams_that_an_engine_serves_in_no_order_meet_at_their_sources(gpus: int, least: float, most: float) -> None:
    # A closed network of as many copies as sources that share themselves evenly: n / (2 n - 1) of all of them if the
    # times of copies are exponential, some more for equal ones. In the order of issue no two would ever meet.
    pairs = " ".join(f"{(a + step) % gpus}{a}" for step in range(1, gpus) for a in range(gpus))
    assert least < total("p2pmark", pairs) / gpus < most
    assert gpus / (2 * gpus - 1) < total("p2pmark", pairs) / gpus


def test_a_prediction_counts_what_the_tool_counts() -> None:
    flows = "gpu0->gpu1, gpu0->gpu4"  # 26.3 GB/s in the switch, 22.5 out of it
    pytorch = lanewise.predict("rack-16gpu", flows, schedule="pytorch")
    alone = [lanewise.predict("rack-16gpu", flow).total for flow in flows.split(", ")]
    assert pytorch.total == pytest.approx(2 / (1 / alone[0] + 1 / alone[1]), rel=1e-6)
    assert {rate.limit for rate in pytorch.rates} == {"order of the copies (pytorch)"}
    together = lanewise.predict("rack-16gpu", flows)
    first = lanewise.predict("rack-16gpu", flows, schedule="nvbandwidth")
    assert [rate.rate for rate in first.rates] == [together.rates[0].rate]
    assert first.loads == together.loads


def test_copies_one_by_one_take_nothing_from_each_other() -> None:
    # Both ways at once Acks and credits of one copy cost the other: here the links carry one copy at a time.
    flows = "gpu0->gpu1, gpu1->gpu0"
    (alone,) = lanewise.predict("rack-16gpu", "gpu0->gpu1").rates
    in_turns = lanewise.predict("rack-16gpu", flows, schedule="one-by-one")
    assert in_turns.total == pytest.approx(alone.rate)
    assert {rate.limit for rate in in_turns.rates} == {"order of the copies (one-by-one)"}
    down_and_up = lanewise.predict("rack-16gpu", "gpu0->host0, host0->gpu1", schedule="one-by-one")
    legs = [lanewise.predict("rack-16gpu", leg).total for leg in ("gpu0->host0", "host0->gpu1")]
    assert down_and_up.rates[0].rate == pytest.approx(1 / (1 / legs[0] + 1 / legs[1]))


def test_a_resource_that_is_full_all_the_time_is_the_limit_not_the_order() -> None:
    (rate,) = lanewise.predict("rack-16gpu", "gpu0->gpu1", schedule="pytorch").rates
    assert rate.limit == lanewise.predict("rack-16gpu", "gpu0->gpu1").rates[0].limit


def test_a_rate_that_the_order_of_copies_limits_is_known_as_a_typical_figure_is() -> None:
    flows = "gpu0->gpu1, gpu0->gpu4"
    ordered = lanewise.predict("rack-16gpu", flows, schedule="pytorch")
    assert "order of the copies" in ordered.rates[0].limit
    low, high = RANGES["typical"]
    assert ordered.total_low < low * ordered.total
    assert high * ordered.total <= ordered.total_high
    one = [lanewise.predict("rack-16gpu", "gpu0->gpu1", schedule=name).rates[0] for name in ("pytorch", "together")]
    assert one[0].low == pytest.approx(one[1].low)


def test_schedules_are_named_as_the_option_lists_them() -> None:
    assert tuple(SCHEDULES) == NAMES
    with pytest.raises(UnknownName, match="unknown schedule 'torch'"):
        lanewise.predict("rack-16gpu", "gpu0->gpu1", schedule="torch")
