"""Peer writes through CPUs that split their packets."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.topology.read import read_system


@pytest.mark.parametrize(("cpu", "gen", "most"), [("skylake-sp", 3, 11.46), ("ice-lake-sp", 4, 22.92)])
def test_the_next_host_may_pass_all_that_split_packets_allow(cpu: str, gen: int, most: float) -> None:
    # Three hosts with Gen3 slots passed 10.26, 10.28 and 11.35 GB/s of the 11.46 of packets of 64 B with 24 B each.
    text = """lanewise: 1
system: s
devices:
  cpu0: {cpu: CPU}
  "gpu[0-1]": {gpu: rtx-6000-ada}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: genGEN x16}
policies: {peers: system}
"""
    catalog = builtin().without_machine("v100-pcie-pair").without_machine("puget-w3365-ada")
    system = read_system(text.replace("CPU", cpu).replace("GEN", str(gen)), "s.yaml", catalog=catalog)
    rate = lanewise.predict(system, "gpu0->gpu1").rates[0]
    assert rate.limit == "peer writes through the root complex of cpu0 at rp1"
    assert rate.rate < 0.93 * most * 1e9
    assert rate.high == pytest.approx(most * 1e9, rel=0.001)


@pytest.mark.parametrize(("cpu", "advice"), [("Core i5-13600KF", "state"), ("null", "name the CPU, or state")])
def test_a_cpu_that_is_named_need_not_be_named(cpu: str, advice: str) -> None:
    text = """lanewise: 1
system: s
devices: {cpu0: {cpu: CPU}, "gpu[0-1]": {gpu: rtx-6000-ada}}
links: [{from: cpu0, to: "gpu[0-1]", pcie: gen4 x8}]
policies: {peers: system}
"""
    rate = lanewise.predict(read_system(text.replace("CPU", cpu), "s.yaml"), "gpu0->gpu1").rates[0]
    assert f"was not measured: {advice} its peer.rate.gen4" in rate.doubt
