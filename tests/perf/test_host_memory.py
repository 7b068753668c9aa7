"""What devices together get of a host's memory."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.perf.host import DMA_READS, DMA_WRITES
from lanewise.topology.model import System
from lanewise.topology.read import read_system


@pytest.mark.parametrize(
    ("cpu", "total"),
    [
        # Virtual machines on Emerald Rapids were measured, and two Xeon 6700P; the 6900P, which extends the one and is
        # extended by the other, was not.
        ("emerald-rapids", 0.448 * 358.4e9),
        ("granite-rapids-sp", 0.55 * 409.6e9),
        ("granite-rapids", 2 * 614.4e9 / (1 / DMA_READS + 1 / DMA_WRITES)),
    ],
)
def test_shares_of_the_memory_do_not_carry_over_to_another_generation(cpu: str, total: float) -> None:
    prediction = lanewise.predict(_five_gpus(cpu), "host0<->gpu[0-4]")
    assert prediction.total == pytest.approx(total)
    assert prediction.rates[0].limit == "memory of cpu0"


def test_a_memory_whose_mix_was_measured_passes_as_much_of_any() -> None:
    # Four H200 of one machine: 162.8 GB/s of reads, 162.0 and 162.3 of two mixes, 137.4 of writes. Medians of five.
    system, memory = _five_gpus("emerald-rapids"), 358.4e9
    for flows in ("host0<->gpu[0-3]", "host0->gpu[0-3], gpu0->host0", "host0<->gpu[0-2], gpu3->host0"):
        assert lanewise.predict(system, flows).total == pytest.approx(0.448 * memory)
    writes = lanewise.predict(system, "gpu[0-3]->host0")
    assert writes.total == pytest.approx(0.369 * memory)
    assert writes.rates[0].limit == "memory of cpu0 (writes)"
    assert "memory.dma_writes" in writes.rates[0].rests_on[0]
    assert lanewise.predict(system, "host0->gpu[0-3]").total == pytest.approx(0.448 * memory)


@pytest.mark.parametrize(("cpu", "nodes", "share"), [
    ("genoa", 4, (0.958, 0.881)),  # reads of a node of an EPYC 9754, writes as of a Milan
    ("genoa", 1, (DMA_READS, DMA_WRITES)),
    ("sapphire-rapids", 4, (DMA_READS, DMA_WRITES)),  # nodes of another maker say nothing of it
])  # fmt: skip
def test_devices_get_more_of_one_node_of_an_epyc_than_of_a_whole_socket(
    cpu: str, nodes: int, share: tuple[float, float]
) -> None:
    memory = {"genoa": 460.8e9, "sapphire-rapids": 307.2e9}[cpu] / nodes
    numa = f", numa_nodes: {nodes}" if nodes > 1 else ""
    text = f"""
lanewise: 1
system: node
devices:
  cpu0: {{cpu: {cpu}{numa}}}
  "gpu[0-4]": {{gpu: h200-sxm, numa: 0}}
links:
  - {{from: cpu0, to: "gpu[0-4]", pcie: gen5 x16}}
"""
    prediction = lanewise.predict(read_system(text, "node.yaml"), "host0<->gpu[0-4]")
    assert prediction.total == pytest.approx(2 * memory / (1 / share[0] + 1 / share[1]))


@pytest.mark.parametrize(("without", "shares"), [
    ("none", ((0.947 + 0.958) / 2, 0.881)), ("derecho-a100", (0.958, 0.958 * 0.77 / 0.83)),
])
def test_copies_through_host_memory_get_less_of_a_numa_node_than_copies_to_it(
    without: str, shares: tuple[float, float]
) -> None:
    # Four A100 read 48.5 and write 45.1 of a node's 51.2 GB/s, an RTX 5090 reads 36.8 of 38.4. Writes that
    # nobody measured get of reads what those of copies through host memory do: 0.77 of 0.83.
    text = """
lanewise: 1
system: node
devices: {cpu0: {cpu: rome, numa_nodes: 4}, "gpu[0-3]": {gpu: a10, numa: 0}}
links: [{from: cpu0, to: "gpu[0-3]", pcie: gen4 x16}]
"""
    system = read_system(text, "n.yaml", catalog=builtin().without_machine(without))
    reads = lanewise.predict(system, "host0->gpu[0-3]")
    assert reads.total == pytest.approx(shares[0] * 51.2e9)
    assert lanewise.predict(system, "gpu[0-3]->host0").total == pytest.approx(shares[1] * 51.2e9)
    staged = lanewise.predict(system, "gpu0->gpu1, gpu2->gpu3", p2p=False)
    assert staged.total == pytest.approx(51.2e9 / (1 / 0.83 + 1 / 0.765))
    assert reads.rates[0].limit == staged.rates[0].limit == "memory of cpu0, NUMA node 0"
    assert f"of which devices read {shares[0]:.2g}" in reads.rates[0].rests_on[0]


def _five_gpus(cpu: str) -> System:
    text = f"""
lanewise: 1
system: xeon
devices:
  cpu0: {{cpu: {cpu}}}
  "gpu[0-4]": {{gpu: h200-sxm}}
links:
  - {{from: cpu0, to: "gpu[0-4]", pcie: gen5 x16}}
"""
    return read_system(text, "xeon.yaml")


GPUS = {f"gpu{number}" for number in range(4)}


def test_a_full_numa_node_of_a_milan_prefers_writes_and_nobody_knows_it_of_a_rome() -> None:
    # Four A100 at one node of an EPYC 7763: 33.7 to it and 13.7 GB/s from it; far memory of Rome 1.92 and 1.97.
    text = """
lanewise: 1
system: node
devices: {{cpu0: {{cpu: {cpu}, numa_nodes: 4}}, "gpu[0-3]": {{gpu: a100-sxm-40gb, numa: 0}}}}
links: [{{from: cpu0, to: "gpu[0-3]", pcie: gen4 x16}}]
"""
    ratios, ranges = [], []
    for cpu in ("milan", "rome"):
        rates = lanewise.predict(read_system(text.format(cpu=cpu), "n.yaml"), "host0:0<->gpu[0-3]").rates
        reads, writes = (next(each for each in rates if (each.flow.dst in GPUS) is into) for into in (True, False))
        ratios.append(writes.rate / reads.rate)
        ranges.append((reads.rate / reads.low, writes.high / writes.rate))
    assert ratios == [pytest.approx(1.97), pytest.approx(1)]
    assert all(unknown > known for unknown, known in zip(ranges[1], ranges[0], strict=True))


def test_writes_to_pages_at_both_sockets_in_turn_may_wait_for_each_other() -> None:
    # A100 on two EPYC, numactl --interleave=all: 16.4 and 18.1 of 23.2 and 26.2 GB/s, reads as fast as from one socket.
    text = """
lanewise: 1
system: two
devices: {"cpu[0-1]": {cpu: rome}, gpu0: {gpu: a100-sxm-40gb}}
links: [{from: cpu0, to: cpu1, socket: 3}, {from: cpu0, to: gpu0, pcie: gen4 x16}]
"""
    system = read_system(text, "two.yaml")
    own, spread, reads, read = (
        lanewise.predict(system, flows)
        for flows in ("gpu0->host0:0", "gpu0->host0:0, gpu0->host0:1", "host0:0->gpu0, host0:1->gpu0", "host0:0->gpu0")
    )
    assert spread.total == pytest.approx(own.total)
    assert spread.total_low < 0.7 * own.total_low
    assert "numactl --interleave" in spread.rates[0].doubt
    assert reads.total_low > 0.85 * read.total_low
