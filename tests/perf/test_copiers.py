"""What moves the data of copies both ways: copy engines, kernels, or the CPU's cores."""

from __future__ import annotations

import statistics

import pytest

import lanewise
from lanewise.catalog import Catalog, builtin
from lanewise.catalog.typical import both_ways_share, completed
from lanewise.perf.duplex import ACK_SHARE
from lanewise.topology.model import System
from lanewise.topology.read import read_system

HOST = """
lanewise: 1
system: host
devices:
  cpu0: {cpu: null}
  gpu0: {gpu: GPU}
links:
  - {from: cpu0, to: gpu0, pcie: gen5 x16}
"""
SENDS = "gpu0->cpu0, cpu0->gpu0"


def host(gpu: str) -> System:
    return read_system(HOST.replace("GPU", gpu), "host.yaml")


def test_copy_engines_of_amd_gpus_of_a_generation_that_nobody_measured_lose_as_those_of_the_nearest() -> None:
    # Measured: 93.2 GB/s of 111.8 one way (r9700-turin); packets alone would leave 104.
    catalog: Catalog = builtin()
    card = catalog.get("radeon-ai-pro-r9700")
    shares = [
        (part.number("engine.duplex.gen4") or 0.0)
        / sum(completed(catalog, part).number(f"engine.{way}.gen4") or 0.0 for way in ("h2d", "d2h"))
        for part in map(catalog.get, ("mi50", "mi100", "mi210", "rx-7900-xtx"))  # an MI50's copies alone are typical
    ]
    share = statistics.median(shares)
    assert both_ways_share(catalog, card) == pytest.approx(share)
    both = lanewise.predict(host("radeon-ai-pro-r9700"), "host0<->gpu0").total
    alone = sum(lanewise.predict(host("radeon-ai-pro-r9700"), f).total for f in ("host0->gpu0", "gpu0->host0"))
    assert both == pytest.approx(share * alone, rel=0.02)


def test_stores_of_the_cpu_s_cores_cost_a_gpu_s_writes_acks_alone() -> None:
    # Measured: 54.5 and 54.8 GB/s of 55.2 and 55.4 while the cores store 34 to 45 (MI300X, TransferBench p2p).
    system = host("mi300x")
    alone = lanewise.predict(system, "gpu0->cpu0").total
    beside = lanewise.predict(system, SENDS, schedule="TransferBench").total
    assert alone * (1 - 1.5 * ACK_SHARE) < beside < alone
    assert lanewise.predict(system, SENDS, schedule="nvbandwidth").total < 0.95 * beside
