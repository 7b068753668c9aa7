"""The table of cases: nvbandwidth's names and cells, each readable as flows."""

from __future__ import annotations

import pytest

from lanewise.errors import UnknownName
from lanewise.perf.flow import parse_flows
from lanewise.probes.gpu.cases import CASES, DEFAULT, SETS, gpu_tests, select_cases

FOUR = ("gpu0", "gpu1", "gpu2", "gpu3")


def flows_of(name: str, gpus: tuple[str, ...] = FOUR) -> list[list[str]]:
    made = gpu_tests(select_cases([name]), gpus)
    return [[flow.name + " read" * flow.read + " sm" * flow.sm for flow in gpu_test.flows] for gpu_test in made]


def test_nvbandwidth_has_35_cases_sixteen_of_them_twice() -> None:
    names = SETS["nvbandwidth"]
    assert len(names) == 35
    twice = [name for name in names if name.endswith("_ce")]
    assert len(twice) == 16
    assert all(f"{name.removesuffix('_ce')}_sm" in names for name in twice)


@pytest.mark.parametrize(
    ("name", "count", "first"),
    [
        ("host_to_device_memcpy_ce", 4, ["host0->gpu0"]),
        ("device_to_host_bidirectional_memcpy_sm", 4, ["host0->gpu0 sm", "gpu0->host0 sm"]),
        ("device_to_device_memcpy_read_ce", 12, ["gpu1->gpu0 read"]),
        ("device_to_device_bidirectional_memcpy_write_ce", 6, ["gpu0->gpu1", "gpu1->gpu0"]),
        ("all_to_host_memcpy_ce", 1, ["gpu0->host0", "gpu1->host0", "gpu2->host0", "gpu3->host0"]),
        ("all_to_one_write_ce", 4, ["gpu1->gpu0", "gpu2->gpu0", "gpu3->gpu0"]),
        ("one_to_all_read_sm", 4, ["gpu1->gpu0 read sm", "gpu2->gpu0 read sm", "gpu3->gpu0 read sm"]),
        ("device_local_copy", 4, ["gpu0->gpu0"]),
    ],
)
def test_a_case_has_these_measurements(name: str, count: int, first: list[str]) -> None:
    made = flows_of(name)
    assert len(made) == count
    assert made[0] == first


def test_no_pair_of_ends_is_in_two_measurements_of_a_case() -> None:
    for case in CASES.values():
        rows = gpu_tests([case], FOUR)
        for batch in {row.batch for row in rows}:
            ends = [flow.name for row in rows if row.batch == batch for flow in row.flows]
            assert len(ends) == len(set(ends)), case.name


def test_every_measurement_but_local_copies_is_in_the_notation_of_flows() -> None:
    for gpu_test in gpu_tests(CASES.values(), FOUR):
        if gpu_test.scenarios != ("device_local_copy",):
            text = ", ".join(f.name + " read" * f.read + " sm" * f.sm for f in gpu_test.flows)
            again = parse_flows(text, p2p=gpu_test.flows[0].p2p)
            assert again == gpu_test.flows


def test_cases_with_the_same_flows_are_measured_once() -> None:
    both = ["host_to_device_bidirectional_memcpy_ce", "device_to_host_bidirectional_memcpy_ce"]
    (gpu_test,) = gpu_tests(select_cases(both), ["gpu0"])
    assert list(gpu_test.scenarios) == both


def test_one_gpu_has_no_pairs_and_keeps_the_other_cases() -> None:
    assert {gpu_test.technique for gpu_test in gpu_tests(select_cases(["all"]), ["gpu0"])} == {
        case.technique for case in CASES.values()
    }
    assert gpu_tests(select_cases(["device_to_device_*", "all_to_one_*"]), ["gpu0"]) == []


def test_cases_are_picked_by_name_set_and_pattern_in_the_tables_order() -> None:
    assert [case.name for case in select_cases(["default"])] == [name for name in CASES if name in DEFAULT]
    assert {case.name for case in select_cases(["host_to_device_memcpy_*"])} == {
        "host_to_device_memcpy_ce",
        "host_to_device_memcpy_sm",
    }
    assert [case.name for case in select_cases(["device_local_copy", "all_to_one_write_ce"])] == [
        "all_to_one_write_ce",
        "device_local_copy",
    ]


def test_an_unknown_case_is_refused_with_the_closest_names() -> None:
    with pytest.raises(UnknownName, match="unknown case 'host_to_device_memcpy'") as caught:
        select_cases(["host_to_device_memcpy"])
    assert "host_to_device_memcpy_ce" in caught.value.hint
