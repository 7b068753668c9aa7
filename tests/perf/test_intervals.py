"""Intervals of predictions: from the ranges of the capacities, wider the less is known."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise.catalog import Figure, builtin
from lanewise.catalog.reading import read_parts
from lanewise.errors import Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import flow_demand
from lanewise.perf.packets import raw_rate
from lanewise.perf.predict import FlowRate, Prediction
from lanewise.perf.uncertainty import RANGES, SHARED, figure_range, independent, product
from lanewise.topology.read import read_system

ONE_GPU = "{lanewise: 1, system: one, devices: {cpu0: {cpu: genoa}, gpu0: {gpu: l40s}}, links: [%s]}"
LINK = "{from: cpu0, to: gpu0, pcie: gen4 x16}"


def predicted(figure: Figure, flows: str = "host0->gpu0") -> Prediction:
    """One GPU with that figure for host-to-device copies."""
    part = builtin().get("l40s").with_figure("engine.h2d.gen4", figure)
    return lanewise.predict(read_system(ONE_GPU % LINK, "one.yaml", {}, builtin().with_part(part)), flows)


def test_the_interval_is_that_of_the_capacity_that_limits() -> None:
    low, high = RANGES["calibrated"]
    rate = predicted(Figure(20e9, "B/s", "s", basis="calibrated")).rates[0]
    assert (rate.low, rate.rate, rate.high) == pytest.approx((20e9 * low, 20e9, 20e9 * high))


def test_a_stated_range_counts_where_it_is_wider() -> None:
    rate = predicted(Figure(20e9, "B/s", "s", basis="calibrated", low=10e9, high=20e9)).rates[0]
    assert (rate.low, rate.high) == pytest.approx((10e9, 20e9 * RANGES["calibrated"][1]))


def test_a_figure_of_another_part_of_the_same_chip_has_the_wider_range() -> None:
    own = Figure(20e9, "B/s", "s", basis="calibrated")
    low, high = figure_range(own)
    carried_low, carried_high = figure_range(Figure(20e9, "B/s", "s", basis="calibrated", carried_from="rtx-6000-ada"))
    assert carried_low < low
    assert high < carried_high


def test_the_total_of_flows_has_the_interval_of_their_sum() -> None:
    found = predicted(Figure(20e9, "B/s", "s", basis="calibrated"), "host0->gpu0 x2, host0->gpu0")
    assert found.total_low == pytest.approx(20e9 * independent(RANGES["calibrated"], SHARED)[0])
    assert found.total_high == pytest.approx(sum(rate.high for rate in found.rates))


RANGE = st.tuples(st.floats(0.05, 1.0), st.floats(1.0, 4.0))


def test_independent_errors_add_in_quadrature() -> None:
    # exp(-sqrt(ln(0.93)^2 + ln(0.90)^2)) and exp(sqrt(ln(1.05)^2 + ln(1.02)^2)), by hand
    assert independent((0.93, 1.05), (0.90, 1.02)) == pytest.approx((0.8799, 1.0541), abs=1e-4)
    assert independent((0.5, 2.0)) == pytest.approx((0.5, 2.0))
    assert independent((0.5, 0.9), (1.0, 1.0)) == pytest.approx((0.5, 1.0))  # an end beyond the value does not narrow


@given(RANGE, RANGE)
def test_two_independent_errors_are_wider_than_the_larger_and_narrower_than_both_at_their_ends(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    low, high = independent(one, other)
    assert one[0] * other[0] * (1 - 1e-9) <= low <= min(one[0], other[0]) * (1 + 1e-9)
    assert max(one[1], other[1]) * (1 - 1e-9) <= high <= one[1] * other[1] * (1 + 1e-9)


def test_slow_stages_and_a_long_gap_of_a_staged_copy_are_independent() -> None:
    (rate,) = lanewise.predict("h200-pair", "gpu0->gpu1", p2p=False).rates
    lone = [lanewise.predict("h200-pair", flow).rates[0] for flow in ("gpu0->host0", "host0->gpu1")]
    slowest, slow = (min(getattr(flow, end) for flow in lone) for end in ("rate", "low"))
    gap = 1 / rate.rate - 1 / slowest
    worst = 1 / (1 / slow + 20e-12)  # both at their ends
    either = min(1 / (1 / slow + gap), 1 / (1 / slowest + 20e-12))
    assert worst < rate.low < either


def test_the_interval_of_a_staged_copy_reaches_from_slow_stages_and_a_long_gap_to_full_overlap() -> None:
    system = lanewise.load_system("rack-16gpu")
    rate = lanewise.predict(system, "gpu0->gpu4", p2p=False).rates[0]
    lone = [lanewise.predict(system, flow).rates[0] for flow in ("gpu0->host0", "host0->gpu4")]
    slowest = min(flow.low for flow in lone)
    assert rate.low < 1 / (1 / slowest + 20e-12) * (1 + 1e-9)
    assert rate.low < rate.rate < rate.high < min(flow.high for flow in lone)


TWO_SOCKETS = """
lanewise: 1
system: two-sockets
devices:
  "cpu[0-1]": {cpu: %s, numa: +0}
  "gpu[0-1]": {gpu: l40s}
