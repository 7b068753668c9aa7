"""The head of figures typed in, flows without a notation of their own, and values that say more than one figure."""

from __future__ import annotations

import pytest
from bounded import outcome

from lanewise.errors import LanewiseError
from lanewise.readers.tool_results import ImportedResults
from lanewise.readers.typed.figures import read_text
from lanewise.readers.words.machines import _MACHINES, only_machine
from lanewise.results.observation import Observation
from lanewise.results.posted import slot_link

COPY = 'flows: "host0->gpu0", value: 9 GB/s'


def read(head: str, *rows: str) -> ImportedResults:
    """A file with these lines above its rows."""
    text = "".join(f"  - {{{row}}}\n" for row in rows or (COPY,))
    return read_text(f"lanewise-rows: 1\n{head}rows:\n{text}", "figures.yaml")


def row(text: str) -> Observation:
    """The only observation of a row."""
    (observation,) = read("", text).observations
    return observation


@pytest.mark.parametrize(
    ("head", "usual"),
    [
        ("machine: DGX A100\n", "stated: {machine: DGX A100}\n"),
        ("host: a\nOS: Linux\n", "stated: {host: a, OS: Linux}\n"),
        ("cpu: EPYC 7763\niommu: on\n", "stated: {cpu: EPYC 7763, iommu: on}\n"),
        ("machine: {cpu: EPYC 7763, iommu: on}\n", "stated: {cpu: EPYC 7763, iommu: on}\n"),
        ("stated: {gpus: RTX 4090}\n", "gpus: RTX 4090\n"),
        ("GPUs: RTX 4090\n", "gpus: RTX 4090\n"),
        ("accelerator: RTX 4090\n", "gpus: RTX 4090\n"),
        ("gpus: 2x RTX 3090 and RTX 4090\n", "gpus: {gpu0: RTX 3090, gpu1: RTX 3090, gpu2: RTX 4090}\n"),
        ("gpus: {0: RTX 3090, 'gpu[1-2]': RTX 4090}\n", "gpus: {gpu0: RTX 3090, gpu1: RTX 4090, gpu2: RTX 4090}\n"),
        ("gpu0: RTX 3090\ngpu1: RTX 4090\n", "gpus: {gpu0: RTX 3090, gpu1: RTX 4090}\n"),
        ("gpus: 2\ngpu: RTX 4090\n", "gpus: RTX 4090\n"),
        ("gpu: {name: RTX 4090, slot: x8}\n", "gpus: RTX 4090\nslot: x8\n"),
        ("gpus: four RTX 4090, 24 GB\n", "gpus: RTX 4090\n"),
        ("gpus: 2x3090\n", "gpus: RTX 3090\n"),
        ("gpus: dual 3090\n", "gpus: RTX 3090\n"),
        ("env: NCCL_P2P_DISABLE=1\n", "stated: {NCCL_P2P_DISABLE: 1}\n"),
        ("environment: {NCCL_P2P_DISABLE: 1, HOME: a}\n", "stated: {NCCL_P2P_DISABLE: 1, HOME: a}\n"),
        ("iommu: false\n", "stated: {iommu: 'off'}\n"),
        ("pcie: 3.0\n", "stated: {slot: Gen3}\n"),
    ],
)
def test_a_head_in_other_words_states_the_same(head: str, usual: str) -> None:
    one, other = read(head).posted, read(usual).posted
    assert (one.devices, [(each.key, each.value) for each in (*one.statements, *one.unused)]) == (
        other.devices, [(each.key, each.value) for each in (*other.statements, *other.unused)]
    )  # fmt: skip


@pytest.mark.parametrize("place", ["{}\n", "stated: {{{}}}\n"])
@pytest.mark.parametrize(
    "key", ["host memory: pinned", "bytes: 1 GiB", "threads: 4", "host_memory: pinned", "block size: 4k"]
)
def test_what_the_head_says_of_rows_is_theirs_unless_they_say_more(place: str, key: str) -> None:
    own = COPY + ", path: own, host memory: pageable, bytes: 1 MiB, threads: 1"
    assert read(place.format(key), COPY, own).observations == read("", f"{COPY}, {key}", own).observations


def test_peers_ranks_and_drives_are_only_of_the_rows_that_they_can_be_of() -> None:
    rows = (COPY, 'flows: "gpu0->gpu0", value: 900 GB/s', 'flows: "gpu[0-3]", value: 90 GB/s, path: all_reduce')
    copy, memory, ring = read("p2p: off\nranks: 8\nhosts: 2\ndrive: Samsung 990 PRO\n", *rows).observations
    assert "p2p" not in copy.how
    assert [*copy.settings, *memory.settings] == []
    assert memory.path == "GPU memory"
    assert (ring.settings["ranks"], ring.settings["hosts"], ring.how["p2p"]) == (8, 2, "off")
    assert not any("device" in each.how for each in (copy, memory, ring))


