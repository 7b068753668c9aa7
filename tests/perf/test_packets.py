"""Packet sums against the specification's own numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import InputError
from lanewise.perf import packets


@pytest.mark.parametrize(("gen", "gbytes"), [(1, 4.0), (2, 8.0), (3, 15.754), (4, 31.508), (5, 63.015), (6, 121.0)])
def test_raw_rates_of_x16_links_are_those_of_the_specification(gen: int, gbytes: float) -> None:
    assert packets.raw_rate(gen, 16) / 1e9 == pytest.approx(gbytes, rel=1e-4)


def test_a_generation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="generation 9"):
        packets.raw_rate(9, 16)


@given(st.integers(1, 7), st.sampled_from(packets.LANES))
def test_raw_rate_is_linear_in_lanes(gen: int, lanes: int) -> None:
    assert packets.raw_rate(gen, lanes) == pytest.approx(lanes * packets.raw_rate(gen, 1))


@given(st.floats(1, 4096), st.floats(0, 64))
def test_packets_never_cost_less_than_their_payload_and_less_the_larger_they_are(
    payload: float, overhead: float
) -> None:
    assert packets.wire_bytes(payload, overhead) >= 1
    assert packets.wire_bytes(2 * payload, overhead) <= packets.wire_bytes(payload, overhead)


def test_the_storage_demos_packets_come_out_as_published() -> None:
    # 3.5 GB/s in 64-byte packets with 32-bit addresses is 4.6 on the wire, 26 in 256-byte packets is 28.
    assert 3.5 * packets.wire_bytes(64, packets.REQUEST_32BIT) == pytest.approx(4.594, abs=0.001)
    assert 26 * packets.wire_bytes(256, packets.REQUEST_32BIT) == pytest.approx(28.03, abs=0.01)
