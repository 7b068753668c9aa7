"""Both directions of copies with the memory of the other socket, where they get more than one of them alone."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.perf.predict import Prediction
from lanewise.topology.read import read_system


def far(cpu: str, flows: str, p2p: bool = True) -> Prediction:
    text = f"""
lanewise: 1
system: sockets
devices: {{"cpu[0-1]": {{cpu: {cpu}}}, "gpu[0-3]": {{gpu: a100-sxm-40gb}}}}
links:
  - {{from: cpu0, to: cpu1, socket: 4}}
  - {{from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}}
  - {{from: cpu1, to: "gpu[2-3]", pcie: gen4 x16}}
"""
    return lanewise.predict(read_system(text, "sockets.yaml"), flows, p2p)


def test_both_directions_get_more_of_romes_far_memory_than_one_and_writes_most_of_it() -> None:
    # A100 on EPYC 7452 and 7H12: 17.4 and 18.5 GB/s to far memory beside 9.07 and 9.41 from it, 22.9 to 24.7 one way.
    rome = builtin().get("rome")
    both = far("rome", "gpu2->host0:0, host0:0->gpu2")
    writes, reads = both.rates
    assert both.total == pytest.approx(rome.number("intersocket.memory_both"))
    assert writes.rate / reads.rate == pytest.approx(rome.number("intersocket.write_weight"))
    assert writes.limit == "memory of the far socket (traffic of root port rp0 of cpu1)"
    assert "intersocket.memory_both" in writes.rests_on[0]
    assert far("rome", "host0:0->gpu2").total == pytest.approx(0.7 * 32e9)
    assert writes.low < 11.2e9  # settings of the links: both may get what one direction does


def test_far_memory_whose_directions_share_one_rate_prefers_none() -> None:
    writes, reads = far("milan", "gpu2->host0:0, host0:0->gpu2").rates
    assert writes.rate == pytest.approx(reads.rate)
    assert writes.rate + reads.rate == pytest.approx(25.4e9)


def test_copies_through_far_memory_get_what_one_direction_does() -> None:
    # Staged copies of A100 on two EPYC, both at the socket without the buffers: 19.1 and 20.95 GB/s.
    both = far("rome", "gpu2<->gpu3", p2p=False)
    assert both.total == pytest.approx(1 / (1 / 22.4e9 + 1 / 113e9), rel=0.01)  # a median gap
