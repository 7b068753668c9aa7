"""What a GPU's stated times mean under load: they survive any batch option, and published latencies come back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise
from lanewise.serving.load import ServiceLoad
from lanewise.serving.simulation import COPY_SETUP, Simulation
from lanewise.serving.workload import workload

STATED = [
    ("composable-server-gen4", "l40s", "resnet50"),
    ("dgx-a100", "a100-sxm-80gb", "resnet50"),
    ("dgx-a100", "a100-sxm-80gb", "bert-99"),
]


def stated(part: str, name: str) -> dict[int, float]:
    described = lanewise.load_catalog().get(part)
    stem = f"service_time.{name}."
    times = {int(key.removeprefix(stem)): described.number(key) for key in described.figures if key.startswith(stem)}
    assert None not in times.values()
    return {batch: time for batch, time in times.items() if time is not None}


@pytest.mark.parametrize(("system", "part", "name"), STATED)
@given(batch=st.integers(1, 128))
@settings(max_examples=20, deadline=None)
def test_a_batch_option_never_makes_a_gpu_faster_than_stated(system, part, name, batch):
    made = Simulation(
        lanewise.load_system(system, {}), [ServiceLoad(workload(name), qps=1.0, gpus=("gpu0",), batch=batch)]
    )
    times = made.deployments[0].times[0]
    for size, seconds in stated(part, name).items():
        if size < workload(name).batch:
            assert times.at(size) >= seconds * (1 - 1e-12)
    assert [times.at(size) for size in range(1, batch + 1)] == sorted(times.at(size) for size in range(1, batch + 1))


@pytest.mark.parametrize(("system", "part", "name"), STATED)
def test_one_by_one_takes_the_stated_time_and_little_more(system, part, name):
    # The stated time is a SingleStream latency, copies included; the simulation adds its own copy and return.
    found = lanewise.simulate(system, ServiceLoad(workload(name), scenario="single-stream", gpus=("gpu0",)))[0]
    seconds = stated(part, name)[1]
    # BERT's queries differ in length; the stated time is their mean.
    assert seconds * 0.995 <= sum(stage.mean for stage in found.stages) <= 1.08 * seconds


def test_eight_samples_of_a_query_share_a_batch():
    found = lanewise.simulate("dgx-a100", ServiceLoad(workload("resnet50"), scenario="multi-stream", gpus=("gpu0",)))[0]
    seconds = stated("a100-sxm-80gb", "resnet50")[8]
    assert found.batch == 8
    assert seconds <= found.latency <= 1.2 * seconds


def test_a_call_for_each_query_of_a_batch_takes_the_time_of_so_many_calls():
    load = ServiceLoad(workload("resnet50"), scenario="multi-stream", gpus=("gpu0",))
    once, each = (lanewise.simulate("dgx-a100", replace(load, copies=copies))[0] for copies in ("gathered", "each"))
    assert each.latency - once.latency == pytest.approx((each.batch - 1) * COPY_SETUP, rel=1e-6)
    assert "a call for each query" in " ".join(each.assumptions)


def test_the_peak_is_the_run_that_decided():
    found = lanewise.peak("composable-server-gen4", "resnet50")
    last = next(run for run in reversed(found.search_runs) if run.valid and run.rate == found.qps)
    assert found.valid
    assert (found.latency, found.queries, found.seed) == (last.latency, last.queries, last.seed)


def own(folder, workload_says, figure):
    """Four L40S with a workload and one figure of the test's own."""
    (folder / "w.yaml").write_text(f"w: {{{workload_says}, percentile: 0.99, source: test}}")
    (folder / "parts.yaml").write_text(
        "parts: [{part: l40s, extends: l40s, from: [{source: test, basis: calibrated, figures: {" + figure + "}}]}]"
    )
    parts = lanewise.load_catalog([folder / "parts.yaml"])
    return lanewise.load_system("composable-server-gen4", {}, parts), ServiceLoad(
        lanewise.load_workload(folder / "w.yaml")
    )


def test_an_answer_larger_than_its_query_limits_the_ceiling(tmp_path):
    says = "bytes_in: 1 kB, bytes_out: 30 MB, bound: 1 s, batch: 8"
    system, load = own(tmp_path, says, "service.w.server: 2000 QPS")
    steady = lanewise.simulate(system, replace(load, qps=1.0))[0].steady
    assert steady is not None
    below, above = (lanewise.simulate(system, replace(load, qps=share * steady))[0] for share in (0.98, 1.02))
    assert (below.valid, above.valid) == (True, False)
    assert below.limit.startswith("link")
    assert "GPUs that serve" not in " ".join(each.says for each in below.advice)


def test_two_services_on_one_gpu_share_it():
    beside = "resnet50 20000 QPS on gpu0"
    found = lanewise.simulate("composable-server-gen4", ["resnet50 20000 QPS on gpu0", beside])
    assert all(each.valid for each in found)
    over = lanewise.simulate("composable-server-gen4", ["resnet50 30000 QPS on gpu0", "resnet50 30000 QPS on gpu0"])
    assert not any(each.valid for each in over)
    assert sum(each.answered for each in over) < 45_000
    assert "shares its GPUs" in over[0].note


def test_a_query_slower_than_its_bound_is_called_that(tmp_path):
    system, load = own(tmp_path, "bytes_in: 1 MB, bytes_out: 1 kB, bound: 10 ms", "service_time.w.1: 20 ms")
    found = lanewise.simulate(system, replace(load, qps=10.0))[0]
    assert not found.valid
    assert "a lone query takes 20" in found.limit
    assert all(each.gain is None for each in found.advice)
    peak = lanewise.peak(system, load)
    assert not peak.valid
    assert "a lone query takes 20" in peak.limit


def test_a_slow_neighbour_does_not_make_the_run_long():
    services = ["resnet50 100000 QPS on gpu[1-3]", "bert-99 0.001 QPS on gpu0"]
    found = lanewise.simulate("composable-server-gen4", services)
    assert found[0].valid
    assert found[0].queries < 6e6
