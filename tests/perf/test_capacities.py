"""Capacities of root complexes, sockets and memory on small machines, each mechanism against its closed form."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lanewise
from lanewise.catalog import Figure, builtin
from lanewise.perf.best_copy import best_read
from lanewise.perf.concurrent_flows import LINK_SHARED
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def machine(devices: str, links: str) -> System:
    """A machine of these devices and links, each line as a description has it."""
    indented = ["".join(f"  {mark}{line.strip()}\n" for line in lines.strip().splitlines())
                for mark, lines in (("", devices), ("- ", links))]  # fmt: skip
    return read_system(f"lanewise: 1\nsystem: m\ndevices:\n{indented[0]}links:\n{indented[1]}", "m.yaml")


def total(system: System, flows: str, p2p: bool = True) -> float:
    return lanewise.predict(system, flows, p2p).total / 1e9


@pytest.mark.parametrize("cpu", ["rome", "milan", "genoa", "turin", "threadripper-pro-7000"])
def test_peer_writes_through_an_amd_root_complex_run_at_the_rate_of_the_gpu(cpu: str) -> None:
    system = machine(
        f"cpu0: {{cpu: {cpu}}}\n'gpu[0-1]': {{gpu: rtx-6000-ada}}", "{from: cpu0, to: 'gpu[0-1]', pcie: gen4 x16}"
    )
    prediction = lanewise.predict(system, "gpu0->gpu1")
    assert prediction.total == builtin().get("rtx-6000-ada").number("engine.p2p_write.gen4")
    assert prediction.rates[0].limit == "copy engine (peer write) of gpu0"


def test_planning_figures_have_a_key_of_their_own() -> None:
    figures = ((key, figure) for name in builtin().names("cpu") for key, figure in builtin().get(name).figures.items())
    planned = {key for key, figure in figures if figure.known and "planning" in figure.source}
    assert planned <= {"intersocket.planning", "peer.payload"}


def sockets(cpu: str, gpu: str, gen: int = 4, links: int = 3) -> System:
    """Two sockets, each with two root ports of a switch with two GPUs: gpu0 to gpu3, gpu4 to gpu7."""
    return machine(
        f"'cpu[0-1]': {{cpu: {cpu}}}\n'sw[0-3]': {{switch: pex89144}}\n'gpu[0-7]': {{gpu: {gpu}}}",
        f"""{{from: cpu0, to: cpu1, socket: {links}}}
        {{from: cpu0, to: 'sw[0-1]', pcie: gen{gen} x16}}
        {{from: cpu1, to: 'sw[2-3]', pcie: gen{gen} x16}}
        {{from: sw0, to: 'gpu[0-1]', pcie: gen{gen} x16}}
        {{from: sw1, to: 'gpu[2-3]', pcie: gen{gen} x16}}
        {{from: sw2, to: 'gpu[4-5]', pcie: gen{gen} x16}}
        {{from: sw3, to: 'gpu[6-7]', pcie: gen{gen} x16}}""",
    )


def test_traffic_of_one_root_port_stays_on_one_xgmi_link() -> None:
    # Rome: 22 of 32 GB/s were measured. Two flows of one port share it, flows of two ports have one each.
    system = sockets("rome", "rtx-6000-ada")
    link = builtin().get("rome").number("intersocket.link_rate") or 0.0
    assert total(system, "gpu0->gpu4") == pytest.approx(link / 1e9)
    assert total(sockets("rome-or-milan", "rtx-6000-ada"), "gpu0->gpu4") == pytest.approx(link / 1e9)
    # Milan's carry what Rome's do (22 GB/s on one host), as 18 GT/s are a setting, and no narrower an interval.
    milan, rome = (lanewise.predict(sockets(cpu, "rtx-6000-ada"), "gpu0->gpu4").rates[0] for cpu in ("milan", "rome"))
    assert milan.rate == pytest.approx(link, rel=0.02)
    assert milan.low / milan.rate == pytest.approx(rome.low / rome.rate, rel=0.01)
    assert total(system, "gpu0->gpu4, gpu1->gpu5") == pytest.approx(link / 1e9)
    assert total(system, "gpu0->gpu4, gpu2->gpu6") == pytest.approx(2 * link / 1e9)
    # The answers to what is written travel against the data of the other direction (41.6 of 2 x 22.2 measured).
    assert total(system, "gpu0<->gpu4") == pytest.approx(2 * link * 0.95 / 1e9)
    # Of the other socket's memory a port gets 0.70 of a link's raw rate; two ports get twice that.
    assert total(system, "host0:1->gpu0") == pytest.approx(0.7 * 32)
    assert total(system, "host0:1->gpu[0,2]") == pytest.approx(2 * 0.7 * 32)
    unnamed = sockets("null", "rtx-6000-ada")
    assert total(unnamed, "host0:1<->gpu0") == pytest.approx(total(unnamed, "host0:0<->gpu0"))


def test_root_ports_take_the_xgmi_links_in_turn() -> None:
    # EPYC 9124: 42 GB/s for one pair; four pairs from four ports, all both ways at once, 19.3 each (p2pmark).
    system = machine(
        "'cpu[0-1]': {cpu: genoa}\n'gpu[0-7]': {gpu: rtx-5090-p2p}",
        """{from: cpu0, to: cpu1, socket: "?"}
        {from: cpu0, to: 'gpu[0-3]', pcie: gen5 x16}
        {from: cpu1, to: 'gpu[4-7]', pcie: gen5 x16}""",
    )
    link = (builtin().get("genoa").number("intersocket.link_rate") or 0.0) / 1e9
    prediction = lanewise.predict(system, "gpu0->gpu4, gpu1->gpu5, gpu2->gpu6, gpu3->gpu7")
    # Three of its four links, as one of them usually gives its lanes to PCIe: the fourth port is on the first one's.
    assert [rate.rate / 1e9 for rate in prediction.rates] == pytest.approx([link / 2, link, link, link / 2])


def test_memory_of_the_far_socket_has_one_rate_for_both_directions_where_it_was_measured() -> None:
    # Two MI100 on Milan: 25 GB/s from far memory, and 24.9 and 26 both ways in all (near memory 28 and 52).
    system = machine(
        "'cpu[0-1]': {cpu: milan}\n'gpu[0-1]': {gpu: mi100}",
        """{from: cpu0, to: cpu1, socket: 3}
        {from: 'cpu[0-1]', to: 'gpu[0-1]', pairs: true, pcie: gen4 x16}""",
    )
    assert total(system, "cpu1->gpu0") == pytest.approx(25.4)
    assert total(system, "cpu1<->gpu0") == pytest.approx(25.4)
    assert total(system, "cpu1->gpu0, cpu0->gpu1") == pytest.approx(50.4, abs=0.5)
    assert total(system, "cpu0<->gpu0") > 50


# Links of MI210, MI250 and MI250X were measured; an MI100 has their share of the raw rate, as lanes have like rates.
@pytest.mark.parametrize(("gpu", "one_way"), [("mi300x", 48.635), ("mi210", 42.2), ("mi100", 0.844 * 46)])
def test_infinity_fabric_carries_a_share_of_its_raw_rate_less_answers(gpu: str, one_way: float) -> None:
    system = machine(
        f"cpu0: {{cpu: null}}\n'gpu[0-2]': {{gpu: {gpu}}}",
        """{from: cpu0, to: 'gpu[0-2]', pcie: gen4 x16}
        {from: gpu0, to: gpu1, nvlink: 1}
        {from: gpu0, to: gpu2, nvlink: 2}""",
    )
    assert total(system, "gpu0->gpu1") == pytest.approx(one_way, rel=1e-3)
    assert total(system, "gpu0<->gpu1") == pytest.approx(2 * 0.95 * one_way, rel=0.01)
    # One DMA engine fills a link and a quarter; a kernel would fill both, and the interval says so.
    two = lanewise.predict(system, "gpu0->gpu2").rates[0]
    assert two.rate / 1e9 == pytest.approx(1.25 * one_way, rel=1e-3)
    assert two.high / 1e9 >= 2 * one_way
    assert "DMA engine" in two.doubt


def test_staged_copies_of_both_directions_use_the_memory_of_one_numa_node() -> None:
    # At NPS4 both directions move no more than one: RTX 4090 18.9 and 20.3 GB/s, A40 19.5 both ways.
    system = machine(
        "'cpu[0-1]': {cpu: rome, numa_nodes: 4}\n'gpu[0-3]': {gpu: a10, numa: +0}\n'gpu[4-7]': {gpu: a10, numa: +4}",
        """{from: cpu0, to: cpu1, socket: 3}
        {from: cpu0, to: 'gpu[0-3]', pcie: gen4 x16}
        {from: cpu1, to: 'gpu[4-7]', pcie: gen4 x16}""",
    )
    reads, writes = (builtin().get("rome").number(f"memory.dma_{way}") or 0.0 for way in ("reads", "writes"))
    node = 204.8 / 4 / (1 / reads + 1 / writes)
    for flows in ("gpu0->gpu1", "gpu0<->gpu1", "gpu1<->gpu0"):
        assert total(system, flows, p2p=False) == pytest.approx(node), flows
    # Of the other socket's node gpu4 gets no less: one xGMI link carries more, half a gap taken off; 20.2 measured.
    assert total(system, "gpu0<->gpu4", p2p=False) == pytest.approx(node, rel=0.001)


def test_all_traffic_of_a_direction_shares_the_inter_socket_links() -> None:
    # Two xGMI links under two root ports that read 26.8 GB/s each, one with a second port's traffic beside it.
    link = builtin().get("rome").number("intersocket.link_rate") or 0.0
    shared = sockets("rome", "rtx-6000-ada", links=1)
    assert total(shared, "host0:1->gpu0, host0:1->gpu2") == pytest.approx(link / 1e9)


def test_several_gpus_get_of_upi_what_other_cpus_show() -> None:
    # UPI interleaves: a port may have all of it. CPUs show 9.3 of 22.4, 13.8 of 32 and 18 of 48 GB/s a link.
    upi = sockets("skylake-sp", "t4", gen=3, links=2)
    assert total(upi, "host0:1->gpu0, host0:1->gpu2") == pytest.approx(2 * 20.8 * 9.3 / 22.4)
    assert total(upi, "host0:1->gpu0") == pytest.approx(builtin().get("t4").number("engine.h2d.gen3") / 1e9)  # type: ignore[operator]


@pytest.mark.parametrize(("left_out", "cpu", "share"), [
    ("", "ice-lake-sp", 9.3 / 22.4),
    ("h100nvl-6346", "ice-lake-sp", (18 / 48 + 13.8 / 32) / 2),
    ("b300-xeon-6767p", "granite-rapids-sp", (9.3 / 22.4 + 13.8 / 32) / 2),
])  # fmt: skip
def test_a_cpu_whose_upi_was_not_measured_has_the_share_of_those_that_were(
    left_out: str, cpu: str, share: float
) -> None:
    system = replace(sockets(cpu, "a100-pcie-80gb", gen=4, links=1), catalog=builtin().without_machine(left_out))
    raw = builtin().get(cpu).number("intersocket.raw") or 0.0
    assert total(system, "host0:1->gpu0, host0:1->gpu2") == pytest.approx(share * raw / 1e9)


def test_peers_that_nvlink_joins_to_their_cpus_cross_the_sockets_as_other_peers_do() -> None:
    text = """lanewise: 1