links:
  - {from: cpu0, to: cpu1, socket: 2}
  - {from: "cpu[0-1]", to: "gpu[0-1]", pairs: true, pcie: gen4 x16}
"""


def lone(text: str, flow: str) -> FlowRate:
    return lanewise.predict(read_system(text, "s.yaml"), flow).rates[0]


def test_a_link_of_unknown_speed_is_at_most_what_its_ends_can_do_and_says_what_to_look_at() -> None:
    known, unknown = (lone(ONE_GPU % LINK.replace("gen4 x16", speed), "host0->gpu0") for speed in ("auto", "gen? x?"))
    assert unknown.rate == known.rate
    assert unknown.high >= known.high
    assert unknown.low == pytest.approx(0.9 * 3.6e9, rel=0.01)  # Gen3 x4, with the range of a stated link
    assert "LnkSta" in unknown.doubt


def test_a_path_of_which_no_speed_and_no_part_is_known_has_no_rate() -> None:
    text = ONE_GPU.replace("l40s", "null").replace("genoa", "null") % LINK.replace("gen4 x16", "gen? x?")
    with pytest.raises(Unreachable, match="nothing is known that would limit host0->gpu0") as caught:
        lone(text, "host0->gpu0")
    assert "lanewise measure" in caught.value.hint


def test_cpus_that_are_not_named_have_memory_and_a_link_between_them() -> None:
    named, unnamed = (lone(TWO_SOCKETS % cpu, "cpu1->gpu0") for cpu in ("milan", "null"))
    assert unnamed.low < named.low
    assert unnamed.high >= named.high
    unnamed_cpu = read_system(ONE_GPU.replace("genoa", "null") % LINK, "s.yaml")
    (memory,) = (each for each in flow_demand(unnamed_cpu, Flow("cpu0", "gpu0")).per_byte if each.kind == "memory")
    assert memory.low < memory.capacity < memory.high


PATHS = ["host0->gpu0", "gpu0->host0", "cpu1->gpu0", "gpu0->gpu1"]
FIGURES = ["engine.h2d.gen4", "engine.d2h.gen4", "engine.p2p_write.gen4", "staging.rate"]


@pytest.mark.parametrize("gpu", ["rtx-6000-ada", "rtx-4090-p2p", "a10", "a100-sxm-80gb", "l40s", "mi100"])
def test_without_a_figure_an_interval_is_no_narrower_and_begins_no_higher(gpu: str) -> None:
    text = TWO_SOCKETS.replace("l40s", gpu) % "milan"
    for key, path, p2p in itertools.product(FIGURES, PATHS, (True, False)):
        bare = builtin().get(gpu).with_figure(key, Figure(None, "B/s", "this test"))
        with_it, without = (
            lanewise.predict(read_system(text, "s.yaml", {}, catalog), path, p2p).rates[0]
            for catalog in (builtin(), builtin().with_part(bare))
        )
        # The typical engine of a stage that is no limit may be a little faster than an A10's own: 0.014 % of both
        # stages; the best of other cards' peer writes may be 0.7 % below the upper end of an L40S's own.
        assert without.low <= with_it.low * (1 + 1e-3), (key, path, p2p)
        assert without.high - without.low >= (with_it.high - with_it.low) * (1 - 0.02), (key, path, p2p)


# An unknown GPU is taken for a peer, an RTX 5090 is staged, which reaches further over UPI than peer writes do.
STAGED_BEYOND_PEERS = ("ice-lake-sp", "rtx-5090", "gpu0->gpu1", "gpu")


@pytest.mark.parametrize("cpu", ["milan", "rome", "genoa", "sapphire-rapids", "ice-lake-sp"])
def test_without_a_part_or_a_speed_an_interval_is_no_narrower_and_begins_no_higher(cpu: str) -> None:
    words = {
        "cpu": (cpu, "null"),
        "gpu": ("l40s", "null"),
        "link": ("gen4 x16", "gen? x?"),
        "sockets": ("socket: 2", 'socket: "?"'),
    }
    for gpu, path, unknown in itertools.product(["l40s", "rtx-4090-p2p", "rtx-5090"], PATHS, words):
        now, nothing = words[unknown] if unknown != "gpu" else (gpu, "null")
        text = TWO_SOCKETS.replace("l40s", gpu) % cpu
        with_it, without = lone(text, path), lone(text.replace(now, nothing), path)
        # Staged between two sockets the medians of others may begin 1 % above what is known of a Rome.
        assert without.low <= with_it.low * (1 + 0.01), (gpu, path, unknown)
        if (cpu, gpu, path, unknown) != STAGED_BEYOND_PEERS:
            assert without.high - without.low >= (with_it.high - with_it.low) * (1 - 1e-9), (gpu, path, unknown)


def test_a_network_of_unknown_rate_has_a_low_end_and_a_doubt() -> None:
    text = """
