"""Chipsets: what is behind one shares its link to the CPU, also where nobody knows the link, or which chipset it is."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.catalog.ports import is_chipset
from lanewise.errors import Contradiction
from lanewise.perf.packets import raw_rate
from lanewise.perf.predict import FlowRate
from lanewise.topology.read import read_system

DESKTOP = """
lanewise: 1
system: desktop
devices: {cpu0: {cpu: null}, pch: {switch: %s}, "gpu[0-1]": {gpu: rtx-4090}}
links:
  - {from: cpu0, to: pch, pcie: "%s"}
  - {from: pch, to: "gpu[0-1]", pcie: "%s"}
"""
UNKNOWN = "gen? x?"
NAMED = [name for name in builtin().names() if is_chipset(builtin().get(name)) and name != "chipset"]


def rates(chipset: str, up: str = UNKNOWN, down: str = UNKNOWN, flows: str = "gpu0->host0") -> tuple[FlowRate, ...]:
    return lanewise.predict(read_system(DESKTOP % (chipset, up, down), "desktop.yaml"), flows).rates


@pytest.mark.parametrize("chipset", NAMED)
def test_links_that_nobody_stated_are_no_faster_than_the_chipset_that_is_named(chipset: str) -> None:
    part = builtin().get(chipset)
    gen, lanes = part.number("switch.uplink_gen"), part.number("switch.uplink_lanes")
    assert gen
    assert lanes
    assert rates(chipset)[0].high <= raw_rate(round(gen), round(lanes))
    both = rates(chipset, flows="gpu[0-1]->host0")
    assert sum(rate.rate for rate in both) <= raw_rate(round(gen), round(lanes))
    stated = f"gen{gen:.0f} x{lanes:.0f}"
    assert rates(chipset, up=stated)[0].rate == pytest.approx(rates(chipset)[0].rate)


@pytest.mark.parametrize("chipset", NAMED)
def test_the_interval_of_a_chipset_that_nobody_named_holds_every_one(chipset: str) -> None:
    unnamed, named = rates("chipset")[0], rates(chipset)[0]
    assert unnamed.low <= named.rate <= unnamed.high
    assert "is not known" in unnamed.doubt


def test_automatic_links_follow_the_chipset() -> None:
    assert rates("z790", up="auto", down="auto")[0].rate == pytest.approx(rates("z790", "gen4 x8", "gen4 x4")[0].rate)
    assert rates("chipset", up="auto", down="auto")[0] == rates("chipset")[0]


def test_a_link_wider_than_the_chipset_has_is_refused() -> None:
    with pytest.raises(Contradiction, match="amd-x570 is x4; the link cannot be x8"):
        rates("x570", up="gen4 x8")
