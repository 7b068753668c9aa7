"""Copies through host memory whose stages take turns: AMD's, and those of GeForce cards as others of their series."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import Catalog, Part, builtin
from lanewise.catalog.typical import completed
from lanewise.perf.predict import Prediction
from lanewise.topology.read import read_system

PAIR = """
lanewise: 1
system: pair
devices:
  cpu0: {cpu: null}
  "gpu[0-1]": {gpu: %s}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}
policies: {peers: none}
"""


def staged(gpu: str, flows: str, catalog: Catalog | None = None) -> Prediction:
    system = read_system(PAIR % gpu, "s.yaml", catalog=catalog or builtin())
    return lanewise.predict(system, flows, p2p=False)


def test_copies_of_amd_run_in_two_steps_and_opposite_ones_at_once_or_one_after_the_other() -> None:
    # ROCr copies to host memory and then on; two MI25 of RVS 7.04 GB/s one way and 12.0 both ways.
    one, both = (staged("mi25", flows) for flows in ("gpu0->gpu1", "gpu0<->gpu1"))
    alone = [staged("mi25", flows).total for flows in ("gpu0->host0", "host0->gpu0")]
    assert one.total == pytest.approx(1 / (1 / alone[0] + 1 / alone[1]))  # without the gap of CUDA's driver
    assert one.total_low < 1 / (1 / alone[0] + 1 / alone[1] + 8e-12)  # HIP waits for each chunk
    assert both.total == pytest.approx(2 * 0.96 * one.total)
    assert both.total_low < one.total  # HIP has one lock for all pairs
    assert any("ROCclr" in source for source in one.rates[0].rests_on)


# Without the RTX 2080 Ti the nearest series, RTX 30, tells.
@pytest.mark.parametrize("left_out", ["", "rtx2080ti-autodl"])
def test_cards_of_a_series_are_as_those_that_were_measured_of_the_nearest(left_out: str) -> None:
    catalog = builtin().without_machine(left_out)
    assert completed(catalog, catalog.get("rtx-2080-ti")).text("staging.stages") == "in turns"
    assert completed(catalog, catalog.get("rtx-4080")).text("staging.stages") is None


def test_a_card_taken_from_its_series_may_still_overlap() -> None:
    figures = {key: builtin().get("rtx-3090").figure(key) for key in ("pcie.gen", "pcie.lanes", "peer.access")}
    card = Part("new", "gpu", "NVIDIA GeForce RTX 3070 Ti", (), figures)
    rate = staged("new", "gpu0->gpu1", builtin().with_part(card)).rates[0]
    assert rate.rate < 6.5e9  # two RTX 3070 Ti 5.5, RTX 3090 5.9
    assert rate.high > 11e9


@pytest.mark.parametrize(("gpu", "most"), [("v100-sxm2", 2 * 0.86), ("a100-sxm-80gb", 2 * 0.70 * 1.07)])
def test_a_gpu_older_than_todays_sample_may_have_been_measured_with_the_one_before(gpu: str, most: float) -> None:
    # 200 MB a direction wait in the driver's queue, so both run all the time: V100 18.7 GB/s for 11.05 one way.
    system = read_system(PAIR % gpu, "s.yaml")
    one, both = (
        lanewise.predict(system, flows, p2p=False, schedule="p2pBandwidthLatencyTest")
        for flows in ("gpu0->gpu1", "gpu0<->gpu1")
    )
    share = both.rates[0].rate / one.total
    assert share == pytest.approx(0.70, rel=0.01)
    assert one.rates[0].rate * most <= both.total_high * 1.01
    assert (both.total_high > 1.6 * one.total) == (gpu == "v100-sxm2")
