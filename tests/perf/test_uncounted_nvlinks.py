"""NVLinks that nobody counted: as many as the parts have, perhaps one."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective
from lanewise.perf.predict import FlowRate
from lanewise.topology.model import System
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system


def pair(links: str, part: str = "v100-sxm2") -> System:
    """Two GPUs below one CPU with a number of NVLinks between them."""
    return read_system(
        f"""
lanewise: 1
system: pair
devices: {{cpu0: {{cpu: null}}, "gpu[0-1]": {{gpu: {part}}}}}
links:
  - {{from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}}
  - {{from: gpu0, to: gpu1, nvlink: {links}}}
""",
        "pair.yaml",
    )


def rate(links: str) -> FlowRate:
    return lanewise.predict(pair(links), "gpu0->gpu1").rates[0]


def test_the_headline_is_that_of_all_and_the_low_end_that_of_one() -> None:
    unknown, every, one = rate('"?"'), rate("auto"), rate("1")
    assert (unknown.rate, unknown.high) == pytest.approx((every.rate, every.high))
    assert unknown.low == pytest.approx(every.low / 6)
    assert unknown.low <= one.rate
    assert "number of NVLinks of gpu0--gpu1 is unknown" in unknown.doubt
    assert not every.doubt
    assert [lanewise.route(pair(links), "gpu0", "gpu1").cls for links in ('"?"', "auto")] == ["NV?", "NV6"]


@pytest.mark.parametrize("word", ['"?"', "unknown", '"NV?"', '"x?"'])
def test_it_is_said_in_several_ways_and_written_as_a_question(word: str) -> None:
    system = pair(word)
    assert not system.links[-1].count_known
    again = read_system(write_system(system), "again.yaml")
    assert (again.links[-1].count, again.links[-1].count_known) == (6, False)


def test_a_collective_over_them_is_as_uncertain() -> None:
    known, unknown = (
        predict_collective(pair(word), Collective.ALL_REDUCE, "gpu[0-1]", [2**30]).points[0]
        for word in ("auto", '"?"')
    )
    assert unknown.bus_bandwidth == known.bus_bandwidth
    assert unknown.low == pytest.approx(known.low / 6, rel=0.05)