@pytest.mark.parametrize("key", ["row: 4", "statd: {cpu: x}", "value: 9 GB/s", 'flows: "host0->gpu0"'])
def test_what_belongs_to_a_row_and_near_misses_are_refused_above_them(key: str) -> None:
    with pytest.raises(LanewiseError) as raised:
        read(f"{key}\n")
    assert raised.value.location is not None


@pytest.mark.parametrize(
    "head",
    [
        "iommu: pt\nstated: {iommu: 'off'}\n",
        "bytes: 1M\nsize: 64M\n",
        "cpu: EPYC 7763\nmachine: {cpu: Xeon 8480}\n",
        "gpu: RTX 3090\ngpus: RTX 4090\n",
        "gpu0: {name: RTX 3090, slot: x8}\n",
    ],
)
def test_a_fact_that_would_be_lost_is_refused_with_its_line(head: str) -> None:
    with pytest.raises(LanewiseError) as raised:
        read(head)
    assert raised.value.location is not None
    assert raised.value.hint


def test_a_fact_said_twice_alike_and_two_words_of_the_program_are_fine() -> None:
    assert read("iommu: pt\nstated: {iommu: pt}\n").posted.stated("iommu")
    (fio,) = read("tool: fio\ntest: randread\n").observations
    assert fio.scenario == "fio randread"


@pytest.mark.parametrize("slots", ["slot: {gpu0: gen4 x16, gpu1: gen4 x8}\n", "slots: [gen4 x16, gen4 x8]\n"])
def test_slots_of_single_gpus_are_those_of_their_rows(slots: str) -> None:
    first, second, both = (f'flows: "{flow}", value: 9 GB/s' for flow in ("host0->gpu0", "gpu1->host0", "gpu0->gpu1"))
    rows = read(slots, first, second, both, f"{first}, slot: x4").observations
    assert [row.how["slot"] for row in rows] == ["Gen4 x16", "Gen4 x8", "Gen4 x8", "x4"]


@pytest.mark.parametrize(
    ("slot", "link"),
    [
        ("4.0 x16", (4, 16)),
        ("PCIe 3.0 4x", (3, 4)),
        ("gen4 \u00d78", (4, 8)),
        ("gen3, 8 lanes", (3, 8)),
        ("gen4x16", (4, 16)),
        ("2x gen4 x8", (4, 8)),
        ("x16, electrically x4", (None, 4)),
    ],
)
def test_spellings_of_a_slot_lose_neither_generation_nor_lanes(slot: str, link: tuple[int | None, int]) -> None:
    found = slot_link(slot)
    assert found is not None
    assert (found.gen, found.lanes) == link


