"""What devices together get of a host's memory."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.perf.host import DMA_READS, DMA_WRITES
from lanewise.topology.read import read_system


@pytest.mark.parametrize(
    ("cpu", "rate", "shares", "weight"),
    [
        # Virtual machines on Emerald Rapids were measured; Granite Rapids, which extends it, was not.
        ("emerald-rapids", 358.4e9, (0.454, 0.383), 1.48),
        ("granite-rapids-sp", 409.6e9, (DMA_READS, DMA_WRITES), 1.0),
        ("granite-rapids", 614.4e9, (DMA_READS, DMA_WRITES), 1.0),
    ],
)
def test_shares_of_the_memory_do_not_carry_over_to_another_generation(
    cpu: str, rate: float, shares: tuple[float, float], weight: float
) -> None:
    text = f"""
lanewise: 1
system: xeon
devices:
  cpu0: {{cpu: {cpu}}}
  "gpu[0-4]": {{gpu: h200-sxm}}
links:
  - {{from: cpu0, to: "gpu[0-4]", pcie: gen5 x16}}
"""
    system = read_system(text, "xeon.yaml")
    prediction = lanewise.predict(system, "host0<->gpu[0-4]")
    reads, writes = shares
    assert prediction.total == pytest.approx((1 + weight) * rate / (1 / reads + weight / writes))
    assert prediction.rates[0].limit == "memory of cpu0"
