"""Forms of tools that outputs of an engineer showed: rvs by address, SATA's and amd-smi's links, numactl, runs."""

import pytest

from lanewise.readers.kinds import read_results
from lanewise.readers.posted.statements import posted_facts

RVS = (
    "$ rvs -c conf/MI210/pebb_single.conf\n"
    "[RESULT] [1.1] [h2d] pcie-bandwidth [ 1/ 2] [CPU:: 0] [GPU:: 4 - 55354 - 0000:65:00.0] h2d::true d2h::false 26.9 "
    "GBps duration: 0.2 secs\n"
    "[RESULT] [1.2] [h2d] pcie-bandwidth [ 2/ 2] [CPU:: 1] [GPU:: 5 -   208 - 0000:75:00.0] h2d::true d2h::true 13.6 "
    "GBps duration: 0.2 secs\n"
    "[RESULT] [1.3] [p2p] p2p-bandwidth[ 1/ 2] [GPU:: 4 - 55354 - 0000:65:00.0] [GPU:: 5 -   208 - 0000:75:00.0] "
    "bidirectional: false 40.1 GBps duration: 0.2 secs\n"
)
SATA = (
    "[1.7] ata{0}: SATA link up 6.0 Gbps (SStatus 133 SControl 300)\n"
    "[9.3] ata{0}: limiting SATA link speed to 3.0 Gbps\n"
    "[9.9] ata{0}: SATA link up 3.0 Gbps (SStatus 123 SControl 320)\n"
)


def facts(text, key):
    return [each.value for each in posted_facts(text.splitlines(), "f").stated(key)]


def test_copies_of_rvs_by_node_and_address_are_rows_and_its_configuration_names_the_gpus():
    results = read_results(RVS, "f")
    assert [(row.flow, row.metric, row.value) for row in results.observations] == [
        ("host0->gpu0", "goodput", pytest.approx(26.9e9)),
        ("host0:1->gpu1, gpu1->host0:1", "total", pytest.approx(13.6e9)),
        ("gpu0->gpu1", "goodput", pytest.approx(40.1e9)),
    ]
    assert results.posted.title("gpu1") == "AMD Instinct MI210"


@pytest.mark.parametrize("port", [1, 12])
def test_a_sata_link_that_errors_slowed_down_is_stated(port):
    text = SATA.format(port)
    assert facts(text, "sata errors") == [f"ata{port} at 3 of 6 Gb/s"]
    assert facts(text, "sata link") == ["3 Gb/s"]


def test_a_sata_link_that_came_up_as_it_can_states_nothing():
    text = SATA.format(3).splitlines()[0]
    assert not facts(text, "sata errors")
    assert not facts(text, "sata link")
    assert facts("SATA Version is:  SATA 3.2, 6.0 Gb/s (current: 3.0 Gb/s)", "sata link") == ["3 Gb/s"]
    assert not facts("SATA Version is:  SATA 3.2, 6.0 Gb/s (current: 6.0 Gb/s)", "sata link")


@pytest.mark.parametrize(("now", "most"), [("WIDTH", "MAX_PCIE_WIDTH"), ("CURRENT_LANES", "MAX_PCIE_LANES")])
def test_lanes_of_amd_smi_are_those_of_the_same_gpu(now, most):
    links = f"GPU: 1\n    PCIE:\n        {now}: 16\nGPU: 4\n    PCIE:\n        {now}: 4\n"
    bus = "GPU: {}\n    BUS:\n        " + most + ": 16\n"
    assert facts(links + bus.format(4), "link width") == ["GPU 4 x4 of x16"]
    assert facts(bus.format(1) + links, "link width") == []


@pytest.mark.parametrize("times", ["", "      3 "])
def test_modules_that_uniq_counted_stand_for_as_many(times):
    text = f"{times}\tSize: 32 GB\n{times}\tConfigured Memory Speed: 4800 MT/s\n      5 \tSize: No Module Installed\n"
    assert facts(text, "memory modules") == [f"{3 if times else 1} x DDR5-4800, 5 slots empty"]


@pytest.mark.parametrize("command", ["numactl -N 1 -m 0", "numactl --cpunodebind=1 --membind=0"])
def test_numactl_above_stream_says_whose_memory_it_is(command):
    text = f"$ {command} ./stream\n" + "-----\n" * 20 + "Function    Best Rate MB/s  Avg time\nTriad:   60204.9   0.3\n"
    (row,) = read_results(text, "f").observations
    assert row.flow == "host0:0->host0:1"


def test_runs_of_sockperf_and_qperf_keep_the_words_above_them():
    run = "sockperf: == version #3.10 ==\nsockperf: Summary: Latency is {} usec\n"
    text = "== rack A\n" + run.format(9.1) + "== rack B\n" + run.format(48.3)
    rows = read_results(text, "f").observations
    assert [(row.scenario, row.value) for row in rows] == [
        ("sockperf (rack A)", pytest.approx(9.1e-6)), ("sockperf (rack B)", pytest.approx(48.3e-6)),
    ]  # fmt: skip
    one = "tcp_lat:\n    latency  =  {} us\n"
    rows = read_results("before\n" + one.format(14) + "after\n" + one.format(60), "f").observations
    assert [row.value for row in rows] == [pytest.approx(14e-6), pytest.approx(60e-6)]


@pytest.mark.parametrize("options", ["-q 64 -o 8192 -w randread", "--io-depth 64 --io-size=8192 --io-pattern randread"])
def test_options_of_spdk_nvme_perf_are_read(options):
    head = "Device Information : IOPS MiB/s Average min max\n"
    text = f"# spdk_nvme_perf {options}\n{head}"
    text += "PCIE (0000:86:00.0) NSID 1 from core  0: 350000.0 2734.4 180.1 50.0 900.0\n"
    row = read_results(text, "f").observations[0]
    assert (row.settings, row.how["pattern"]) == ({"bytes": 8192, "depth": 64}, "randread")
