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
  cpu0: {cpu: grace-480gb}
  "gpu[0-1]": {gpu: gb200}
  nvs: {nvswitch: null}
links:
  - {from: cpu0, to: "gpu[0-1]", nvlink: auto}
  - {from: "gpu[0-1]", to: nvs, nvlink: 18}
"""
ONE = TEXT.replace("gb200", "gh200-480gb")
# Shares of a module's memory, medians of the machines measured; both ways reads / R + writes / W = 1.
READS, WRITES = 0.907, 0.949
BOTH = 2 * READS * WRITES / (READS + WRITES)
WEIGHT = 0.995  # what a write gets of what a read gets while both fill the memory


def rate(text: str, flow: str) -> float:
    return predict(read_system(text, "grace.yaml"), parse_flows(flow)).rates[0].rate


def test_a_gh200_480gb_reads_what_the_memory_of_its_module_has() -> None:
    assert rate(ONE, "gpu0->host0") == pytest.approx(295.15e9)  # 291.6, 295.15, 297
    # Of the modules that were measured 0.873 to 0.982 of their memory; its own GPU 335.3, 346, 370.13 and 377 GB/s.
    assert rate(ONE, "host0->gpu0") == pytest.approx(384e9 * READS)
    catalog = builtin()
    for name in ("gh200-superbench", "gh200-dual", "gh200-cannon", "gh200-nvbandwidth-23", "gh200-quad"):
        catalog = catalog.without_machine(name)
    unmeasured = predict(read_system(ONE, "grace.yaml", catalog=catalog), parse_flows("host0->gpu0")).rates[0].rate
    assert unmeasured == pytest.approx(384e9 * 0.907)  # GB300 of a DGX Station, the middle of 0.878, 0.907 and 0.977


def test_a_module_with_faster_memory_reads_what_the_links_carry() -> None:
    fast = ONE.replace("-480gb", "-120gb")
    assert rate(fast, "host0->gpu0") == pytest.approx(422.07e9)  # as measured with 120 GB
    catalog = builtin().without_machine("gh200-quad")
    left_out = predict(read_system(fast, "grace.yaml", catalog=catalog), parse_flows("host0->gpu0")).rates[0].rate
    assert left_out == pytest.approx(10 * 45e9 * 0.9)
    rates = predict(read_system(fast, "grace.yaml"), parse_flows("host0<->gpu0")).rates
    assert sum(flow.rate for flow in rates) == pytest.approx(512e9 * BOTH, rel=1e-4)  # 490 GB/s measured


def test_the_engine_figure_of_another_machine_stands_in_for_one_left_out() -> None:
    catalog = builtin().without_machine("gh200-superbench")
    left_out = predict(read_system(ONE, "grace.yaml", catalog=catalog), parse_flows("gpu0->host0")).rates[0].rate
    assert left_out == pytest.approx((291.6e9 + 297e9) / 2)


def test_a_gpu_without_figures_has_the_share_of_its_nvlinks_generation_and_c2c_that_of_all() -> None:
    system = read_system(TEXT, "grace.yaml", catalog=builtin().without_machine("gb200-oci"))
    one, other = (predict(system, parse_flows(flow)).rates[0].rate for flow in ("host0->gpu0", "gpu0->gpu1"))
    assert one == pytest.approx(5 * 45e9 * 0.9)
    assert other == pytest.approx((775.88e9 + 774.3e9) / 2)  # GB300 and B300 over as many links of NVLink 5


def test_a_cpu_that_is_no_grace_has_nvlinks() -> None:
    text = TEXT.replace("gb200", "v100-sxm2").replace("nvlink: auto", "nvlink: 3").replace("nvlink: 18", "nvlink: 3")
    assert rate(text, "host0->gpu0") == pytest.approx(145.1e9 / 2)


def test_more_links_than_the_gpu_has_are_refused() -> None:
    with pytest.raises(Contradiction, match="gb200 has 5 NVLink-C2C links; the link cannot bond 6"):
        read_system(TEXT.replace("nvlink: auto", "nvlink: 6"), "grace.yaml")


def test_both_directions_share_the_memory_of_the_cpu() -> None:
    rates = predict(read_system(ONE, "grace.yaml"), parse_flows("host0<->gpu0")).rates
    reads = 384e9 / (1 / READS + WEIGHT / WRITES)
    assert [flow.rate for flow in rates] == pytest.approx([reads, WEIGHT * reads], rel=1e-6)


def test_both_directions_of_a_gpu_get_less_than_the_memory_gives_two() -> None:
    # A GB300 gets 0.847 of twice one way, 343 GB/s, a GB200 0.831; two GB300 get 364, which is the memory's.
    one_way = rate(TEXT, "host0->gpu0")
    assert rate(TEXT, "host0<->gpu0") == pytest.approx(0.839 * one_way, rel=0.03)
    assert rate(TEXT, "host0<->gpu[0-1]") == pytest.approx(384e9 * BOTH / 4, rel=0.01)
    assert rate(TEXT, "gpu0<->gpu1") == pytest.approx(rate(TEXT, "gpu0->gpu1"), rel=0.01)
