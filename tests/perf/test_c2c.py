"""NVLink-C2C: the links of a GPU to its CPU, apart from its NVLinks."""

from __future__ import annotations

import pytest

from lanewise.catalog import builtin
from lanewise.errors import Contradiction
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.topology.read import read_system

TEXT = """lanewise: 1
system: grace
devices:
  cpu0: {cpu: grace}
  "gpu[0-1]": {gpu: gb200}
  nvs: {nvswitch: null}
links:
  - {from: cpu0, to: "gpu[0-1]", nvlink: auto}
  - {from: "gpu[0-1]", to: nvs, nvlink: 18}
"""
ONE = TEXT.replace("gb200", "gh200")


def rate(text: str, flow: str) -> float:
    return predict(read_system(text, "grace.yaml"), parse_flows(flow)).rates[0].rate


def test_each_direction_has_the_figure_of_the_gpu() -> None:
    assert rate(ONE, "host0->gpu0") == pytest.approx((370.13e9 + 377e9) / 2)
    assert rate(ONE, "gpu0->host0") == pytest.approx((295.15e9 + 297e9) / 2)


def test_a_grace_with_480_gb_writes_as_fast_as_one_with_faster_memory() -> None:
    small = ONE.replace("cpu: grace", "cpu: grace-480gb")
    catalog = builtin().without_machine("gh200-superbench")  # the share of writes that was measured on it, too
    share = catalog.get("grace-480gb").number("memory.dma_writes")
    assert share is not None
    other = catalog.get("grace").number("memory.dma_writes")
    assert 384e9 * share == pytest.approx(512e9 * (other or 0.0), rel=0.002)  # 370 and 377 GB/s
    left_out = predict(read_system(small, "grace.yaml", catalog=catalog), parse_flows("gpu0->host0")).rates[0].rate
    assert left_out == pytest.approx(297e9)  # the copy engine's of the other machine
    assert rate(small, "gpu0->host0") == pytest.approx((295.15e9 + 297e9) / 2)


def test_a_gpu_without_figures_has_the_share_of_its_nvlinks_generation_and_c2c_that_of_all() -> None:
    assert rate(TEXT, "host0->gpu0") == pytest.approx(5 * 45e9 * 0.9)
    assert rate(TEXT, "gpu0->gpu1") == pytest.approx(775.88e9)  # GB300 over as many links of NVLink 5


def test_a_cpu_that_is_no_grace_has_nvlinks() -> None:
    text = TEXT.replace("gb200", "v100-sxm2").replace("nvlink: auto", "nvlink: 3").replace("nvlink: 18", "nvlink: 3")
    assert rate(text, "host0->gpu0") == pytest.approx(143.7e9 / 2)


def test_more_links_than_the_gpu_has_are_refused() -> None:
    with pytest.raises(Contradiction, match="gb200 has 5 NVLink-C2C links; the link cannot bond 6"):
        read_system(TEXT.replace("nvlink: auto", "nvlink: 6"), "grace.yaml")


def test_both_directions_share_the_memory_of_the_cpu() -> None:
    rates = predict(read_system(ONE, "grace.yaml"), parse_flows("host0<->gpu0")).rates
    reads, writes = 512e9 * 0.733, 512e9 * 0.7295  # of one machine and the median of two
    assert sorted(flow.rate for flow in rates) == pytest.approx([reads * writes / (reads + writes)] * 2)


def test_both_directions_of_a_gpu_get_less_than_the_memory_gives_two() -> None:
    # A GB300 gets 0.847 of twice one way, 343 GB/s; two of them get 364, which is the memory's.
    one_way = rate(TEXT, "host0->gpu0")
    assert rate(TEXT, "host0<->gpu0") == pytest.approx(0.847 * one_way, rel=0.02)
    assert rate(TEXT, "host0<->gpu[0-1]") == pytest.approx(512e9 * 0.731 / 4, rel=0.01)
    assert rate(TEXT, "gpu0<->gpu1") == pytest.approx(rate(TEXT, "gpu0->gpu1"))
