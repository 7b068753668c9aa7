"""Words of engineers in a hurry for values, GPUs, machines and facts of a machine, by the words that rules know."""

from __future__ import annotations

import pytest
import yaml

from lanewise.catalog import builtin
from lanewise.checking.named.abilities import ability
from lanewise.checking.named.links import is_slice
from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results
from lanewise.readers.tool_results import ImportedResults
from lanewise.readers.words.counted_gpus import gpu_name
from lanewise.readers.words.spellings import count
from lanewise.results.observation import Observation


def read(row: dict[str, object], **head: object) -> ImportedResults:
    """One row typed in, by a dump of YAML, with the head of the file."""
    typed = {"flows": "host0->gpu0", "value": "10 GB/s", **row}
    return read_results(yaml.safe_dump({"lanewise-rows": 1, **head, "rows": [typed]}, sort_keys=False), "typed.yaml")


def only(row: dict[str, object], **head: object) -> Observation:
    (found,) = read(row, **head).observations
    return found


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("9 GB/s (up to)", 9e9), ("up to 9 GB/s", 9e9), ("approx. 9 GB/s", 9e9), ("only 9 GB/s", 9e9),
        ("\u22649 GB/s", 9e9), (">= 9 GB/s", 9e9), ("peaks at 9 GB/s", 9e9), ("avg 9 GB/s", 9e9), ("9+ GB/s", 9e9),
        ("between 9 and 10 GB/s", 9.5e9), ("9 GB/s - 10 GB/s", 9.5e9), ("9 \u00b1 1 GB/s", 9e9),
        ("9 GB/s \u00b1 0.3", 9e9),
        ("9 GB / s", 9e9), ("9 gigabytes per second", 9e9), ("9 Gbit", 9e9 / 8), ("9,5 GB/s", 9.5e9), ("9 G/s", 9e9),
        ("12,000 MB/s", 12e9), ("9,012 MB/s", 9.012e9), ("0,125 GB/s", 125e6), ("1,2345 GB/s", 1.2345e9),
        ("9~12 GB/s", 10.5e9), ("9 GB/s to 12 GB/s", 10.5e9),
        ("9 500 MB/s", 9.5e9), ("9'500 MB/s", 9.5e9), ("9,500 MB/s", 9.5e9), ("1,234,567 kB/s", 1.234567e9),
    ],
)  # fmt: skip
def test_a_rate_says_the_same_with_words_around_it(written: str, rate: float) -> None:
    assert only({"value": written}).value == pytest.approx(rate)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("9 \u03bcs", 9e-6), ("9 usec", 9e-6), ("9 microseconds", 9e-6), ("9 msec", 9e-3), 
        ("9 sec", 9.0), ("1.5 minutes", 90.0),
    ],
)
def test_times_have_many_units(written: str, seconds: float) -> None:
    assert only({"value": written}).value == pytest.approx(seconds)


@pytest.mark.parametrize("written", [
    "9 GB", "9/12 GB/s", "72 %", "9 GB/s vs 12 GB/s", "fast", "0:09", "9 < 12 GB/s", "9 up to 12 GB/s",
    "9 GB/s -> 12 GB/s", "between 9 MB/s and 12 GB/s", "9 GB/s x8", "9 GB/s vs 12", "9 GB/s less than expected",
])  # fmt: skip
def test_a_value_that_says_two_things_or_none_is_refused(written: str) -> None:
    with pytest.raises(FormatError, match="no rate and no time"):
        read({"value": written})


@pytest.mark.parametrize(
    ("written", "wanted", "kind"),
    [
        ("72 of 100 GB/s", "100 GB/s", "nominal"), ("72 GB/s (of 100)", "100 GB/s", "nominal"),
        ("72 GB/s out of 100 GB/s", "100 GB/s", "nominal"), ("72 GB/s instead of 100", "100 GB/s", "expected"),
    ],
)  # fmt: skip
def test_what_was_wanted_stands_beside_the_value(written: str, wanted: str, kind: str) -> None:
    row = only({"value": written})
    assert (row.value, row.how["expected"], row.how["expectation"]) == (72e9, wanted, kind)


def test_a_wish_without_a_unit_has_that_of_the_value() -> None:
    assert only({"value": "9 GB/s", "expected": 12}).how["expected"] == "12 GB/s"


@pytest.mark.parametrize("written", ["270 GB/s busbw", "busbw: 270 GB/s", "270 GB/s (busbw)"])
def test_a_value_names_its_metric(written: str) -> None:
    row = only({"flows": "gpu[0-7]->gpu[0-7]", "path": "all_reduce", "value": written})
    assert (row.metric, row.value) == ("bus_bandwidth", 270e9)