@pytest.mark.parametrize("seed", ["x8 ", "gen4 x16 ", "8x ", "x16, trains ", "ECC ", "12 GB/s, "])
def test_values_of_100_kilobytes_end(seed: str) -> None:
    long = seed * (100_000 // len(seed))
    assert outcome(lambda: len(read(f'slot: "{long}"\n', f'{COPY}, slot: "{long}"').observations)) == "1"


@pytest.mark.parametrize(
    ("flows", "meant"),
    [
        ("0->1", "gpu0->gpu1"),
        ("gpu0 -> 1", "gpu0->gpu1"),
        ("GPU to GPU", "gpu0->gpu1"),
        ("gpu0-1->gpu4-5", "gpu0->gpu4, gpu1->gpu5"),
        ("numa0->numa1", "host0:0->host0:1"),
        ("socket 1->gpu0", "host0:1->gpu0"),
        ("gpu0->gpu0, gpu1->gpu1", "gpu0->gpu0, gpu1->gpu1"),
        ("gpu[0-2]->gpu0", "gpu1->gpu0, gpu2->gpu0, gpu0->gpu0"),
        ("gpu[0-1]->gpu[4-6]", "gpu0->gpu4, gpu0->gpu5, gpu0->gpu6, gpu1->gpu4, gpu1->gpu5, gpu1->gpu6"),
        ("gpu[0-1]->gpu[4-5]", "gpu0->gpu4, gpu1->gpu5"),
        ("gpu{0,4}->host0", "gpu0->host0, gpu4->host0"),
        ("gpu0,4->host0", "gpu0->host0, gpu4->host0"),
        ("NVMe->GPU", "NVMe->gpu0"),
        ("apu0->apu1", "gpu0->gpu1"),
        ("object storage->host0", "object-storage->host0"),
        ("s3://bucket-1/key->host0", "s3->host0"),
    ],
)
def test_flows_as_people_write_them(flows: str, meant: str) -> None:
    assert row(f'flows: "{flows}", value: 9 GB/s').flow == meant


def test_copies_of_nobody_knows_how_many_gpus_are_no_copies_within_one_memory() -> None:
    assert row('flows: all gpus, value: 90 GB/s, path: all_reduce').metric == "bus_bandwidth"
    with pytest.raises(LanewiseError, match="how many GPUs"):
        row("flows: all gpus, value: 12 GB/s")


@pytest.mark.parametrize("flows", ["H2D / D2H", "D2H and H2D", "host to device, device to host"])
def test_both_copies_by_name_have_the_value_each(flows: str) -> None:
    observations = read("", f'flows: "{flows}", value: 25.4-26.8 GB/s').observations
    assert {(each.flow, each.value) for each in observations} == {("host0->gpu0", 26.1e9), ("gpu0->host0", 26.1e9)}
    assert {each.flow: each.path for each in observations} == {
        "host0->gpu0": "host to device", "gpu0->host0": "device to host",
    }  # fmt: skip


@pytest.mark.parametrize("value", ["25 / 27 GB/s", "25 GB/s, 27 GB/s", "25 and 27 GB/s", "25 GB/s & 27000 MB/s"])
@pytest.mark.parametrize(("flows", "first"), [("H2D / D2H", "host0->gpu3"), ("D2H, H2D", "gpu3->host0")])
def test_two_values_of_both_copies_are_of_one_each(flows: str, first: str, value: str) -> None:
    observations = read("", f'flows: "{flows} of gpu 3", value: "{value}"').observations
    assert [each.value for each in observations] == [25e9, 27e9]
    assert [each.flow for each in observations if each.value == 25e9] == [first]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [("195 MB/s, 186 MiB/s", True), ("48761 IOPS, 195 MB/s", True), ("12 GB/s / 96 Gb/s", True),
     ("12 GB/s, 25 GB/s", False), ("1.2 us / 3 us", False)],
)  # fmt: skip
def test_of_two_values_of_one_kind_none_is_dropped(value: str, is_one: bool) -> None:
    if is_one:
        assert row(f'flows: "host0->gpu0", value: "{value}"').value
        return
    with pytest.raises(LanewiseError, match="two values"):
        row(f'flows: "host0->gpu0", value: "{value}"')


def test_machines_by_their_names_are_a_network_and_pairs_are_no_ring() -> None:
    assert row('flows: "dgx01->dgx02", value: 5 Gb/s').path == "network"
    pairs = row('flows: "gpu[0-2]->gpu[0-2]", value: 90 GB/s, path: copies of all pairs')
    assert (pairs.metric, pairs.flow.count("->")) == ("total", 6)
    assert row('flows: "gpu[0-2]->gpu[0-2]", value: 90 GB/s, path: NCCL').metric == "bus_bandwidth"
    assert row('flows: "gpu[0-3]", value: 9 GB/s, path: "all_reduce over two nodes"').settings["hosts"] == 2


def test_a_value_per_gpu_of_a_star_of_gpus_is_the_sum_of_the_one() -> None:
    assert row('flows: "gpu[1-3]->gpu0", value: 175 GB/s per APU').metric == "total"
    assert len(read("", 'flows: "host0->gpu[1-3]", value: 25 GB/s per GPU').observations) == 3


@pytest.mark.parametrize(
    ("value", "meant", "wanted"),
    [
        ("58 % of 63 GB/s", 36.54e9, "63 GB/s"),
        ("36.5 GB/s (58% of 63)", 36.5e9, "63 GB/s"),
        ("36.5 GB/s = 58 %", 36.5e9, None),
        ("6.3 GB/s, 210 us", 6.3e9, None),
        ("less than 3 GB/s", 3e9, None),
        ("3 GB/s or less", 3e9, None),
        ("at least 3 GB/s", 3e9, None),
    ],
)
def test_values_that_say_more_than_one_figure(value: str, meant: float, wanted: str | None) -> None:
    observation = row(f'flows: "host0->gpu0", value: "{value}"')
    assert observation.value == pytest.approx(meant, rel=1e-6)
    assert observation.how.get("expected") == wanted


@pytest.mark.parametrize("value", ["> 900 GB/s", "more than 900 GB/s", "over 900 GB/s"])
def test_more_than_a_figure_is_above_it(value: str) -> None:
    assert 900e9 < (row(f'flows: "gpu0->gpu0", value: "{value}"').value or 0.0) < 900.1e9


