"""Services in steady state."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

import lanewise
from lanewise.catalog import Catalog, Figure, builtin
from lanewise.errors import InputError, UnknownName
from lanewise.serving.load import ServiceLoad
from lanewise.serving.steady import steady_rate
from lanewise.serving.workload import workload, workloads
from lanewise.topology.model import System


def with_rate(qps: float) -> Catalog:
    figure = Figure(qps, "1/s", "this test")
    part = builtin().get("l40s").with_figure("service.resnet50.server", figure)
    return builtin().with_part(part)


def rate(qps: float, **settings: int) -> float:
    system = lanewise.load_system("composable-server-gen4", settings, with_rate(qps))
    return lanewise.serve(system, "resnet50").qps


def test_a_service_below_saturation_is_the_sum_of_its_gpus() -> None:
    assert rate(10_000, path=4, gpus=4) == pytest.approx(40_000)


def test_a_saturated_service_is_limited_by_the_shared_link_whatever_the_gpus_could_do() -> None:
    assert rate(100_000, path=1, gpus=8) == pytest.approx(rate(200_000, path=1, gpus=8))


def test_more_gpus_never_lower_the_rate_and_a_longer_path_never_raises_it() -> None:
    by_path = [[rate(44_000, path=p, gpus=n) for n in range(1, 9)] for p in (1, 2, 3, 4)]
    for rates in by_path:
        assert all(more >= fewer * (1 - 1e-9) for fewer, more in itertools.pairwise(rates))
    for shorter, longer in itertools.pairwise(by_path):
        assert all(b <= a * (1 + 1e-9) for a, b in zip(shorter, longer, strict=True))


def test_bytes_are_queries_times_their_size() -> None:
    system = lanewise.load_system("composable-server-gen4", {"gpus": 1}, with_rate(1000))
    found = lanewise.serve(system, "resnet50")
    assert found.goodput == pytest.approx(found.qps * 150_528)


def test_a_gpu_with_no_known_rate_is_an_error_that_says_what_to_do() -> None:
    system = lanewise.load_system("composable-server-gen4")
    with pytest.raises(InputError, match="how many 3d-unet queries") as caught:
        lanewise.serve(system, "3d-unet")
    assert "service.3d-unet.server" in caught.value.hint


def test_an_unknown_workload_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        workload("resnet")
    assert "resnet50" in caught.value.hint


def test_every_workload_states_its_source_and_a_bound() -> None:
    for each in workloads().values():
        assert each.source
        assert each.bound > 0
        assert 0 < each.percentile < 1
        assert each.bytes_in > 0


def test_software_time_lowers_the_network_rate_only() -> None:
    slow = builtin().get("a100-sxm-80gb").with_figure("software.resnet50", Figure(10e-6, "s", "this test"))
    system = lanewise.load_system("dgx-a100-network", catalog=builtin().with_part(slow))
    closed = lanewise.serve(system, "resnet50", host="accelerator").qps
    network = lanewise.serve(system, "resnet50", division="network", host="accelerator").qps
    # 1 / (1 / 37,503.69 + 10 us) of each of eight GPUs
    assert network == pytest.approx(8 / (1 / 37503.69 + 10e-6), rel=1e-6)
    assert closed == pytest.approx(8 * 37503.69, rel=1e-6)


OWN = """\
own:
  bytes_in: 150528 B
  bytes_out: 4 kB
  bound: 15 ms
  percentile: 0.99
  software: 10 us
  source: made for a test
"""


def with_own(system: str, part: str) -> System:
    known = builtin().get(part).with_figure("service.own.server", Figure(1000.0, "1/s", "this test"))
    return lanewise.load_system(system, catalog=builtin().with_part(known))


def test_a_workload_of_ones_own_is_served_from_its_file_and_from_memory(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    system = with_own("composable-server-gen4", "l40s")
    gpus = len(lanewise.serve(system, "resnet50").prediction.rates)
    made = lanewise.load_workload(tmp_path / "own.yaml")
    for asked in (tmp_path / "own.yaml", str(tmp_path / "own.yaml"), f"{tmp_path}/own.yaml:own", made):
        assert lanewise.serve(system, asked).qps == pytest.approx(1000.0 * gpus)
    assert steady_rate(system, ServiceLoad(made)).workload == made


def test_software_of_ones_own_workload_counts_over_the_network(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    made = lanewise.load_workload(tmp_path / "own.yaml")
    system = with_own("dgx-a100-network", "a100-sxm-80gb")
    assert steady_rate(system, ServiceLoad(made, frontend="frontend")).qps == pytest.approx(8 / (1 / 1000 + 10e-6))
    none = replace(made, software=None)
    assert steady_rate(system, ServiceLoad(none, frontend="frontend")).qps == pytest.approx(8000)


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(UnknownName, match="unknown mode 'nope'") as caught:
        lanewise.serve("composable-server-gen4", "resnet50", mode="nope")
    assert "offline" in caught.value.hint


def test_hosts_are_refused_as_they_are_under_load() -> None:
    with pytest.raises(InputError, match="no host 'frontend' to generate") as steadily:
        lanewise.serve("composable-server-gen4", "resnet50", division="network")
    with pytest.raises(InputError) as loaded:
        lanewise.simulate("composable-server-gen4", "resnet50 1 QPS from frontend")
    assert str(steadily.value) == str(loaded.value)
    with pytest.raises(UnknownName, match="host7"):
        lanewise.serve("composable-server-gen4", "resnet50", host="host7")
    with pytest.raises(InputError, match="frontend of dgx-a100-network has no GPU"):
        lanewise.serve("dgx-a100-network", "resnet50", host="frontend")
    system = lanewise.load_system("dgx-a100-network")
    with pytest.raises(InputError, match="none crosses the network"):
        steady_rate(system, ServiceLoad(workload("resnet50"), host="accelerator", frontend="accelerator"))