@pytest.mark.parametrize(
    ("key", "written", "number"),
    [
        ("bytes", "up to 1 GiB", 2**30), ("bytes", "64 MiB per GPU", 2**26), ("bytes", "4KiB random", 4096),
        ("bytes", "1M-64M", 2**20), ("bytes", "1 GB - 4 GB", 10**9), ("bytes", "4096 bytes", 4096),
        ("bytes", "64 kB (default)", 64_000), ("depth", "iodepth=32", 32), ("depth", "1 (sync)", 1),
        ("threads", "single-threaded", 1), ("threads", "numjobs=8", 8), ("ranks", "2x8", 16),
        ("ranks", "2 nodes x 8", 16), ("bytes", "100,000 B", 100_000), ("bytes", "1,024 KiB", 2**20),
        ("ranks", "all 8", 8), ("hosts", "two", 2),
    ],
)  # fmt: skip
def test_sizes_and_counts_by_other_words(key: str, written: str, number: int) -> None:
    flows = "gpu[0-7]->gpu[0-7]" if key in ("ranks", "hosts") else "nvme0->host0"
    assert only({"flows": flows, key: written}).settings[key] == number


@pytest.mark.parametrize(
    ("called", "part"),
    [
        ("8x A100-SXM4-80GB", "a100-sxm-80gb"), ("2x 4090", "rtx-4090"), ("4090 (2 GPUs)", "rtx-4090"),
        ("DGX A100 640GB", "a100-sxm-80gb"), ("DGX A100 320GB", "a100-sxm-40gb"), ("HGX H100", "h100-sxm"),
        ("DGX-2", "v100-sxm3"), ("p5.48xlarge", "h100-sxm"),
    ],
)  # fmt: skip
def test_gpus_that_a_text_counts_or_whose_machine_it_names(called: str, part: str) -> None:
    found = builtin().gpu(gpu_name(called))
    assert found is not None
    assert found.name == part


@pytest.mark.parametrize("called", ["not a DGX H100", "DGX H100-like", "DGX 2 nodes", "DGX A100 and DGX H100"])
def test_a_machine_that_is_denied_or_like_another_names_no_gpu(called: str) -> None:
    assert builtin().gpu(gpu_name(called)) is None


@pytest.mark.parametrize("called", ["A100 1g.10gb", "A40-48Q", "H200 MIG 1g.18gb", "GRID A100D-4-20C"])
def test_a_part_of_a_gpu_keeps_the_words_that_say_so(called: str) -> None:
    assert is_slice(gpu_name(called))


def test_a_machine_by_name_says_its_gpus_and_network_cards() -> None:
    across = {"flows": "gpu[0-7]->gpu[0-7]", "path": "all_reduce", "ranks": 16, "hosts": 2}
    posted = read(across, stated={"machine": "2x DGX H100"}).posted
    assert posted.title("gpu0") == "NVIDIA H100 80GB HBM3"
    assert [each.value for each in posted.stated("network cards")] == ["8 x 400 Gb/s"]
    own = read({**across, "line": "400 Gb/s"}, gpus="H100 PCIe", stated={"machine": "DGX H100"}).posted
    assert own.title("gpu0") == "H100 PCIe"
    assert not own.stated("network cards")  # what the asker says counts