@pytest.mark.parametrize(
    ("wish", "meant"),
    [("300-330 GB/s", "300 GB/s"), ("330 can be expected", "330 GB/s"), ("more than 330 GB/s", "330 GB/s")],
)
def test_of_a_range_that_is_wanted_its_least_is_enough(wish: str, meant: str) -> None:
    assert row(f'flows: "host0->gpu0", value: 9 GB/s, expected: {wish}').how["expected"] == meant


@pytest.mark.parametrize(("threads", "count"), [("16K", 16384), ("1M", 2**20), ("1,024", 1024)])
def test_threads_of_a_gpu_are_counted_by_the_thousand(threads: str, count: int) -> None:
    assert row(f'flows: "gpu0->gpu0", value: 243 GB/s, threads: "{threads}"').settings["threads"] == count


@pytest.mark.parametrize(
    ("slot", "how"),
    [
        ("gen5 x16, trains at x8", {"slot": "Gen5 x16", "link under load": "x8"}),
        ("x16 mechanical, runs at x8 electrical", {"slot": "x8"}),
        ("gen4 x16", {"slot": "Gen4 x16"}),
    ],
)
def test_a_slot_and_what_its_link_trains_at_are_two_things(slot: str, how: dict[str, str]) -> None:
    found = row(f'{COPY}, slot: "{slot}"').how
    assert {key: found[key] for key in ("slot", "link under load") if key in found} == how
    stated = read(f'stated: {{slot: "{slot}"}}\n')
    assert stated.observations[0].how.get("link under load") == how.get("link under load")


def test_rows_of_other_gpus_than_the_head_say_so() -> None:
    one, other = read("gpus: RTX 3090\n", COPY, f"{COPY}, gpu: RTX 4090").observations
    assert ("GPU" in one.how, other.how["GPU"]) == (False, "NVIDIA GeForce RTX 4090")


@pytest.mark.parametrize("value", ["strict or off alike", "on and off", "tried off", "both"])
def test_words_that_say_two_things_of_a_fact_state_none(value: str) -> None:
    assert not read(f"stated: {{iommu: {value}}}\n").posted.stated("iommu")


def test_a_line_of_the_head_is_that_of_storage_behind_a_network() -> None:
    over, local = read(
        "line: 100 Gb/s\n", 'flows: "nfs->host0", value: 9 GB/s', 'flows: "nvme0n1->host0", value: 3 GB/s'
    ).observations
    assert (over.how.get("line"), local.how.get("line")) == ("100 Gb/s", None)


def test_a_machine_that_is_known_needs_no_note_and_other_words_do() -> None:
    posted = read("machine: {name: DGX A100, board: own}\n").posted
    assert posted.title("gpu0") == "NVIDIA A100-SXM4-80GB"
    assert [each.key for each in posted.unused] == ["board"]


@pytest.mark.parametrize(("memory", "stated"), [("pinned", ""), ("8 x DDR5-4800", "8 x DDR5-4800")])
def test_memory_at_the_top_is_that_of_copies_or_the_modules(memory: str, stated: str) -> None:
    found = read(f"memory: {memory}\n")
    assert [each.value for each in found.posted.stated("memory modules")] == [stated] * bool(stated)
    assert found.observations[0].how.get("host memory") == (None if stated else memory)


@pytest.mark.parametrize(("value", "counted"), [("pinned", None), ("bound to cores", None), ("32", 32)])
def test_threads_of_the_head_are_a_count_only_if_they_have_a_number(value: str, counted: int | None) -> None:
    (found,) = read(f"threads: {value}\n", 'flows: "host0->host0", value: 100 GB/s').observations
    assert found.settings.get("threads") == counted


@pytest.mark.parametrize(("path", "rates"), [("ib_write_bw", False), ("copy", True)])
def test_the_peak_of_a_run_of_perftest_rates_nothing(path: str, rates: bool) -> None:
    found = row(f'flows: "host0->host1", value: 10 GB/s, peak: 10.1 GB/s, path: {path}')
    assert (found.how.get("expectation") == "nominal") is rates


