"""What a load, a run and a service in steady state refuse, and what they take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lanewise
from lanewise.errors import Contradiction, InputError
from lanewise.serving.load import MAX_SEED, ServiceLoad, check, check_run, gpus_of, parse_load
from lanewise.serving.peak import SearchOptions
from lanewise.serving.workload import workload
from lanewise.topology.model import Kind, System

GEN4 = "composable-server-gen4"
LOAD = ServiceLoad(workload("resnet50"), qps=1000.0)


@pytest.fixture(scope="module")
def gen4() -> System:
    return lanewise.load_system(GEN4)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"qps": 1e300}, "1e+300 queries a second is more than any system answers"),
        ({"qps": float("nan")}, "nan queries a second is no rate"),
        ({"qps": "1000"}, "'1000' queries a second is no rate"),
        ({"qps": True}, "no rate"),
        ({"batch": 0}, "a batch of 0 queries"),
        ({"batch": 1_000_000}, "a batch of 1000000 queries"),
        ({"batch": 2.5}, "a batch of 2.5 queries"),
        ({"batch": "8"}, "a batch of '8' queries"),
        ({"timeout": "1 ms"}, "a batching time-out of '1 ms' s"),
        ({"samples": 1.5}, "without copy slots, buffers or samples"),
        ({"slots": 0}, "without copy slots, buffers or samples"),
        ({"scenario": "single-stream", "timeout": 0.001}, "says nothing about the single-stream scenario"),
        ({"scenario": "multi-stream", "timeout": 0.001}, "says nothing about the multi-stream scenario"),
    ],
)
def test_a_load_without_meaning_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        check(replace(LOAD, **more))
    assert says in caught.value.cause
    assert caught.value.hint


@pytest.mark.parametrize("more", [{"qps": 1e12}, {"qps": 1000}, {"batch": 1}, {"batch": 999_999}, {"timeout": 0}])
def test_loads_at_the_ends_of_what_is_allowed_pass(more: dict[str, Any]) -> None:
    check(replace(LOAD, **more))


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number_that_the_simulation_can_hold(seed: Any) -> None:
    with pytest.raises(InputError, match="is no seed"):
        check_run(None, seed)
    with pytest.raises(InputError, match="is no seed"):
        lanewise.simulate(GEN4, "resnet50 1000 QPS", seed=seed)
    with pytest.raises(InputError, match="is no seed"):
        lanewise.trace(GEN4, "resnet50 1000 QPS", seed=seed)


@pytest.mark.parametrize("seconds", ["1", 0, -1.0, float("inf"), float("nan"), 1e300, True])
def test_seconds_are_a_time_that_a_run_can_last(seconds: Any) -> None:
    for ask in (lanewise.simulate, lanewise.trace):
        with pytest.raises(InputError, match="a run of"):
            ask(GEN4, "resnet50 1000 QPS", seconds=seconds)


def test_the_largest_seed_runs_and_a_search_leaves_room_for_those_that_follow(gen4: System) -> None:
    assert lanewise.simulate(gen4, "resnet50 1000 QPS", seconds=0.1, seed=MAX_SEED)[0].answered > 0
    with pytest.raises(InputError, match="is no seed") as caught:
        lanewise.peak(gen4, "resnet50", search=SearchOptions(seed=MAX_SEED))
    assert str(MAX_SEED - 39) in caught.value.hint


def test_a_batch_of_the_wrong_kind_is_refused_by_the_api(gen4: System) -> None:
    with pytest.raises(InputError, match=r"a batch of 2\.5"):
        lanewise.simulate(gen4, replace(LOAD, batch=2.5))  # type: ignore[arg-type]


def test_gpus_of_one_host_and_another_host_contradict_each_other() -> None:
    system = lanewise.load_system("composable-server-two-hosts")
    gpu = system.of_kind(Kind.GPU, host="host0")[0]
    for gpus in (("host0",), (gpu,)):
        with pytest.raises(Contradiction, match="belongs to host0, not to host1"):
            gpus_of(system, replace(LOAD, gpus=gpus, host="host1"))
        assert gpu in gpus_of(system, replace(LOAD, gpus=gpus, host="host0"))


@pytest.mark.parametrize(
    ("name", "load"),
    [
        (GEN4, replace(LOAD, frontend="host0")),
        (GEN4, parse_load("resnet50 1000 QPS on gpu0 from host0")),
        ("dgx-a100-network", replace(LOAD, frontend="accelerator", host="accelerator")),
    ],
)
def test_a_host_cannot_serve_its_own_queries_over_the_network(name: str, load: ServiceLoad) -> None:
    with pytest.raises(InputError, match="none crosses the network"):
        lanewise.simulate(name, load)


@pytest.mark.parametrize(
    ("more", "fine"),
    [
        ({}, False),
        ({"gpus": ("gpu0", "gpu1")}, False),
        ({"gpus": ("gpu0",), "copies": "per-query"}, False),
        ({"copies": "per-query"}, True),
    ],
)
def test_dispatch_needs_queues_to_choose_among(gen4: System, more: dict[str, Any], fine: bool) -> None:
    load = replace(LOAD, dispatch="random", **more)
    if fine:
        assert gpus_of(gen4, load)
        return
    with pytest.raises(InputError, match="has no effect: one queue feeds gpu0"):
        gpus_of(gen4, load)


def test_gpus_of_two_hosts_have_two_queues() -> None:
    system = lanewise.load_system("composable-server-two-hosts")
    moved = lanewise.attach(lanewise.detach(system, "gpu0"), "gpu0", "host1")
    assert gpus_of(moved, replace(LOAD, gpus=("gpu0", "gpu1"), dispatch="random")) == ("gpu0", "gpu1")


def test_a_peak_is_that_of_one_service_without_a_rate(gen4: System) -> None:
    with pytest.raises(InputError, match="a peak of 2 services") as caught:
        lanewise.peak(gen4, ["resnet50", "bert-99 10 QPS"])  # type: ignore[arg-type]
    assert "beside" in caught.value.hint
    for asked in ("resnet50 1000 QPS", LOAD):
        with pytest.raises(InputError, match="a rate of 1000 QPS has no effect on a peak"):
            lanewise.peak(gen4, asked)
