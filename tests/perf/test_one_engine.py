"""GPUs whose one copy engine serves both directions: copies take turns, whatever the link carries both ways."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.topology.model import System
from lanewise.topology.read import read_system

CARD = """
lanewise: 1
system: card
devices:
  cpu0: {cpu: null}
  "gpu[0-1]": {gpu: arc-b580}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x8}
"""


@pytest.fixture(scope="module")
def card() -> System:
    return read_system(CARD, "card.yaml")


def rate(system: System, flows: str) -> float:
    return lanewise.predict(system, flows).total


def test_both_directions_take_turns(card: System) -> None:
    # Measured: 2.8 GB/s both ways of an Arc Pro B60, 2.85 and 3.2 one way (b60-tb3-halo).
    into, out = rate(card, "host0->gpu0"), rate(card, "gpu0->host0")
    assert rate(card, "host0<->gpu0") == pytest.approx(2 * into * out / (into + out))
    limits = {each.limit for each in lanewise.predict(card, "host0<->gpu0").rates}
    assert limits == {"copy engine of gpu0, one for both directions"}


def test_copies_of_one_direction_and_of_two_gpus_do_not_wait(card: System) -> None:
    one = lanewise.predict(card, "host0->gpu0").rates[0]
    assert one.limit != "copy engine of gpu0, one for both directions"
    together = rate(card, "host0->gpu0, gpu1->host0")
    assert together == pytest.approx(one.rate + rate(card, "gpu1->host0"), rel=0.1)


def test_gpus_with_an_engine_for_each_direction_run_both(card: System) -> None:
    other = read_system(CARD.replace("arc-b580", "rtx-4090"), "other.yaml")
    assert rate(other, "host0<->gpu0") > 1.7 * rate(other, "host0->gpu0")


def test_a_capped_copy_leaves_the_engine_the_rest_of_the_time(card: System) -> None:
    into, out = rate(card, "host0->gpu0"), rate(card, "gpu0->host0")
    rates = [each.rate for each in lanewise.predict(card, f"host0->gpu0 cap {into / 4e9} GB/s, gpu0->host0").rates]
    assert rates[0] == pytest.approx(into / 4)
    assert rates[1] == pytest.approx(out * 3 / 4, rel=0.03)