@pytest.mark.parametrize(
    ("machine", "gpu", "cards"),
    [
        ("Perlmutter GPU node", "NVIDIA A100-SXM4", "4 x 200 Gb/s"),
        ("Perlmutter (A100 80 GB)", "NVIDIA A100-SXM4-80GB", "4 x 200 Gb/s"),
        ("Polaris", "NVIDIA A100-SXM4-40GB", "2 x 200 Gb/s"),
        ("OLCF Frontier", "AMD Instinct MI250X", "4 x 200 Gb/s"),
        ("8 Aurora nodes", "Intel Data Center GPU Max 1550", "8 x 200 Gb/s"),
        ("Alps (GH200)", "NVIDIA GH200 120GB", "4 x 200 Gb/s"),
        ("JUWELS Booster", "NVIDIA A100-SXM4-40GB", "4 x 200 Gb/s"),
    ],
)
def test_a_supercomputer_by_its_name_alone_has_its_gpus_and_cards(machine: str, gpu: str, cards: str) -> None:
    posted = read(f"machine: {machine}\n").posted
    assert posted.title("gpu0") == gpu
    assert [each.value for each in posted.stated("network cards")] == [cards]


@pytest.mark.parametrize(
    "machine", ["Radeon Vega Frontier Edition", "RX 480 (Polaris)", "SX-Aurora", "at the summit", "like Frontier nodes"]
)
def test_words_that_are_no_supercomputers_name_none(machine: str) -> None:
    assert not read(f"machine: {machine}\n").posted.stated("network cards")


@pytest.mark.parametrize(
    ("cards", "stated"), [("4 x Slingshot", "4 x 200 Gb/s"), ("2 x Slingshot", "2"), ("4 x 100 Gb/s", "4 x 100 Gb/s")]
)
def test_counted_cards_have_the_rate_of_the_machine_only_if_they_are_all_of_its_own(cards: str, stated: str) -> None:
    posted = read(f"machine: Perlmutter\nstated: {{network cards: {cards}}}\n").posted
    assert [each.value for each in posted.stated("network cards")] == [stated]


@pytest.mark.parametrize(
    ("cloud", "gpus", "cards"),
    [("GCP", "8x B200", ["8 x 400 Gb/s"]), ("GCP", "4x B200", []), ("GCP", "8x H100", []), ("Lambda", "8x B200", [])],
)
def test_eight_gpus_of_a_cloud_have_its_cards_only_where_one_kind_of_instance_has_them(
    cloud: str, gpus: str, cards: list[str]
) -> None:
    posted = read(f"gpus: {gpus}\nstated: {{cloud: {cloud}}}\n").posted
    assert [each.value for each in posted.stated("network cards")] == cards


EVERY_NAME = [
    "DGX-2", "DGX-1 with V100", "DGX A100 40GB", "DGX A100", "DGX H100", "DGX H200", "DGX B200", "DGX B300",
    "DGX Spark", "GB10", "HGX A100", "A100 HGX", "HGX A800", "HGX H100", "HGX H800", "HGX H200", "HGX H20", "HGX B200",
    "HGX B300", "p3dn.24xlarge", "p3.16xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge",
    "p5en.48xlarge", "p6-b200.48xlarge", "g4dn.metal", "g5.xlarge", "g6.4xlarge", "g6e.xlarge", "a2-highgpu-8g",
    "a2-megagpu-16g", "a2-ultragpu-8g", "g2-standard-96", "a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g",
    "a4-highgpu-8g", "ND40rs_v2", "ND96asr_v4", "ND96amsr_A100_v4", "ND96isr_H100_v5", "ND96isr_H200_v5",
    "NC24ads_A100_v4", "BM.GPU4.8", "BM.GPU.A100-v2.8", "BM.GPU.H100.8", "BM.GPU.H200.8", "Perlmutter 80GB",
    "Perlmutter 40GB", "Perlmutter", "Polaris node", "Frontier node", "LUMI-G", "Setonix GPU", "Dardel-GPU",
    "El Capitan", "Tuolumne", "Leonardo Booster", "JUWELS Booster", "JUPITER Booster", "Summit node", "Sierra node",
    "Lassen node", "Aurora node", "Alps GH200", "Daint.Alps", "Clariden", "Santis", "Isambard-AI", "MareNostrum 5 ACC",
    "MN5-ACC", "Derecho GPU node", "Selene node", "GCP ; 8x B200", "GCP ; 8x H200", "AWS ; 8x B200",
    "Amazon ; 8x B200", "Azure ; 8x H100", "Azure ; 8x H200", "OCI ; 8x H200", "Oracle ; 8x H200",
]  # fmt: skip


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_name_of_a_machine_is_found_in_a_line(name: str) -> None:
    assert only_machine(f"on {name}, idle") is not None


def test_every_machine_of_the_table_has_a_name_in_the_list_above() -> None:
    assert {machine for _, machine in _MACHINES} == {only_machine(f"on {name}, idle") for name in EVERY_NAME}