@pytest.mark.parametrize(
    ("key", "value", "known", "means"),
    [
        ("IOMMU", "off", "iommu", "off"), ("iommu", "iommu=pt", "iommu", "pt"), ("iommu", "enabled", "iommu", "on"),
        ("ACS", "disabled", "acs", "off"), ("acs", "redirect off", "acs", "off"),
        ("ReBAR", "8 GiB", "resizable BAR", "on"),
        ("BAR1 size", "256M", "BAR1", "256 MiB"), ("GDR", "in use", "GPUDirect RDMA", "on"),
        ("nvidia_peermem", "not loaded", "GPUDirect RDMA", "off"), ("CPU", "2x EPYC 9654", "cpu", "2x EPYC 9654"),
        ("CPUs", "2x EPYC 9654", "cpu", "2x EPYC 9654"), ("cpus", "8 of 64", "cpus", "8 of 64"),
        ("nic", "400G", "line", "400 Gb/s"), ("NICs", "8x ConnectX-7 400G", "network cards", "8 x 400 Gb/s"),
        ("pcie", "4.0 x8", "slot", "4.0 x8"), ("VM", "yes", "virtual machine", "yes"),
        ("mtu", "jumbo frames", "mtu", "9000"),
        ("transport", "shared memory", "peer transport", "SHM"),
        ("transport", "NET/Socket", "network transport", "Socket"),
        ("iommu", "on, pt", "iommu", "pt"), ("GDR", "nvidia_peermem not loaded", "GPUDirect RDMA", "off"),
        ("NICs", "8 x NDR", "network cards", "8 x 400 Gb/s"),
        ("DRAM", "8 channels DDR4-3200", "memory modules", "8 channels DDR4-3200"),
        ("cores", "8", "cpus", "8"), ("host_memory", "8 x DDR4-3200", "memory modules", "8 x DDR4-3200"),
        ("GPU memory bandwidth", "936 GB/s", "memory rate", "936 GB/s"), ("port-channel", "2 ports", "bond", "2 ports"),
        ("link speed", "100 Gb/s", "line", "100 Gb/s"), ("Warm_Up", "none", "warm-up", "none"),
    ],
)  # fmt: skip
def test_facts_of_a_machine_by_other_words(key: str, value: str, known: str, means: str) -> None:
    (said,) = read({}, stated={key: value}).posted.statements
    assert (said.key, said.value) == (known, means)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("GDR", "off by default, on here"), ("GDR", "supported but not used"), ("GDR", "no idea"),
        ("GDR", "1 of 2 nodes"),
        ("GDR", "yes?"), ("GDR", "not tested"), ("iommu", "not checked"), ("iommu", "off in BIOS, on in the kernel"),
        ("iommu", "no change with iommu=off"), ("acs", "unknown"), ("acs", "no idea"), ("mtu", "jumbo off"),
        ("confidential computing", "SEV-SNP off"), ("transport", "not sockets"), ("transport", "RDMA not working"),
        ("NICs", "1x 400G, 1x 100G"), ("NICs", "8 x 400G (2 used)"), ("pcie", "should be gen5 x16"),
        ("thunderbolt", "none"), ("VM", "not a VM"),
    ],
)  # fmt: skip
def test_words_that_say_nothing_of_a_fact_or_two_things_state_none(key: str, value: str) -> None:
    posted = read({}, stated={key: value}).posted
    assert not posted.statements
    assert [each.value for each in posted.unused] == [value]


@pytest.mark.parametrize(
    "words", ["not a DGX H100", "like our DGX H100", "DGX H100-class", "DGX A100 and DGX H100", "DGX 2 nodes"]
)
def test_a_machine_that_is_only_compared_with_is_not_the_machine(words: str) -> None:
    assert not read({}, stated={"machine": words}).posted.devices


@pytest.mark.parametrize("words", ["DGX H100 with 2 NICs", "DGX H100, 4 of 8 GPUs"])
def test_a_machine_in_part_says_its_gpus_alone(words: str) -> None:
    posted = read({}, stated={"machine": words}).posted
    assert posted.title("gpu0") == "NVIDIA H100 80GB HBM3"
    assert not posted.statements


def test_a_time_is_no_bandwidth() -> None:
    with pytest.raises(FormatError, match="'9 ms' is no bus_bandwidth"):
        read({"flows": "gpu[0-7]->gpu[0-7]", "path": "all_reduce", "value": "9 ms busbw"})


@pytest.mark.parametrize("text", [", " * 50_000, "(" * 50_000, "9" * 100_000, "up to " * 20_000])
def test_long_words_stay_as_they_are(text: str) -> None:
    assert gpu_name(text) == text
    assert count(text) is None


def test_peer_copies_that_the_file_says_are_off_are_off_in_each_row_of_gpus_alone() -> None:
    peers = only({"flows": "gpu0->gpu1"}, stated={"P2P": False})
    assert (peers.how["p2p"], peers.path) == ("off", "peer, staged")
    assert only({"flows": "gpu0->gpu1", "p2p": True}, stated={"P2P": False}).how["p2p"] == "on"
    assert "p2p" not in only({}, stated={"P2P": False}).how


def test_the_time_of_a_gather_is_slow_only_if_it_is_so_for_either_count_of_its_bytes() -> None:
    row = {"flows": "gpu[0-7]->gpu[0-7]", "path": "all_gather", "bytes": "4 GiB", "ranks": 16, "hosts": 2}
    found = only({**row, "value": "23.3 ms"})
    assert found.metric == "bus_bandwidth"
    assert found.value == pytest.approx(2**32 * 15 / 16 / 23.3e-3)
    assert found.how["bytes of"] == "a rank or all"


@pytest.mark.parametrize("called", ["4090 Laptop", "RTX 4090 Laptop GPU", "3080 Mobile", "2080 Ti Max-Q"])
def test_a_gpu_of_a_laptop_is_no_card_of_that_number(called: str) -> None:
    assert builtin().gpu(gpu_name(called)) is None
    laptop = ability(gpu_name(called), builtin())
    assert laptop is not None
    assert laptop.in_a_laptop
