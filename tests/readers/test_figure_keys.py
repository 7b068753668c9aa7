"""Keys that the form of typed figures does not have: what people say is kept, what they mistype is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.errors import LanewiseError
from lanewise.readers.typed.figures import is_text, read_text
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts


def read(row: str) -> Observation:
    return read_text(f"lanewise-rows: 1\nrows:\n  - {{{row}}}\n", "figures.yaml").observations[0]


def stated(words: str) -> PostedFacts:
    text = f'lanewise-rows: 1\nstated: {{{words}}}\nrows:\n  - {{flows: "host0->host1", value: 9 Gb/s}}\n'
    return read_text(text, "figures.yaml").posted


def checked(text: str, folder: Path) -> Checkup:
    path = folder / "figures.yaml"
    path.write_text(text, encoding="utf-8")
    return api.check([path])


def test_flows_with_a_value_each_are_rows_without_a_head() -> None:
    bare = (
        "host0->gpu0 25.4 GB/s\n\n# both ways\ngpu0<->gpu1: 38 GB/s\nhost0->gpu[0-3] = ~96 GB/s  # all\n"
        "ssd0->host0, 3 GB/s\n"
    )
    flows = {"host0->gpu0": "25.4", "gpu0<->gpu1": "38", "host0->gpu[0-3]": "~96", "ssd0->host0": "3"}
    typed = [f'  - {{flows: "{flow}", value: {value} GB/s}}' for flow, value in flows.items()]
    rows = read_text("\n".join(["lanewise-rows: 1", "rows:", *typed]), "figures.yaml").observations
    assert is_text(bare)
    assert read_text(bare, "figures.yaml").observations == rows
    with pytest.raises(LanewiseError, match=r"figures\.yaml:3"):
        read_text("host0->gpu0 25.4 GB/s\n\nhost0->gpu1 25 widgets\n", "figures.yaml")


@pytest.mark.parametrize(
    "other", ["it was 24 before", "GPU0->GPU1 20 GB/s", "host0->gpu1 24 GB/s pinned", "->gpu1 2 GB/s", "x" * 10_000]
)
def test_any_other_line_makes_it_a_text(other: str) -> None:
    assert is_text("host0->gpu0 25.4 GB/s")
    assert not is_text(f"host0->gpu0 25.4 GB/s\n{other}\n")
    assert not is_text("")


NETWORK = 'flows: "host0->host1", value: 9.4 Gb/s'


@pytest.mark.parametrize(
    ("words", "settings", "how"),
    [
        ("bs: 4k, iodepth: 8, numjobs: 2", {"bytes": 4096, "depth": 8, "threads": 2}, {}),
        ("message size: 256", {"bytes": 256}, {}),
        ("memory: pinned, numa: 1", {}, {"host memory": "pinned", "NUMA node": "1"}),
        ("size: 1M, bytes: 4k", {"bytes": 4096}, {}),
        ("size: 70B, memory: 80GB", {}, {}),  # of a model, and of a GPU
        ("block_size: 16", {"block_size": 16}, {}),  # tokens of a KV cache
    ],
)
def test_what_tools_call_a_key_of_the_form_is_that_key_if_its_value_is_one(
    words: str, settings: dict[str, int], how: dict[str, str]
):
    row = read(f"{NETWORK}, {words}")
    assert row.settings == settings
    assert {key: row.how[key] for key in ("host memory", "NUMA node") if key in row.how} == how


def test_an_error_in_a_key_by_another_name_has_its_place():
    with pytest.raises(LanewiseError) as error:
        read(f"{NETWORK}, iodepth: 0")
    assert str(error.value.location) == "figures.yaml:3"


def test_a_short_collective_whose_size_is_called_so_is_not_slow(tmp_path: Path):
    row = '{flows: "gpu[0-7]->gpu[0-7]", value: 20 GB/s, path: all_reduce, size: 1M, metric: bus_bandwidth}'
    checkup = checked(f"lanewise-rows: 1\ngpus: H100 SXM\nrows:\n  - {row}\n", tmp_path)
    assert [result.verdict.value for result in checkup.results] == ["unknown"]


@pytest.mark.parametrize("word", ["nic", "mpi", "file system", "adapter", "container", "nodes", "system"])
def test_what_people_say_is_kept_though_nothing_uses_it(word: str):
    facts = stated(f"{word}: something")
    assert [(each.key, each.value, each.source) for each in facts.unused] == [(word, "something", "figures.yaml:2")]
    assert facts.statements == ()


@pytest.mark.parametrize("word", ["slto", "tunnnel", "acss", "iomu", "tunel", "link error", "drive heath"])
def test_a_near_miss_of_what_can_be_stated_is_refused(word: str):
    with pytest.raises(LanewiseError, match=f"'{word}' is nothing that can be stated") as raised:
        stated(f"{word}: chipset")
    assert raised.value.hint.startswith("known: cpu, ")


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        ("vcpus: 8", "cpus", "8"),
        ("cores: 16", "cpus", "16"),
        ("data sheet memory bandwidth: 400 GB/s", "memory rate", "400 GB/s"),
        ("network speed: 10GbE", "line", "10 Gb/s"),
    ],
)
def test_other_words_for_what_can_be_stated_mean_it(words: str, key: str, value: str):
    assert [(each.key, each.value) for each in stated(words).statements] == [(key, value)]


def test_another_word_with_a_value_that_says_nothing_is_kept():
    assert [each.key for each in stated("cores: 8P+16E").unused] == ["cores"]


@pytest.mark.parametrize(
    ("said", "gen", "lanes"),
    [
        ("gen5", 5, None),
        ("x16", None, 16),
        ("PCIe 4.0", 4, None),
        ("PCIe 4.0 x16", 4, 16),
        ("gen3x8", 3, 8),
        ("x8 gen4", 4, 8),
        ("x16 (electrically x4)", None, 4),
        ("PCIe Gen 3, x1 riser", 3, 1),
    ],
)
def test_a_slot_may_be_said_in_part_and_in_many_ways(said: str, gen: int | None, lanes: int | None):
    facts = stated(f"slot: '{said}'")
    assert [(link.gen, link.lanes) for link in facts.slot_links()] == [(gen, lanes)]
    assert facts.slots() == ([(gen, lanes)] if gen and lanes else [])
    assert facts.unused == ()
    assert read(f"{NETWORK}, slot: '{said}'").how["slot"] == " ".join(
        [f"Gen{gen}"] * (gen is not None) + [f"x{lanes}"] * (lanes is not None)
    )


@pytest.mark.parametrize(
    ("rate", "slot", "verdict"),
    [
        ("26 GB/s", "x8", "ok"),  # all of eight lanes of Gen5, whatever generation the slot is said to have
        ("26 GB/s", "gen5", "slow"),
        ("26 GB/s", "gen4", "ok"),
        ("55 GB/s", "gen5", "ok"),
        ("6.2 GB/s", "x16", "slow"),
    ],
)
def test_a_part_of_a_slot_limits_what_the_card_may_do(rate: str, slot: str, verdict: str, tmp_path: Path):
    row = f'{{flows: "host0->gpu0", value: {rate}, host memory: pinned}}'
    text = f"lanewise-rows: 1\ngpus: GeForce RTX 5080\nstated: {{slot: {slot}}}\nrows:\n  - {row}\n"
    assert [result.verdict.value for result in checked(text, tmp_path).results] == [verdict]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ('round trip: "~20 ms to the data centre"', "20 ms"),
        ('iommu: "off (BIOS)"', "off"),
        ('mtu: "9000 on both"', "9000"),
        ('"memory rate": "about 936 GB/s"', "936 GB/s"),
        ('"network transport": "TCP sockets"', "TCP"),
        ("BAR1: 256 MB", "256 MB"),
        ('line: "25 Gb/s, two ports"', "25 Gb/s"),
    ],
)
def test_words_around_a_value_that_can_be_stated_are_left_out(words: str, value: str):
    facts = stated(words)
    assert ([each.value for each in facts.statements], facts.unused) == ([value], ())


@pytest.mark.parametrize("words", ["iommu: maybe", "slot: lower", "mtu: large", "round trip: 20", "acs: unknown"])
def test_a_value_that_says_nothing_is_kept_and_the_note_says_what_it_could_be(words: str, tmp_path: Path):
    text = f"lanewise-rows: 1\nstated: {{{words}}}\nrows:\n  - {{{NETWORK}, line: 10 Gb/s}}\n"
    key, value = words.split(": ")
    notes = [note for note in checked(text, tmp_path).notes if note.startswith("not used")]
    assert len(notes) == 1
    assert f"{key} '{value}' (write for example " in notes[0]


def test_one_note_names_all_that_was_stated_in_vain(tmp_path: Path):
    text = f"lanewise-rows: 1\nstated: {{nic: virtio-net, mpi: MPICH}}\nrows:\n  - {{{NETWORK}, line: 10 Gb/s}}\n"
    assert [note for note in checked(text, tmp_path).notes if "not used" in note] == ["not used: nic, mpi"]


def test_a_number_by_a_word_of_ones_own_is_a_setting():
    row = read(f"{NETWORK}, mtu: 1500, line: 10 Gb/s")
    assert row.settings == {"mtu": 1500}
    assert row.scenario == row.flow


@pytest.mark.parametrize(
    ("key", "scenario"),
    [
        ("xpmem: off", "bcast xpmem=off"),
        ("algorithm: ring  and tree", "bcast algorithm=ring and tree"),
        ("verdict: 3", "bcast verdict=3"),  # the name of a label of Prometheus
        ('"window size": 3', "bcast window size=3"),
        ("model: 8B", "bcast model=8B"),
        ("share: 0.5", "bcast share=0.5"),
    ],
)
def test_other_values_by_words_of_ones_own_are_part_of_the_name(key: str, scenario: str):
    row = read(f"{NETWORK}, path: bcast, {key}")
    assert (row.scenario, dict(row.settings)) == (scenario, {})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("byte: 4k", "bytes"),
        ("thread: 4", "threads"),
        ("deph: 4", "depth"),
        ("lien: 10 Gb/s", "line"),
        ("host_memry: pinned", "host memory"),
    ],
)
def test_a_near_miss_of_a_key_is_refused_with_the_key(key: str, hint: str):
    with pytest.raises(LanewiseError, match=f"unknown key '{key.split(':')[0]}' in a row") as raised:
        read(f"{NETWORK}, {key}")
    assert hint in raised.value.hint


def test_a_text_with_a_comma_still_needs_quotes():
    with pytest.raises(LanewiseError) as raised:
        read(f"{NETWORK}, note: one, two words")
    assert "needs quotes" in raised.value.hint


@pytest.mark.parametrize(("mtu", "rate"), [(1500, "9.49"), (9000, "9.91")])
def test_the_limit_says_what_tcp_gets_of_the_line_at_an_mtu(mtu: int, rate: str, tmp_path: Path):
    text = f"lanewise-rows: 1\nrows:\n  - {{{NETWORK}, line: 10 Gb/s, mtu: {mtu}}}\n"
    (result,) = checked(text, tmp_path).results
    assert result.expected.limit == f"the line of 10 Gb/s, of which TCP at MTU {mtu} gets {rate} Gb/s"


@pytest.mark.parametrize("key", ["mtu: 4096, path: ib_write_bw", "mtu: 256"])
def test_packets_of_rdma_are_not_tcps(key: str, tmp_path: Path):
    text = f"lanewise-rows: 1\nrows:\n  - {{{NETWORK}, line: 10 Gb/s, {key}}}\n"
    (result,) = checked(text, tmp_path).results
    assert result.expected.limit == "the line of 10 Gb/s"


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        ("all_gather: 5 ms", "330 GB/s", "2.847"),  # 1 GiB x 7/8 / 330 GB/s: of a rank's GiB it were 1500 GB/s
        ("all_gather: 20 ms", "330 GB/s", "22.7"),  # a rank's GiB, so 8 times that
        ("alltoall: 25 ms", "3 ms", "3 ms"),
        ("all_reduce: 20 ms", "4 ms", "469.76"),  # 1 GiB x 7/4 / 4 ms, as the row's time is a bus bandwidth
        ("all_reduce: 20 ms", "330 GB/s", "330 GB/s"),
    ],
)
def test_what_is_wanted_of_a_collective_is_of_the_rows_kind(value: str, wanted: str, said: str):
    name, time = value.split(": ")
    row = read(f'path: {name}, flows: "gpu[0-7]->gpu[0-7]", value: {time}, bytes: 1 GiB, expected: {wanted}')
    assert row.how["expected"].startswith(said)


def test_a_gather_that_takes_three_times_as_long_as_wanted_is_slow(tmp_path: Path):
    row = '{path: all_gather, flows: "gpu[0-7]->gpu[0-7]", value: 70 ms, bytes: 1 GiB, expected: 330 GB/s}'
    (result,) = checked(f"lanewise-rows: 1\nrows:\n  - {row}\n", tmp_path).results
    assert result.verdict.value == "slow"
    assert result.expected.limit == "what the text expects"
