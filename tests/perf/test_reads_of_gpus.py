"""Drives and network cards that read a GPU's memory: it answers no faster than it sends to a host."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def drives(gpu: str, gen: int) -> System:
    text = f"""
lanewise: 1
system: drives
devices: {{cpu0: {{cpu: genoa}}, gpu0: {{gpu: {gpu}}}, "ssd[0-7]": {{ssd: solidigm-ps1010}}}}
links:
  - {{from: cpu0, to: gpu0, pcie: gen{gen} x16}}
  - {{from: cpu0, to: "ssd[0-7]", pcie: gen5 x4}}
volumes: {{vol0: {{raid: 0, drives: "ssd[0-7]"}}}}
"""
    return read_system(text, "drives.yaml")


@pytest.mark.parametrize(("gpu", "gen"), [("rtx-4090", 4), ("h200-sxm", 5), ("p100-pcie", 3)])
def test_drives_read_a_gpu_as_fast_as_it_sends_to_a_host(gpu: str, gen: int) -> None:
    # An L40S to drives that write 40 GB/s: 25.8, where a link of Gen4 x16 carries 28.7 (l40s-gds).
    rate = lanewise.predict(drives(gpu, gen), "gpu0->vol0").rates[0]
    sends = builtin().get(gpu).number(f"engine.d2h.gen{gen}") or 0.0
    assert rate.rate == pytest.approx(sends)
    assert rate.limit == "reads of gpu0 by drives and cards"


def test_reads_of_a_gpu_take_no_copy_engine() -> None:
    # Together they fill the link, whose packets of reads and of copies are alike.
    both = lanewise.predict(drives("rtx-4090", 4), "gpu0->vol0, gpu0->host0")
    assert both.total > 1.02 * lanewise.predict(drives("rtx-4090", 4), "gpu0->host0").total
    assert {rate.limit for rate in both.rates} == {"link gpu0->cpu0 (Gen4 x16)"}
