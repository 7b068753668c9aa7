"""What a PCIe card that is no GPU (an FPGA, a capture card) gets of its link, where the link is stated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.cause import speed
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.named.links import stated_links
from lanewise.checking.references.parts import Reference
from lanewise.results.observation import Observation

# An Alveo U200 is written at 0.59 and read at 0.76 of the wires of Gen3 x16 (Xilinx/Vitis-Tutorials#281), and an
# FPGA that got 0.35 of them was slow (Xilinx/dma_ip_drivers#293).
_FINE, _SLOW = 0.55, 0.4
_MOST = (6, 16)


def of_card(row: Observation) -> bool:
    """Whether a copy is between host memory and a device that nobody calls a GPU: such a card may have one lane."""
    return row.path in ("host to device", "device to host") and re.search(r"\b(gpu|cuda|dev|acc)\w*", row.flow) is None


def card_copy(row: Observation, slots: Sequence[tuple[int, int]]) -> Iterator[Reference]:
    """Its link as the row or the text states it; without one only what no slot carries is impossible."""
    for gen, lanes in [*stated_links(row), *slots][:1]:
        wires = raw_rate(gen, lanes)
        limit = f"{speed(gen, lanes)} of the card"
        yield Reference("parts", 0.85 * wires, _FINE * wires, _SLOW * wires, wires, limit, "as stated")
        return
    wires = raw_rate(*_MOST)
    limit = f"{speed(*_MOST)}, the most of any slot"
    yield Reference("parts", wires, 0.0, 0.0, wires, limit, "the PCIe specification", own=False)