lanewise: 1
system: two-hosts
hosts: [a, b]
devices:
  cpu0: {cpu: milan, host: a}
  nic0: {nic: null, host: a}
  cpu1: {cpu: milan, host: b}
  nic1: {nic: null, host: b}
links:
  - {from: "cpu[0-1]", to: "nic[0-1]", pairs: true, pcie: gen4 x16}
  - {from: nic0, to: nic1, network: "?"}
"""
    rate = lone(text, "cpu0->cpu1")
    assert "lanewise measure network" in rate.doubt
    assert rate.low == pytest.approx(1.25e9, rel=0.02)


@pytest.mark.parametrize("device", ["{ssd: null}", "{nic: null}"])
def test_a_drive_or_card_of_unknown_rate_may_be_slower_than_its_slot(device: str) -> None:
    text = (
        "{lanewise: 1, system: a, devices: {cpu0: {cpu: genoa}, x0: %s}, links: [{from: cpu0, to: x0, pcie: gen5 x4}]}"
    )
    for rate in lanewise.predict(read_system(text % device, "a.yaml"), "host0->x0, x0->host0").rates:
        assert rate.low < 0.3 * rate.rate
        assert rate.rate <= rate.high
        assert "no figure for the rate" in rate.doubt


def test_a_drive_that_nobody_named_has_the_median_of_those_that_state_a_rate() -> None:
    text = (
        "{lanewise: 1, system: a, devices: {cpu0: {cpu: genoa}, x0: {ssd: null}}, "
        "links: [{from: cpu0, to: x0, pcie: gen4 x4}]}"
    )
    reads, writes = (
        lanewise.predict(read_system(text, "a.yaml"), flow).rates[0] for flow in ("x0->host0", "host0->x0")
    )
    assert lanewise.predict(read_system(text, "a.yaml"), "x0->host0, host0->x0").rates[1].rate < 0.9 * reads.rate
    assert reads.rate == pytest.approx(7e9, rel=0.03)  # the usual drive of Gen4
    assert writes.rate == pytest.approx(3.9e9, rel=0.03)  # of drives for data centres, as of a server
    assert writes.low < 0.75e9  # the smallest models of one series
    assert reads.low > 1.9e9
    assert "full cache" in writes.doubt
    assert "full cache" not in reads.doubt


def test_two_ports_of_one_host_bridge_may_carry_less_than_both() -> None:
    text = ONE_GPU.replace("gpu0: {gpu: l40s}", '"gpu[0-1]": {gpu: l40s}').replace("genoa", "ice-lake-sp")
    link = '{from: cpu0, to: "gpu[0-1]", pcie: gen4 x16%s}'
    shared, apart = (read_system(text % (link % bridge), "s.yaml") for bridge in (", bridge: q0", ""))
    both, alone = ([lanewise.predict(system, f"host0->{gpus}") for system in (shared, apart)]
                   for gpus in ("gpu[0-1]", "gpu0"))  # fmt: skip
    assert both[0].total == both[1].total
    assert both[0].total_low < 0.7 * both[1].total < both[1].total_low
    assert alone[0].total_low == alone[1].total_low


def test_both_ways_to_far_memory_on_xgmi_may_get_no_more_than_one_link_carries() -> None:
    # An MI100 on Milan got 24.9 GB/s one way and both ways together, whose link has 0.7 of 36; others may get more.
    part = builtin().get("milan").with_figure("intersocket.memory_rate", Figure(None, "B/s", "this test"))
    system = read_system(TWO_SOCKETS % "milan", "s.yaml", {}, builtin().with_part(part))
    far, near, one_way = (lanewise.predict(system, flows) for flows in ("cpu1<->gpu0", "cpu0<->gpu0", "cpu1->gpu0"))
    assert one_way.total == pytest.approx(far.total)
    assert far.total_low < 24.9e9 < near.total_low
    assert one_way.total_low > 0.55 * one_way.total  # speed and width of the links are settings
    assert far.total_high > 0.95 * near.total_high


@pytest.mark.parametrize(("cpu", "far"), [("genoa", 0.7 * 64), ("turin", 58.3)])
def test_far_memory_gets_no_less_than_peers_and_than_most_hosts_give(cpu: str, far: float) -> None:
    # MI210 on two EPYC 9554 get 45 GB/s both ways, where peers of Genoa get 39 to 42; peers of Turin get 58.3.
    text = (TWO_SOCKETS % cpu).replace("l40s", "h100-pcie").replace("gen4", "gen5")
    assert lanewise.predict(read_system(text, "s.yaml"), "cpu1<->gpu0").total == pytest.approx(far * 1e9)


def test_far_memory_of_a_cpu_that_one_machine_measured_may_be_slower_or_faster_elsewhere() -> None:
    # Two Milan get 25.4 GB/s both ways, eight MI100 on two others 28 (mi100-hives): links are settings of a machine.
    far = lanewise.predict(read_system(TWO_SOCKETS % "milan", "s.yaml"), "cpu1<->gpu0")
    assert far.total == pytest.approx(builtin().get("milan").number("intersocket.memory_rate"))
    assert far.total_low < 0.85 * far.total
    assert far.total_high == pytest.approx(1.5 * far.total, rel=0.01)


@pytest.mark.parametrize("port", ["cpu0", "sw0"])
def test_stages_of_a_gpu_that_nobody_measured_may_take_turns(port: str) -> None:
    # Two RTX 2080 Ti, which do, copy 5.7 GB/s below one switch where a stage alone has 12 to 13.
    switch = "sw0: {switch: null}, " if port == "sw0" else ""
    text = ONE_GPU.replace("gpu0: {gpu: l40s}", f'{switch}"gpu[0-1]": {{gpu: gtx-1080-ti}}')
    uplink = "{from: cpu0, to: sw0, pcie: gen3 x16}, " if port == "sw0" else ""
    links = f'{uplink}{{from: {port}, to: "gpu[0-1]", pcie: gen3 x16}}'
    rate = lanewise.predict(read_system(text % links, "s.yaml"), "gpu0->gpu1", p2p=False).rates[0]
    assert rate.low < 5.7e9 < 8e9 < rate.rate


def test_copies_to_the_host_stand_for_peer_writes_with_a_wider_range() -> None:
    ada = builtin().get("rtx-6000-ada")
    bare = builtin().with_part(ada.with_figure("engine.p2p_write.gen4", Figure(None, "B/s", "this test")))
    ends = []
    for gpu, catalog in (("rtx-6000-ada", builtin()), ("rtx-6000-ada", bare), ("radeon-pro-w7900", builtin())):
        text = ONE_GPU.replace("gpu0: {gpu: l40s}", f'"gpu[0-1]": {{gpu: {gpu}}}') % LINK.replace("gpu0", '"gpu[0-1]"')
        demand = flow_demand(read_system(text, "s.yaml", {}, catalog), Flow("gpu0", "gpu1"))
        ends.append(next(each.factors for each in demand.per_byte if each.kind == "p2p_write"))
    assert ends[0] == pytest.approx(RANGES["calibrated"])
    assert ends[1] == pytest.approx(RANGES["carried over"])
    # Nobody measured peer copies of AMD's over PCIe, nor the copies of a Radeon PRO W7900 to its host.
    assert ends[2] == pytest.approx(product(RANGES["typical"], RANGES["planning"]), rel=0.02)


TWO_GPUS = (
    "{lanewise: 1, system: two, devices: {cpu0: {cpu: %s}, 'gpu[0-1]': {gpu: a100-pcie-40gb}},"
    " links: [{from: cpu0, to: 'gpu[0-1]', pcie: gen4 x16, bridge: b0}]}"
)
ALTRA = """
parts:
  - {part: altra, kind: cpu, title: Ampere Altra, from: [{source: data sheet, figures: {pcie.gen: 4, pcie.lanes: 128}}]}
"""


@pytest.mark.parametrize(("cpu", "least"), [("null", 0.57), ("altra", RANGES["unknown"][0]), ("milan", None)])
def test_what_an_unmeasured_cpu_forwards_between_gpus_may_be_as_little_as_others_pass(
    cpu: str, least: float | None
) -> None:
    """AMD's pass what the link carries; the slowest measured of a CPU nobody named; anything of an unmeasured maker."""
    catalog = builtin().with_part(read_parts(ALTRA, "altra.yaml").get("altra"))
    rate = lanewise.predict(read_system(TWO_GPUS % cpu, "two.yaml", {}, catalog), "gpu0->gpu1").rates[0]
    assert rate.rate == pytest.approx(26.3e9)
    if least is None:
        assert rate.low > 0.89 * rate.rate
        assert "forwards" not in rate.doubt
    else:
        assert rate.low == pytest.approx(least * raw_rate(4, 16), rel=0.02)
        assert "what cpu0 forwards between its root ports was not measured" in rate.doubt
