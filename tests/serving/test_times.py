"""Service times by batch: a rate fixes the full batch, stated times the small ones, and nothing is guessed."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.catalog import Figure, Part, builtin, read_parts, unit_of, write_parts
from lanewise.errors import FormatError, InputError, UnknownName
from lanewise.serving.server_share import ANY, server_share
from lanewise.serving.steady import service_rate
from lanewise.serving.times import (
    DEVICE_COPY,
    FIXED_TIME,
    KEPT_SHARE,
    QUEUED_SHARE,
    ServiceTimes,
    offline_times,
    own_rate,
    server_from_offline,
    service_times,
)
from lanewise.serving.workload import Workload, workload

ONE_MS = Workload("w", "w", 1.0, 1.0, 0.015, 0.99, "this test", batch=16)


def gpu(times: dict[int, float] | None = None, basis: str = "calibrated", **figures: float) -> Part:
    """A GPU with times by batch, and figures such as server=1000.0 or software=1e-6 of the workload `w`."""
    keys = {
        "server": ("service.w.server", "1/s"),
        "offline": ("service.w.offline", "1/s"),
        "software": ("software.w", "s"),
    }
    made = {keys[name][0]: Figure(value, keys[name][1], "this test") for name, value in figures.items()}
    made |= {
        f"service_time.w.{batch}": Figure(time, "s", "this test", basis=basis) for batch, time in (times or {}).items()
    }
    return Part("mine", "gpu", "mine", figures=made)


def test_between_points_times_lie_on_a_line_and_beyond_the_last_on_its_slope() -> None:
    found = service_times(gpu({1: 1e-3, 5: 2e-3, 9: 4e-3}), ONE_MS, "offline")
    assert found.at(1) == 1e-3
    assert found.at(3) == pytest.approx(1.5e-3)
    assert found.at(7) == pytest.approx(3e-3)
    assert found.at(16) == pytest.approx(4e-3 + 7 * 0.5e-3)
    assert found.at(100) == pytest.approx(4e-3 + 91 * 0.5e-3)
    assert "slope" in found.doubt


def test_of_a_rate_alone_a_batch_takes_its_share_and_that_is_said() -> None:
    found = service_times(gpu(offline=1000.0), ONE_MS, "offline")
    assert dict(found.points) == pytest.approx({1: 1e-3, 16: 16e-3})
    assert found.at(7) == pytest.approx(7e-3)
    assert "optimistic" in found.doubt


def test_with_both_the_rate_is_that_of_the_full_batch_and_the_times_those_of_small_ones() -> None:
    found = service_times(gpu({1: 2e-3, 8: 9e-3}, offline=1000.0), ONE_MS, "offline")
    assert dict(found.points) == pytest.approx({1: 2e-3, 8: 9e-3, 16: 16e-3})
    assert found.rate(16) == pytest.approx(1000)
    assert not found.doubt
    assert len(found.rests_on) == 3


def test_a_stated_time_that_beats_the_rate_is_raised_to_it_and_one_above_a_full_batch_is_lowered_and_told() -> None:
    quick = service_times(gpu({8: 1e-3}, offline=1000.0), ONE_MS, "offline")
    assert quick.at(8) == pytest.approx(8e-3)
    slow = service_times(gpu({8: 50e-3}, offline=1000.0), ONE_MS, "offline")
    assert slow.at(8) == slow.at(16) == pytest.approx(16e-3)
    assert "longer" in slow.doubt


def test_batches_smaller_than_any_stated_are_taken_to_need_as_long_and_that_is_told() -> None:
    found = service_times(gpu({4: 6e-3}, offline=1000.0), ONE_MS, "offline")
    assert found.at(1) == found.at(4) == 6e-3
    assert "fewer than 4" in found.doubt


times = st.dictionaries(st.integers(1, 40), st.floats(1e-6, 1.0), min_size=2, max_size=6)


@settings(deadline=None)
@given(times=times, rate=st.none() | st.floats(1.0, 1e6), mode=st.sampled_from(["server", "offline"]))
def test_times_never_fall_with_the_batch_and_no_batch_beats_the_rate(
    times: dict[int, float], rate: float | None, mode: str
) -> None:
    part = gpu(times)
    if rate:
        part = part.with_figure(f"service.w.{mode}", Figure(rate, "1/s", "this test"))
    found = service_times(part, ONE_MS, mode)
    assert found.points[0][0] == 1
    assert 1 <= found.batch <= ONE_MS.batch
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(found.points))
    for batch in range(1, 60):
        assert 0 < found.at(batch) <= found.at(batch + 1) * (1 + 1e-12)
    if rate:
        own = own_rate(rate, ONE_MS, mode)
        assert found.rate(found.batch) == pytest.approx(own)
        assert all(found.rate(batch) <= own * (1 + 1e-9) for batch in range(1, 60))


@settings(deadline=None)
@given(score=st.floats(300.0, 1e6))
def test_the_own_rate_exceeds_the_score_and_ever_less_so_for_faster_gpus(score: float) -> None:
    own = own_rate(score, ONE_MS)
    assert own > score
    assert own_rate(2 * score, ONE_MS) / (2 * score) < own / score
    assert own_rate(score, ONE_MS, "offline") == score


def test_850_queries_a_second_are_the_peak_of_one_millisecond_under_15_ms() -> None:
    assert 1 / own_rate(850.0, ONE_MS) == pytest.approx(1e-3, rel=4e-3)


def test_a_gpu_that_would_break_the_bound_with_full_batches_takes_smaller_ones() -> None:
    load = replace(ONE_MS, batch=64, timeout=0.003)
    found = service_times(gpu(server=1000.0), load)
    assert found.batch == 3
    assert found.at(found.batch) <= (load.bound - load.timeout) / 4
    assert found.rate(64) <= found.rate(3) * (1 + 1e-9)
    assert service_times(gpu(server=100.0), load).batch == 1
    assert service_times(gpu({1: 1e-3, 3: 2.5e-3}), load).batch == 3
    assert service_times(gpu(offline=1000.0), load, "offline").batch == 64


def test_over_the_network_software_takes_time_of_every_query() -> None:
    near = service_times(gpu({1: 2e-3}, offline=1000.0, software=1e-4), ONE_MS, "offline")
    far = service_times(gpu({1: 2e-3}, offline=1000.0, software=1e-4), ONE_MS, "offline", networked=True)
    assert far.at(1) == pytest.approx(near.at(1) + 1e-4)
    assert far.at(16) == pytest.approx(near.at(16) + 16e-4)
    assert far.rate(16) == pytest.approx(1 / (1e-3 + 1e-4))
    assert any("software.w" in line for line in far.rests_on)


def test_a_workloads_software_time_holds_for_gpus_that_state_none() -> None:
    load = replace(ONE_MS, software=2e-4, sources=(("software", "traced"),))
    own = service_times(gpu(offline=1000.0, software=1e-4), load, "offline", networked=True)
    other = service_times(gpu(offline=1000.0), load, "offline", networked=True)
    assert own.rate(16) == pytest.approx(1 / 1.1e-3)
    assert other.rate(16) == pytest.approx(1 / 1.2e-3)
    assert any("traced" in line for line in other.rests_on)


def test_the_weakest_figure_is_the_basis() -> None:
    assert service_times(gpu(offline=1000.0), ONE_MS, "offline").basis == "physics"
    assert service_times(gpu({1: 2e-3}, offline=1000.0), ONE_MS, "offline").basis == "calibrated"
    assert service_times(gpu({1: 2e-3}, "fitted", offline=1000.0), ONE_MS, "offline").basis == "fitted"


def test_with_a_policy_a_batch_takes_a_fixed_time_and_that_of_its_queries_in_offline() -> None:
    found = offline_times(gpu({1: 1.5e-3, 8: 9e-3}, offline=1000.0), ONE_MS)
    assert [found.at(size) for size in (1, 8, 16)] == pytest.approx([1.5e-3, 8.5e-3, 16.5e-3])
    assert found.share(16) == pytest.approx((16 + KEPT_SHARE * 0.5) / 16.5)
    assert not found.doubt
    assert offline_times(gpu({1: 1e-4}, offline=1000.0), ONE_MS).at(1) == pytest.approx(1e-3)
    with pytest.raises(InputError, match="offline"):
        offline_times(gpu({1: 1e-3}, server=900.0), ONE_MS)
    part, work = builtin().get("h100-sxm"), workload("resnet50")
    known = part.with_figure("service.resnet50.offline", Figure(1e5, "1/s", "this test"))
    other = offline_times(known, work)
    assert other.at(work.batch) == pytest.approx(FIXED_TIME["resnet50"] + work.batch / 1e5)
    assert (other.basis, "as on other GPUs" in other.doubt) == ("typical", True)


def test_streams_hide_all_of_a_fixed_time_but_what_offline_had_too() -> None:
    part = gpu({1: 1.5e-3}, offline=1000.0)
    shares = [offline_times(part, ONE_MS, offline_batch=batch).share(16) for batch in (16, 32, None)]
    assert shares == pytest.approx([(16 + KEPT_SHARE * 0.5 * left) / 16.5 for left in (0.0, 0.5, 1.0)])


def test_a_stream_with_a_queue_is_busy_for_a_part_of_a_fixed_time_and_answers_after_the_rest() -> None:
    part, work = gpu({1: 1.5e-3}, offline=1000.0), replace(ONE_MS, name="resnet50")
    part = part.with_figure("service.resnet50.offline", Figure(1000.0, "1/s", "this test"))
    part = part.with_figure("service_time.resnet50.1", Figure(1.5e-3, "s", "this test"))
    busy = [offline_times(part, work, offline_batch=batch, queued=True) for batch in (16, 32)]
    assert [each.at(16) for each in busy] == pytest.approx([16e-3, 16e-3 + QUEUED_SHARE * 0.25e-3])
    assert busy[0].answer_delay == pytest.approx((1 - QUEUED_SHARE) * 0.5e-3)
    assert busy[1].at(1) + busy[1].answer_delay == pytest.approx(1.5e-3, rel=0.01)
    alone, other = offline_times(part, work, offline_batch=32), offline_times(gpu({1: 1.5e-3}, offline=1000.0), ONE_MS)
    assert (alone.at(16), alone.answer_delay) == (pytest.approx(16.5e-3), 0.0)
    # Of networks other than convolutional ones nothing is measured.
    queued = offline_times(gpu({1: 1.5e-3}, offline=1000.0), ONE_MS, queued=True)
    assert (queued.at(16), queued.answer_delay) == (pytest.approx(other.at(16)), 0.0)


def test_a_gpu_is_busy_with_each_query_that_it_copies_within_its_memory() -> None:
    part = gpu({1: 1.5e-3}, offline=1000.0)
    copied = offline_times(part, ONE_MS, copies_each=True)
    assert copied.at(16) - offline_times(part, ONE_MS).at(16) == pytest.approx(16 * DEVICE_COPY)
    assert copied.peak == pytest.approx(1 / (1e-3 + DEVICE_COPY))


def test_batches_of_unequal_queries_as_they_came_take_longer_than_sorted_ones() -> None:
    ratio = Figure(1.2, "1", "this test", basis="fitted")
    part = gpu({1: 1.5e-3}, offline=1000.0).with_figure("service_unsorted.w", ratio)
    work = replace(ONE_MS, name="w")
    in_order, in_offline = offline_times(part, work, in_order=True), offline_times(part, work)
    assert in_order.at(10) == pytest.approx(0.5e-3 + 12e-3)
    assert (in_order.peak, in_order.basis) == (pytest.approx(1000.0 / 1.2), "fitted")
    assert "service_unsorted.w" in in_order.rests_on[0]
    assert in_offline.at(10) == pytest.approx(10.5e-3)


def test_a_network_needs_as_long_for_a_small_batch_in_either_precision() -> None:
    part, work = builtin().get("a30"), workload("bert-99.9")
    lone, offline = part.number("service_time.bert-99.1"), part.number("service.bert-99.offline")
    assert lone is not None
    assert offline is not None
    rate = part.number("service.bert-99.9.offline")
    assert rate is not None
    found = offline_times(part, work)
    assert found.at(1) == pytest.approx(lone - 1 / offline + 1 / rate)
    assert (found.basis, found.doubt) == ("typical", "")


def test_a_server_score_follows_from_offline_as_published_ones_did() -> None:
    share, mine = server_share("resnet50"), replace(ONE_MS, name="w")
    derived = server_from_offline(gpu(offline=1000.0), mine)
    assert derived is not None
    assert derived.qps == pytest.approx(1000.0 * ANY.median)
    assert derived.interval == pytest.approx((1000.0 * ANY.low, 1000.0))
    assert ANY.low < share.median < 1.0
    found = service_times(gpu({1: 2e-3}, offline=1000.0), mine)
    assert found.basis == "typical"
    assert found.peak == pytest.approx(own_rate(derived.qps, mine))
    assert derived.doubt in found.doubt
    assert service_rate(gpu(offline=1000.0), mine, "server")[:2] == (pytest.approx(derived.qps), "typical")


@pytest.mark.parametrize("part", [gpu(server=900.0, offline=1000.0), gpu({16: 0.02}), gpu()])
def test_what_is_stated_of_server_goes_before_offline(part: Part) -> None:
    assert server_from_offline(part, ONE_MS) is None


@pytest.mark.parametrize("part", [gpu(), gpu({1: 1e-3})])
def test_a_gpu_of_unknown_time_is_the_same_error_as_in_steady_state(part: Part) -> None:
    with pytest.raises(InputError) as caught:
        service_times(part, ONE_MS)
    with pytest.raises(InputError) as steady:
        service_rate(part, ONE_MS, "server")
    assert (
        str(caught.value) == str(steady.value) == "nobody has stated how many w queries mine serves a second (server)"
    )
    assert caught.value.hint == steady.value.hint
    assert "service.w.server" in caught.value.hint


def test_a_time_of_nothing_and_a_batch_of_nothing_are_errors() -> None:
    with pytest.raises(InputError, match="is 0 s"):
        service_times(gpu({1: 0.0}, server=1000.0), ONE_MS)
    with pytest.raises(InputError, match="no batch of 0"):
        service_times(gpu(server=1000.0), ONE_MS).at(0)
    with pytest.raises(UnknownName):
        service_times(gpu(server=1000.0), workload("resnet"))


def test_times_of_a_workload_whose_name_begins_alike_stay_apart() -> None:
    figures = {
        "service_time.bert-99.1": Figure(1e-3, "s", "this test"),
        "service_time.bert-99.8": Figure(4e-3, "s", "this test"),
        "service_time.bert-99.9.1": Figure(2e-3, "s", "this test"),
        "service_time.bert-99.9.8": Figure(8e-3, "s", "this test"),
    }
    part = Part("mine", "gpu", "mine", figures=figures)
    assert service_times(part, workload("bert-99")).at(8) == 4e-3
    assert service_times(part, workload("bert-99.9")).at(8) == 8e-3


@pytest.mark.parametrize("key", ["service_time.w", "service_time.w.0", "service_time.w.08", "service_time.w.1.5x",
                                 "service_time.w.-1", "service_time..", "service_time.w.1000000"])  # fmt: skip
def test_a_key_without_a_whole_batch_is_refused_with_its_line(key: str) -> None:
    text = f"parts:\n  - part: mine\n    kind: gpu\n    figures:\n      {key}: {{value: 1 ms, source: x}}\n"
    with pytest.raises(UnknownName) as caught:
        read_parts(text, "my.yaml")
    assert caught.value.location is not None
    assert caught.value.location.line == 5
    assert "service_time.<workload>.<batch>" in caught.value.hint


def test_a_service_time_is_in_seconds_of_a_gpu_and_can_be_written_and_read_back() -> None:
    assert unit_of("service_time.resnet50.64") == "s"
    catalog = builtin()
    assert read_parts(write_parts(catalog), "all.yaml") == catalog
    text = "parts:\n  - part: mine\n    kind: cpu\n    figures:\n      service_time.w.1: {value: 1 ms, source: x}\n"
    with pytest.raises(UnknownName):
        read_parts(text, "my.yaml")
    with pytest.raises(FormatError, match="no unit"):
        read_parts(text.replace("cpu", "gpu").replace("1 ms", "1"), "my.yaml")


def test_published_times_agree_with_published_rates() -> None:
    # The time of eight ResNet-50 samples and the score of full batches are independent submissions of one GPU model.
    for name in ("a100-sxm-80gb", "a100-pcie-80gb", "a30", "l4", "h100-pcie", "t4"):
        part = builtin().get(name)
        one, eight = part.number("service_time.resnet50.1"), part.number("service_time.resnet50.8")
        score = part.number("service.resnet50.offline")
        assert one is not None
        assert eight is not None
        assert score is not None
        assert one < eight < 8 * one
        assert 8 / eight < score
        assert service_times(part, workload("resnet50")).doubt == ""


def test_every_gpu_of_the_catalogue_takes_batches_that_leave_room_in_the_bound() -> None:
    seen = 0
    for name in builtin().names("gpu"):
        for load in (workload(each) for each in ("resnet50", "bert-99", "bert-99.9", "retinanet")):
            part = builtin().get(name)
            if not part.figure(f"service.{load.name}.server").known:
                continue
            seen += 1
            found = service_times(part, load)
            assert load.timeout + 2 * found.at(found.batch) < load.bound
    assert seen > 30


def late_share(times: ServiceTimes, load: Workload, rate: float, queries: int) -> float:
    """The share of late queries on one GPU: Poisson arrivals, and batches that start when full, or when the oldest has
    waited for the timeout.
    """
    chance = random.Random(7)
    arrivals = list(itertools.accumulate(chance.expovariate(rate) for _ in range(queries)))
    takes = [times.at(batch) for batch in range(1, times.batch + 1)]
    first = late = 0
    free = 0.0
    while first < queries:
        full = arrivals[min(first + times.batch, queries) - 1]
        start = max(free, min(full, arrivals[first] + load.timeout))
        last = min(bisect_right(arrivals, start, first + 1), first + times.batch)
        free = start + takes[last - first - 1]
        late += sum(free - arrival > load.bound for arrival in arrivals[first:last])
        first = last
    return late / queries


@pytest.mark.parametrize(
    ("gpu_name", "name"),
    [
        ("t4", "resnet50"),
        ("a100-sxm-80gb", "resnet50"),
        ("l4", "retinanet"),
        ("a30", "bert-99"),
        ("h100-sxm", "retinanet"),
    ],
)
def test_a_lone_gpu_peaks_within_4_percent_of_its_published_score(gpu_name: str, name: str) -> None:
    load, part = workload(name), builtin().get(gpu_name)
    score = part.number(f"service.{name}.server")
    assert score is not None
    times = service_times(part, load)
    assert late_share(times, load, 0.96 * score, 200_000) < 0.01
    assert late_share(times, load, 1.04 * score, 200_000) > 0.01