system: s
devices:
  "cpu[0-1]": {cpu: power9}
  "gpu[0-1]": {gpu: v100-sxm2}
links:
  - {from: cpu0, to: cpu1, socket: auto}
  - {from: "cpu[0-1]", to: "gpu[0-1]", pairs: true, nvlink: 3}
policies: {peers: system}
"""
    system = read_system(text, "s.yaml")
    peers = lanewise.predict(system, "gpu0->gpu1").rates[0]
    assert peers.rate == builtin().get("power9").number("intersocket.peer_rate")
    assert peers.limit == "peer writes between the sockets cpu0->cpu1"
    far = lanewise.predict(system, "cpu1->gpu0").rates[0]  # what memory sends is no peer traffic
    assert far.rate > peers.rate


def test_planning_figures_limit_peers_across_intel_sockets_and_nothing_else() -> None:
    system = sockets("sapphire-rapids", "h100-sxm", gen=5, links=4)
    peers = lanewise.predict(system, "gpu0->gpu4").rates[0]
    assert peers.rate == builtin().get("sapphire-rapids").number("intersocket.planning")
    assert "planning" in peers.doubt
    far = lanewise.predict(system, "gpu0->gpu4", p2p=False).rates[0]
    assert far.rate > 1.2 * peers.rate
    assert "planning" not in " ".join(far.rests_on)


def gpus_on(cpu: str, count: int, numa: str = "0", numa_nodes: int = 1) -> System:
    return machine(
        f"cpu0: {{cpu: {cpu}, numa_nodes: {numa_nodes}}}\n'gpu[0-{count - 1}]': {{gpu: h200-sxm, numa: {numa}}}",
        f"{{from: cpu0, to: 'gpu[0-{count - 1}]', pcie: gen5 x16}}",
    )


MEMORY = 307.2  # GB/s of one Sapphire Rapids socket


def test_reads_and_writes_of_devices_share_the_memory_of_a_socket() -> None:
    # reads / R + writes / W = 1; max-min gives both the same rate.
    reads, writes = 0.68 * MEMORY, 0.54 * MEMORY
    system = gpus_on("sapphire-rapids", 4)
    assert total(system, "host0->gpu[0-3]") == pytest.approx(reads)
    assert total(system, "gpu[0-3]->host0") == pytest.approx(writes)
    both = lanewise.predict(system, "host0->gpu[0-3], gpu[0-3]->host0")
    assert both.total / 1e9 == pytest.approx(2 / (1 / reads + 1 / writes))
    assert {rate.limit for rate in both.rates} == {"memory of cpu0"}


@pytest.mark.parametrize(
    ("count", "flows", "measured"),
    [
        (2, "host0->gpu[0-1], gpu[0-1]->host0", (145, 155, 170)),
        (4, "host0->gpu[0-3], gpu[0-3]->host0", (178, 197)),
        (4, "gpu[0-3]->host0", (145, 149, 160)),
        (4, "host0->gpu[0-3]", (176, 183)),
    ],
)
def test_what_h100_and_h200_hosts_measured_is_within_the_range(
    count: int, flows: str, measured: tuple[float, ...]
) -> None:
    prediction = lanewise.predict(gpus_on("sapphire-rapids", count), flows)
    assert prediction.total_low / 1e9 <= min(measured)
    assert prediction.total_high / 1e9 >= max(measured)


def test_numa_nodes_split_the_memory_of_a_socket() -> None:
    split, whole = gpus_on("sapphire-rapids", 4, "+0", 4), gpus_on("sapphire-rapids", 4)
    assert total(split, "gpu0->host0") == pytest.approx(0.54 * MEMORY / 4)
    assert total(split, "gpu[0-3]->host0") == pytest.approx(total(whole, "gpu[0-3]->host0"))
    unknown = lanewise.predict(gpus_on("sapphire-rapids", 4, "null", 4), "gpu[0-3]->host0")
    assert unknown.total == pytest.approx(total(whole, "gpu[0-3]->host0") * 1e9)
    assert unknown.total_low < 0.54 * MEMORY / 4 * 1e9
    # All into the memory of one node, whichever the GPU is at; a staged copy stays at the node of its source.
    assert total(split, "gpu[0-3]->host0:2") == pytest.approx(0.54 * MEMORY / 4)
    staged = lanewise.predict(split, "gpu0->gpu1", p2p=False)
    numa = {name for name in staged.utilization if "NUMA" in name}
    assert numa == {"memory of cpu0, NUMA node 0", "mesh of cpu0, NUMA nodes 1 and 0"}


@pytest.mark.parametrize(("bridge", "expected"), [("bridge: q0, ", 73.1), ("", 111.5)])
def test_dma_through_one_host_bridge_has_its_capacity(bridge: str, expected: float) -> None:
    system = machine(
        "cpu0: {cpu: threadripper-pro-7000}\n'sw[0-1]': {switch: pex89144}\n'gpu[0-3]': {gpu: rtx-5090-p2p}",
        f"""{{from: cpu0, to: 'sw[0-1]', {bridge}pcie: gen5 x16}}
        {{from: sw0, to: 'gpu[0-1]', pcie: gen5 x16}}
        {{from: sw1, to: 'gpu[2-3]', pcie: gen5 x16}}""",
    )
    assert total(system, "host0->gpu[0-3]") == pytest.approx(expected, rel=1e-3)
    # What enters and leaves by the same bridge turns round in it.
    assert total(system, "gpu0->gpu2, gpu2->gpu0") > 105


def test_a_card_that_reads_a_gpu_at_another_root_port_may_get_less_than_peer_writes() -> None:
    # Two MI300X get 0.70 of what a Xeon of this generation passes of writes, with requests of 128 B.
    system = machine(
        "cpu0: {cpu: sapphire-rapids}\ngpu0: {gpu: mi300x}\nnic0: {nic: connectx-7-ndr}",
        "{from: cpu0, to: [gpu0, nic0], pcie: gen5 x16}",
    )
    (read,), (write,) = (lanewise.predict(system, flows).rates for flows in ("gpu0->nic0", "nic0->gpu0"))
    assert read.low <= 0.7 * read.rate < 0.8 * write.rate < write.low
    assert "reads may get less" in read.doubt


@pytest.mark.parametrize("cards", ["gen4", "gen3"])
def test_a_host_bridge_that_nobody_measured_passes_what_those_of_other_epyc_do(cards: str) -> None:
    shares = [20.3 / 31.5, 36 / 63, 73.1 / 126]  # of two x16 ports: Naples, Rome, Storm Peak
    cpu = builtin().get("milan").with_figure("cpu.host_bridge_rate", Figure(None, "B/s", "this test"))
    text = (
        "lanewise: 1\nsystem: s\ndevices: {cpu0: {cpu: milan}, 'gpu[0-1]': {gpu: l40s}}\n"
        f"links: [{{from: cpu0, to: 'gpu[0-1]', pcie: {cards} x16, bridge: q0}}]\n"
    )
    system = read_system(text, "s.yaml", {}, builtin().with_part(cpu))
    alone = total(system, "host0->gpu0")
    # Its clock does not follow the cards' generation.
    assert total(system, "host0->gpu[0-1]") == pytest.approx(min(sorted(shares)[1] * 63, 2 * alone), rel=2e-3)
    ports = lanewise.predict(system, "host0->gpu[0-1]").total_high
    assert ports > 1.9e9 * alone  # its ports may still be the limit


def test_the_best_read_of_a_root_port_is_one_of_a_gpu_of_the_same_maker() -> None:
    def best(gpu: str) -> float:
        text = (
            f"lanewise: 1\nsystem: s\ndevices: {{cpu0: {{cpu: rome}}, gpu0: {{gpu: {gpu}}}}}\n"
            "links: [{from: cpu0, to: gpu0, pcie: gen4 x16}]\n"
        )
        rate = best_read(read_system(text, "s.yaml"), 4)
        assert rate is not None
        return rate[0]

    gpus = [part for part in builtin().parts.values() if part.kind == "gpu"]
    nvidia, amd = (
        max(part.number("engine.h2d.gen4") or 0.0 for part in gpus if part.title.startswith(maker))
        for maker in ("NVIDIA", "AMD")
    )
    assert best("a30") == nvidia < amd == best("mi100")
    assert best("null") == max(nvidia, amd)
    # A Gen5 GPU fills a Gen4 link as it fills its own.
    assert best("rtx-5070") == max(part.number("engine.h2d.gen5") or 0.0 for part in gpus) / 2


def test_gpus_of_a_maker_that_nobody_measured_get_through_a_root_port_what_one_of_them_gets() -> None:
    # Two Arc Pro B70 that share four Gen4 lanes read 6.44 GB/s together, one alone 6.47; AMD's best would be 7.1.
    system = machine(
        "cpu0: {cpu: null}\nsw0: {switch: null}\n'gpu[0-1]': {gpu: arc-pro-b70}",
        """{from: cpu0, to: sw0, pcie: gen4 x4}
        {from: sw0, to: 'gpu[0-1]', pcie: gen4 x4}""",
    )
    system = replace(system, catalog=builtin().without_machine("b70-pex88096"))  # which measured a B70 since
    assert total(system, "host0->gpu[0-1]") == pytest.approx(total(system, "host0->gpu0"), rel=1e-6)


@pytest.mark.parametrize(("cpu", "gen", "share"), [("null", 3, 0.6437), ("null", 4, 1), ("rome", 3, 1)])
def test_a_cpu_that_is_not_named_is_a_xeon_between_gen3_slots(cpu: str, gen: int, share: float) -> None:
    system = machine(
        f"cpu0: {{cpu: {cpu}}}\n'gpu[0-1]': {{gpu: a100-pcie-80gb}}",
        f"{{from: cpu0, to: 'gpu[0-1]', pcie: gen{gen} x16}}",
    )
    limit = "peer traffic through the root complex of cpu0 at rp1" if share < 1 else "copy engine (peer write) of gpu0"
    rate = lanewise.predict(system, "gpu0->gpu1").rates[0]
    assert rate.limit == limit
    # The middle of 10.0 and 10.28 GB/s, each of which many parts have from the one CPU that was measured.
    assert share == 1 or rate.rate == pytest.approx(share * 15.754e9, rel=0.002)


def pair(gpu: str, gen: int = 4) -> System:
    return machine(
        f"cpu0: {{cpu: rome}}\n'gpu[0-1]': {{gpu: {gpu}}}", f"{{from: cpu0, to: 'gpu[0-1]', pcie: gen{gen} x16}}"
    )


ACKS = 8 / 280  # of the bytes of the other direction


def test_acks_and_credits_of_the_other_direction_take_their_share_of_an_engine() -> None:
    # Each way X - c X; beside a slow copy y the fast one keeps X - c y.
    system, one_way = pair("rtx-6000-ada"), 26.48
    assert total(system, "gpu0<->gpu1") == pytest.approx(2 * one_way * (1 - ACKS))
    slow = lanewise.predict(system, "gpu0->gpu1, gpu1->gpu0 cap 4 GB/s").rates[0]
    assert slow.rate / 1e9 == pytest.approx(one_way - ACKS * 4)


def test_host_reads_also_take_their_requests_of_the_engine_that_writes() -> None:
    # H2D of x keeps x - 2 * 8 / 280 * y beside D2H of y: a write's credits come back beside its Ack. D2H keeps
    # y - (8 + 256 * 24 / 512) / 280 * x.
    requests = (8 + 256 * 24 / 512) / 280
    system = machine("cpu0: {cpu: genoa}\ngpu0: {gpu: h200-sxm}", "{from: cpu0, to: gpu0, pcie: gen5 x16}")
    into, out = total(system, "host0->gpu0"), total(system, "gpu0->host0")
    both = lanewise.predict(system, "host0<->gpu0").rates
    expected = [into - 2 * ACKS * out, out - requests * into]
    assert [rate.rate / 1e9 for rate in both] == pytest.approx(expected)


def test_older_engines_of_nvidia_lose_what_those_of_their_generation_do() -> None:
    # L4: 45.2 of 51.4 GB/s; T4 22.7 of 25.5 (Gen3). A card of Gen4 that nobody measured loses as much each way.
    system, lost = pair("rtx-6000-ada"), 1 - 45.2 / 51.4
    both = lanewise.predict(system, "host0<->gpu0").rates
    assert [rate.rate / 1e9 for rate in both] == pytest.approx([26.8 - lost * 26.3, 26.3 - lost * 26.8])


def test_acks_of_small_packets_take_more_of_a_tunnel() -> None:
    # Thunderbolt carries packets of 128 B: an RTX 5090 behind it reads 2.47 of 2.8 GB/s beside its writes.
    rates = {}
    for payload in (128, 256):
        system = machine(
            "cpu0: {cpu: null}\ntb: {switch: null}\ngpu0: {gpu: rtx-5090}",
            f"{{from: cpu0, to: tb, pcie: gen3 x4, max_payload: {payload} B}}\n        "
            "{from: tb, to: gpu0, pcie: gen4 x4}",
        )
        one, both = (lanewise.predict(system, flows).rates[0].rate for flows in ("host0->gpu0", "host0<->gpu0"))
        rates[payload] = both / one
    assert rates[128] < rates[256] < 1
    assert rates[128] == pytest.approx(2.47 / 2.8, abs=0.03)


def test_a_measured_duplex_rate_stands_for_the_computed_one() -> None:
    # MI50: 25.911 GB/s both ways, half of it each way, of 13.77 and 14.28.
    system = machine("cpu0: {cpu: skylake-sp}\ngpu0: {gpu: mi50}", "{from: cpu0, to: gpu0, pcie: gen3 x16}")
    assert total(system, "host0->gpu0, gpu0->host0") == pytest.approx(25.911, rel=1e-3)


def test_writes_to_a_memory_slow_reads_of_other_gpus_by_what_its_host_was_measured_to_lose() -> None:
    # Emerald Rapids: 43 to 55 of 55 GB/s read beside 50 to 55 GB/s written, by one GPU or two that share no link.
    lost = builtin().get("emerald-rapids").number("memory.read_displaced") or 0.0
    assert lost == pytest.approx(0.092)
    reads, writes = 55.249, 55.19
    other = lanewise.predict(gpus_on("emerald-rapids", 2), "host0->gpu0, gpu1->host0").rates[0]
    assert other.rate / 1e9 == pytest.approx(reads - lost * writes, rel=1e-3)
    assert other.low / 1e9 < 43.3
    assert other.high / 1e9 > 54.8
    own = lanewise.predict(gpus_on("emerald-rapids", 1), "host0->gpu0, gpu0->host0").rates[0]
    assert own.rate / 1e9 == pytest.approx(reads - (lost + 16 / 280) * writes, rel=1e-3)


def test_writes_to_one_numa_node_do_not_slow_reads_of_another() -> None:
    reads = []
    for numa in (0, 1):
        system = machine(
            f"cpu0: {{cpu: emerald-rapids, numa_nodes: 2}}\ngpu0: {{gpu: h200-sxm, numa: 0}}\n"
            f"gpu1: {{gpu: h200-sxm, numa: {numa}}}",
            "{from: cpu0, to: 'gpu[0-1]', pcie: gen5 x16}",
        )
        reads.append(lanewise.predict(system, "host0->gpu0, gpu1->host0").rates[0].rate)
    # Of one node, half.
    assert reads == [pytest.approx(0.448 * 358.4e9 / 2 / (1 + 1.48)), pytest.approx(55.249e9, rel=1e-5)]


def test_what_one_host_loses_is_not_taken_of_another() -> None:
    # H800 and H200 on hosts that are not named read 52.8 and 52.4 GB/s beside 50.5 and 50.7 to the host.
    rates = lanewise.predict(gpus_on("sapphire-rapids", 1), "host0->gpu0, gpu0->host0").rates
    assert rates[0].rate == pytest.approx(52.6e9, rel=0.01)
    assert rates[1].rate == pytest.approx(51.1e9, rel=0.02)


def a100_at(cpu: str) -> System:
    return machine(f"cpu0: {{cpu: {cpu}}}\ngpu0: {{gpu: a100-pcie-80gb}}", "{from: cpu0, to: gpu0, pcie: gen4 x16}")


def test_reads_of_an_a100_starve_behind_its_writes_from_the_slowest_host_measured_to_the_fastest() -> None:
    # 8.9, 11, 12.5 and 18.7 GB/s were measured while 24 go the other way; a host that is left out does not count.
    # At EPYC 13.1, 19.2, 20.9 and 24.7 beside 20.3 to 24.7; the interval still holds what other hosts showed.
    reads, writes = lanewise.predict(a100_at("ice-lake-sp"), "host0<->gpu0").rates
    assert reads.rate < 0.7 * writes.rate
    assert reads.low < 8.88e9 < 18.7e9 < reads.high
    reads, writes = lanewise.predict(a100_at("milan"), "host0<->gpu0").rates
    assert (reads.rate, writes.rate) == (pytest.approx(20.045e9), pytest.approx(20.75e9))
    assert reads.low < 8.88e9 < 23e9 < reads.high
    without = builtin().without_machine("a100-nvbandwidth-readme").get("a100-pcie-80gb")
    assert without.number("engine.duplex_h2d.gen4") == 11e9


def test_host_copies_of_an_amd_card_both_ways_reach_the_share_of_other_amd_cards_of_its_generation() -> None:
    # MI100 51.8 of 56.9 GB/s, RX 7900 XTX 48.2 of 57.4, MI210 45 of 55.6, MI50 51.95 of the 56.9 that are typical: a
    # W7900 without figures gets the median of the shares.
    system = machine("cpu0: {cpu: genoa}\ngpu0: {gpu: radeon-pro-w7900}", "{from: cpu0, to: gpu0, pcie: gen4 x16}")
    share = (51.8 / (28.35 + 28.53) + 48.2 / (28.41 + 29.01)) / 2  # the two in the middle
    alone = total(system, "host0->gpu0") + total(system, "gpu0->host0")
    assert total(system, "host0<->gpu0") == pytest.approx(share * alone, rel=0.01)


def test_acks_against_the_data_of_a_full_link() -> None:
    # Two GPUs each way over one uplink: wire bytes 280/256 of the data, and 8 for every 280 of the other direction.
    link = 63.015 * 0.983 / (280 / 256) * (1 - ACKS)
    system = machine(
        "cpu0: {cpu: genoa}\n'sw[0-1]': {switch: pex89144}\n'gpu[0-3]': {gpu: rtx-5090-p2p}",
        """{from: cpu0, to: 'sw[0-1]', pcie: gen5 x16}
        {from: sw0, to: 'gpu[0-1]', pcie: gen5 x16}
        {from: sw1, to: 'gpu[2-3]', pcie: gen5 x16}""",
    )
    both = total(system, "gpu0->gpu2, gpu1->gpu3, gpu2->gpu0, gpu3->gpu1")
    assert both == pytest.approx(2 * LINK_SHARED * link, rel=1e-3)


def test_the_requests_of_a_read_pass_a_link_that_others_fill_with_data() -> None:
    # Four GPUs behind one uplink, three write to the host and one reads from it: requests of 24 B for each 512 B.
    system = machine(
        "cpu0: {cpu: genoa}\nsw0: {switch: pex89144}\n'gpu[0-3]': {gpu: rtx-5090}",
        """{from: cpu0, to: sw0, pcie: gen5 x16}
        {from: sw0, to: 'gpu[0-3]', pcie: gen5 x16}""",
    )
    flows = "gpu[1-3]->host0, host0->gpu0"
    read = lanewise.predict(system, flows).rates[-1].rate / 1e9
    alone = total(system, "host0->gpu0")
    assert read > 0.9 * alone
    up = 63.015 * 0.983 - 24 / 512 * read - ACKS * read * 276 / 256
    assert total(system, flows) - read == pytest.approx(LINK_SHARED * up / (280 / 256), rel=0.01)


@pytest.mark.parametrize(("gpu", "over", "share"), [
    ("a100-sxm-40gb", "switch", 0.945),  # six hosts: 0.951, 0.946, 0.944, 0.961 of twice one way, 0.753, 0.758
    ("a100-sxm-40gb", "links", 0.9935),  # MeluXina and Vega: 92.8 and 92.7 of 93.4
    ("v100-sxm3", "switch", 0.929),  # a DGX-2: 270.5 of twice 145.57
    ("v100-sxm3", "links", 0.995),
])  # fmt: skip
def test_both_directions_over_the_first_nvswitches_reach_less_than_over_links(
    gpu: str, over: str, share: float
) -> None:
    nvlinks = "{from: 'gpu[0-1]', to: nvs, nvlink: auto}" if over == "switch" else "{from: gpu0, to: gpu1, nvlink: 4}"
    system = machine(
        f"cpu0: {{cpu: rome}}\nnvs: {{nvswitch: null}}\n'gpu[0-1]': {{gpu: {gpu}}}",
        f"{{from: cpu0, to: 'gpu[0-1]', pcie: auto}}\n{nvlinks}",
    )
    one = total(system, "gpu0->gpu1")
    assert total(system, "gpu0<->gpu1") == pytest.approx(2 * one * share, rel=1e-3)


def test_a_card_reads_a_gpu_at_another_socket_slowly_and_writes_to_it_fast() -> None:
    system = machine(
        "'cpu[0-1]': {cpu: rome}\ngpu0: {gpu: a30}\nnic0: {nic: connectx-6-hdr}",
        """{from: cpu0, to: cpu1, socket: 3}
        {from: cpu0, to: gpu0, pcie: gen4 x16}
        {from: cpu1, to: nic0, pcie: gen4 x16}""",
    )
    reads = lanewise.predict(system, "gpu0->nic0").rates[0]
    assert reads.rate == pytest.approx(10.5e9)
    assert reads.low < 10.1e9
    assert reads.high > 11e9
    assert total(system, "nic0->gpu0") == pytest.approx(
        (builtin().get("rome").number("intersocket.link_rate") or 0) / 1e9
    )


def test_acs_redirection_sends_peers_up_the_uplink_and_down_again() -> None:
    # Both flows go up and both come down: each direction of the uplink carries twice the rate of one (measured 50).
    text = """
lanewise: 1
system: acs
devices: {cpu0: {cpu: turin}, sw0: {switch: pex89144}, "gpu[0-1]": {gpu: rtx-5090-p2p}}
links:
  - {from: cpu0, to: sw0, pcie: gen5 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen5 x16}
policies: {acs_redirect: true}
"""
    link = 63.015 * 0.983 / (280 / 256) * (1 - ACKS)
    assert total(read_system(text, "acs.yaml"), "gpu0<->gpu1") == pytest.approx(LINK_SHARED * link, rel=1e-3)
