"""Outputs of other tools become rows: which flow each number is, in one unit, with who can access whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_display_units import observation, sample, shown

import lanewise
from lanewise.errors import FormatError, InputError
from lanewise.perf.flow import parse_flows
from lanewise.readers.kinds import read_results
from lanewise.readers.tool_results import ImportedResults
from lanewise.results.codec import run_to_json
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run

DATA = Path(__file__).parent / "data"
FILES = sorted(path.name for path in DATA.iterdir())


def read(name: str) -> ImportedResults:
    return read_results((DATA / name).read_text(encoding="utf-8"), name)


def one(found: ImportedResults, scenario: str, flow: str, metric: str = "goodput") -> Observation:
    (row,) = [r for r in found.observations if (r.scenario, r.flow, r.metric) == (scenario, flow, metric)]
    return row


@pytest.mark.parametrize("name", FILES)
def test_every_row_says_its_tool_and_flows_that_can_be_predicted(name):
    rows = read(name).observations
    assert rows
    for row in rows:
        assert row.how["tool"]
        assert row.value is None or row.value > 0
        if row.path == "GPU memory" or not row.flow:  # torch.distributed names no GPUs
            assert "flows" not in row.how
        else:
            flows = [flow.name for flow in parse_flows(row.how["flows"])]
            assert row.flow.split(", ")[0] in flows


@pytest.mark.parametrize("name", FILES)
def test_windows_lines_colours_quote_marks_and_words_around_change_nothing(name):
    text = (DATA / name).read_text(encoding="utf-8")
    plain = read_results(text, name)
    assert read_results(text.replace("\n", "\r\n"), name) == plain
    assert read_results("Hello,\nthis is what I get:\n\n" + text + "\nIs this normal?\n$ ", name) == plain
    if not name.endswith(".json"):
        assert (
            read_results("\ufeff" + "\n".join(f"> \033[32m{line}\033[0m" for line in text.split("\n")), name) == plain
        )


def test_nvbandwidth_cells_are_the_flows_that_its_cases_start():
    found = read("nvbandwidth-0.8.txt")
    assert found.tool == "nvbandwidth 0.8"
    up = one(found, "host_to_device_memcpy_ce", "host0->gpu1")
    assert (shown(up), up.display_unit, up.path) == (55.51, "GB/s", "host to device")
    assert up.how["engine"] == "copy engine"
    down = one(found, "device_to_host_bidirectional_memcpy_ce", "gpu0->host0")
    assert (shown(down), down.how["flows"]) == (50.70, "gpu0->host0, host0->gpu0")
    # Row 1, column 0: the row's GPU pulls out of the column's, or pushes into it; the headings' arrows say otherwise.
    assert shown(one(found, "device_to_device_memcpy_read_ce", "gpu0->gpu1")) == 390.10
    assert one(found, "device_to_device_memcpy_read_ce", "gpu0->gpu1").how["flows"] == "gpu0->gpu1 read"
    assert shown(one(found, "device_to_device_memcpy_write_ce", "gpu1->gpu0")) == 395.80
    both = "device_to_device_bidirectional_memcpy_write_ce"
    assert shown(one(found, f"{both} Write1", "gpu1->gpu0")) == 392.10
    assert shown(one(found, f"{both} Write2", "gpu0->gpu1")) == 392.30
    assert shown(one(found, f"{both} Total", "gpu0->gpu1, gpu1->gpu0", "total")) == 784.40


def test_nvbandwidth_stars_latencies_and_local_copies_keep_their_meaning():
    found = read("nvbandwidth-0.8.txt")
    assert one(found, "all_to_host_memcpy_ce", "gpu1->host0").how["flows"] == "gpu1->host0, gpu0->host0"
    assert shown(one(found, "all_to_one_write_ce", "gpu1->gpu0", "total")) == 395.00
    chase = one(found, "host_device_latency_sm", "host0->gpu0", "chase_latency")
    assert (shown(chase), chase.display_unit, chase.how["engine"]) == (1153.0, "ns", "SM")
    assert shown(one(found, "device_to_device_latency_sm", "gpu1->gpu0", "chase_latency")) == 828.50
    assert one(found, "device_local_copy", "gpu0->gpu0").path == "GPU memory"
    assert [note for note in found.notes if "multinode_bisect_write_ce is not read: Waived:" in note]
    assert not [row for row in found.observations if shown(row) in (111.07, 1568.30)]  # SUM lines are no aggregate


def test_old_nvbandwidth_measures_one_way_by_copy_engine_and_the_sum_by_kernel():
    found = read("nvbandwidth-0.4.txt")
    assert shown(one(found, "device_to_device_bidirectional_memcpy_read_ce", "gpu1->gpu0")) == 20.50
    kernel = "device_to_device_bidirectional_memcpy_read_sm"
    assert shown(one(found, kernel, "gpu0->gpu1, gpu1->gpu0", "total")) == 41.00
    assert found.peers[("gpu0", "gpu1")] is True  # a later case had numbers


RANKS = """Process 0 (tray-3): device 0: NVIDIA GB200 (00000008:01:00)
Process 1 (tray-4): device 0: NVIDIA GB200 (00000008:01:00)
Running multinode_device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    798.02
 1    401.10       N/A
"""


def test_multinode_cases_of_nvbandwidth_are_copies_between_the_gpus_of_the_ranks():
    found = read_results(RANKS, "f")
    assert [(row.flow, shown(row)) for row in found.observations] == [("gpu1->gpu0", 798.02), ("gpu0->gpu1", 401.1)]
    assert found.posted.devices == {"gpu0": "NVIDIA GB200", "gpu1": "NVIDIA GB200"}
    assert found.notes == ("f: gpuN of multinode cases is MPI's rank N, over all hosts",)


def test_a_process_of_nvbandwidth_with_several_gpus_names_them_by_their_number():
    names = "".join(f"Process 0 (node): device {n}: NVIDIA L40S (00000000:4{n}:00)\n" for n in range(2))
    text = names + RANKS[RANKS.index("Running") :].replace("multinode_", "")
    devices = read_results(text, "f").posted.devices
    assert (devices["gpu0"], devices["gpu1"]) == ("NVIDIA L40S", "NVIDIA L40S")


def test_verbose_lines_and_zeros_of_early_versions_do_no_harm():
    text = (
        "Running device_to_device_memcpy_write_ce.\n\tSample 0: Device 0 -> Device 1: 2.50 GB/s\n"
        "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n0 0.00 2.50\n1 3.50 0.00\n"
        "Running all_to_one_write_ce.\nerror: out of memory\n"
    )
    found = read_results(text, "f")
    assert [(row.flow, shown(row)) for row in found.observations] == [("gpu0->gpu1", 2.5), ("gpu1->gpu0", 3.5)]
    assert [fact.value for fact in found.posted.stated("failed test")] == [
        "nvbandwidth, all_to_one_write_ce: error: out of memory"
    ]


def test_pairs_without_a_number_cannot_access_each_other():
    text = (DATA / "nvbandwidth-0.4.txt").read_text(encoding="utf-8").split("Running device_to_device_bidir")[0]
    found = read_results(text, "f")
    assert found.no_peers == (("gpu0", "gpu1"), ("gpu1", "gpu0"))
    assert found.observations == ()


def test_a_matrix_alone_is_known_by_the_sum_line_below_it_or_refused():
    text = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n0 N/A 2.5\n1 3.5 N/A\n"
    found = read_results(text + "\nSUM device_to_device_memcpy_read_ce 6.0\n", "f")
    assert shown(one(found, "device_to_device_memcpy_read_ce", "gpu1->gpu0")) == 2.5
    with pytest.raises(FormatError, match="which case is") as caught:
        read_results("hello\n" + text, "f")
    assert str(caught.value.location) == "f:2"


def test_nvbandwidth_json_has_three_matrices_below_each_other():
    found = read("nvbandwidth-0.8.json")
    both = "device_to_device_bidirectional_memcpy_read_ce"
    assert shown(one(found, f"{both} Read1", "gpu1->gpu0")) == 390.1
    assert shown(one(found, f"{both} Read2", "gpu0->gpu1")) == 391.1
    assert shown(one(found, f"{both} Total", "gpu1->gpu0, gpu0->gpu1", "total")) == 781.4
    assert shown(one(found, "host_to_device_memcpy_ce", "host0->gpu0")) == 55.5612
    assert any("Waived" in note for note in found.notes)


def test_p2p_disabled_and_enabled_one_way_and_both_ways_stay_apart():
    found = read("p2p.txt")
    off = one(found, "Unidirectional P2P=Disabled Bandwidth", "gpu0->gpu1")
    assert (shown(off), off.how["p2p"], off.path) == (18.61, "off", "peer, staged")
    on = one(found, "Unidirectional P2P=Enabled Bandwidth (P2P Writes)", "gpu0->gpu1")
    assert (shown(on), on.how["p2p"], on.path, on.how["flows"]) == (26.10, "on", "peer", "gpu0->gpu1")
    both = one(found, "Bidirectional P2P=Enabled Bandwidth", "gpu0->gpu1, gpu1->gpu0", "total")
    assert (shown(both), both.note) == (51.70, "the sum of both ways")


def test_p2p_pairs_that_are_no_peers_are_named_and_their_rows_are_staged():
    found = read("p2p.txt")
    assert set(found.no_peers) == {("gpu0", "gpu2"), ("gpu1", "gpu2"), ("gpu2", "gpu0"), ("gpu2", "gpu1")}
    row = one(found, "Unidirectional P2P=Enabled Bandwidth (P2P Writes)", "gpu0->gpu2")
    assert (row.how["p2p"], row.path, row.note) == ("off", "peer, staged", "the pair cannot access each other")
    assert any("PCI order" in note for note in found.notes)  # two kinds of GPU


def test_p2p_latency_of_the_gpu_and_of_the_launch_are_named_apart():
    found = read("p2p.txt")
    title = "P2P=Enabled Latency (P2P Writes)"
    assert shown(one(found, title, "gpu0->gpu1", "latency")) == 1.72
    assert shown(one(found, title, "gpu0->gpu1", "launch_latency")) == 1.90
    assert one(found, title, "gpu0->gpu1", "latency").display_unit == "us"


def test_p2p_within_one_gpu_counts_the_payload_once():
    row = one(read("p2p.txt"), "Unidirectional P2P=Disabled Bandwidth", "gpu0->gpu0")
    assert (shown(row), row.path) == (336.03, "GPU memory")


def test_the_sample_of_cuda_6_reads_from_the_column():
    row = one(read("p2p-old.txt"), "Unidirectional P2P=Enabled Bandwidth", "gpu1->gpu0")
    assert (shown(row), row.how["flows"]) == (10.60, "gpu1->gpu0 read")
    assert shown(one(read("p2p-old.txt"), "P2P=Enabled Latency", "gpu0->gpu1", "latency")) == 7.80


def test_headings_within_sentences_are_no_matrices():
    text = "Check `Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)` first.\nP2P=Enabled Latency is what I mean.\n"
    both = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n0 9.0 96.87\n1 96.88 9.0\nfine\n"
    assert one(read_results(text + both, "f"), "Bidirectional P2P=Enabled Bandwidth", "gpu0->gpu1, gpu1->gpu0", "total")
    with pytest.raises(FormatError, match="no results of a tool"):
        read_results(text, "f")


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("### Bidirectional P2P=Enabled Bandwidth Matrix (ACS disabled, all links Gen5 x16)", "total"),
        ("P2P Bandwidth Matrix (GB/s) - Unidirectional, P2P=Enabled", "goodput"),
    ],
)
def test_a_matrix_whose_title_a_page_worded_anew_is_read(title, metric):
    results = read_results(f"{title}\n   D\\D     0      1\n     0    \u2014    102\n     1   104    \u2014\n", "f")
    values = [row.value for row in results.observations if row.metric == metric and row.path == "peer"]
    assert values == [102e9, 104e9]


def test_a_table_that_somebody_made_with_columns_of_ucx_perftest_is_none_of_the_tool():
    table = "| Version | overhead (usec) | bandwidth (MB/s) |\n|---|---|---|\n| 1.20.0 | ~5 | 23367.33 |\n"
    text = f"ucx_perftest -t ucp_put_bw\n\n{table}"
    with pytest.raises(FormatError, match="no results of a tool"):
        read_results(text, "f")


def test_sum_lines_alone_are_refused_with_the_reason():
    with pytest.raises(FormatError, match="no matrix of nvbandwidth") as caught:
        read_results("$ ./nvbandwidth | grep SUM\nSUM host_to_device_memcpy_ce 802.86\n", "f")
    assert "one after another" in caught.value.hint


def test_peers_alone_are_a_result():
    found = read_results("Device=0 CANNOT Access Peer Device=1\nDevice=1 CANNOT Access Peer Device=0\n", "f")
    assert found.no_peers == (("gpu0", "gpu1"), ("gpu1", "gpu0"))


def test_bandwidth_test_gives_both_ways_and_old_megabytes_are_binary():
    found = read("bandwidth-test.txt")
    assert shown(one(found, "Host to Device", "host0->gpu0")) == pytest.approx(12.3)
    assert one(found, "Device to Host", "gpu0->host0").settings == {"bytes": 32000000}
    assert shown(one(found, "Device to Device", "gpu0->gpu0")) == pytest.approx(120.0)
    old = (DATA / "bandwidth-test.txt").read_text().replace("(GB/s)", "(MB/s)").replace("12.3", "12150.7")
    value = shown(one(read_results(old, "f"), "Host to Device", "host0->gpu0"))
    assert value == pytest.approx(12150.7 * 2**20 / 1e9)


def test_gdsio_lines_become_rates_in_gb_with_their_mode():
    found = read("gdsio.txt")
    row = one(found, "read GPUD", "test.bin->gpu2")
    assert shown(row) == pytest.approx(6.5 * 2**30 / 1e9)
    assert (row.settings, row.how["mode"]) == ({"threads": 24, "bytes": 8 * 2**20}, "cuFile")
    assert one(found, "read CPUONLY", "test.bin->host0").how["mode"] == "direct"
    assert one(found, "randread GPU_BATCH", "test.bin->gpu2").settings["depth"] == 128  # broken in two by a forum
    written = one(found, "write CPU_GPU", "gpu2->test.bin")
    assert (written.how["mode"], "bytes" in written.settings) == ("bounce", False)
    assert any("compat" in note for note in found.notes)


def test_fio_jobs_groups_and_percentiles():
    found = read("fio.json")
    assert found.tool == "fio 3.33"
    row = one(found, "a", "nvme0n1->host0")
    assert (shown(row), row.settings) == (2.0, {"bytes": 131072, "depth": 32, "threads": 4})
    assert (row.how["mode"], row.how["engine"]) == ("direct", "io_uring")
    assert row.how["flows"] == "nvme0n1->host0, host0->nvme0n1"
    assert one(found, "a", "host0->nvme0n1").settings["bytes"] == 4096
    assert shown(one(found, "a", "nvme0n1->host0", "latency_p99")) == 900.0
    assert one(found, "a", "nvme0n1->host0", "iops").unit == "1/s"
    group = one(found, "group 0 read", "nvme0n1->host0, nvme1n1->host0", "total")
    assert shown(group) == pytest.approx(3.0)  # 6 GB in the 2 s of the longer job, not 2 + 2 GB/s


def test_old_fio_without_bytes_per_second_and_with_microseconds():
    job = {"bw": 1024, "io_kbytes": 9, "clat": {"percentile": {"50.000000": 250}}}
    data = {"fio version": "fio-2.2.10", "jobs": [{"jobname": "j", "read": job}]}
    found = read_results(json.dumps(data), "f")
    assert shown(one(found, "j", "j->host0")) == pytest.approx(1024 * 1024 / 1e9)
    assert shown(one(found, "j", "j->host0", "latency_p50")) == 250


def test_perftest_tables_by_size_in_either_unit():
    found = read("ib_write_bw.txt")
    rows = [row for row in found.observations if row.settings["bytes"] == 65536]
    assert [(row.scenario, row.flow, shown(row)) for row in rows] == [("ib_write_bw", "host0->host1", 48.8)]
    assert rows[0].settings == {"bytes": 65536, "connections": 2, "depth": 128}
    assert rows[0].how["device"] == "mlx5_0"
    text = (DATA / "ib_write_bw.txt").read_text().replace("Gb/sec", "MB/sec")
    assert shown(read_results(text, "f").observations[0]) == pytest.approx(390.40 * 2**20 / 1e9)


def test_perftest_latencies_are_percentiles_and_reads_go_the_other_way():
    found = read("ib_read_lat.txt")
    assert shown(one(found, "ib_read_lat", "host1->host0", "latency_p99.9")) == 9.80
    assert one(found, "ib_read_lat", "host1->host0", "latency_p50").note == "a whole round trip"


def test_perftest_json_shows_its_unit_by_size_and_message_rate():
    found = read("ib_write_bw.json")
    row = one(found, "ib_write_bw bidirectional", "host0->host1, host1->host0", "total")
    assert shown(row) == pytest.approx(780.80 / 8)
    binary = (DATA / "ib_write_bw.json").read_text().replace("780.80", "93078.6")
    assert shown(read_results(binary, "f").observations[0]) == pytest.approx(97.6, rel=1e-3)
    assert (row.settings["connections"], row.how["device"]) == (4, "mlx5_1")


def test_perftest_json_of_before_2024_is_no_json_and_is_read_all_the_same():
    found = read("ib_send_lat-2022.json")
    assert shown(one(found, "ib_send_lat", "host0->host1", "latency_p50")) == 1.05
    assert shown(one(found, "ib_send_lat", "host0->host1", "latency_p99.9")) == 3.10


def test_own_runs_and_samples_come_back_as_they_were(tmp_path):
    taken = [sample("copy", "host0:0->host0:1", "goodput", value, "GB/s", {"threads": 2}) for value in (3.0, 1.0, 2.0)]
    run = lanewise.as_measured_run(taken)
    (tmp_path / "run.json").write_text(run_to_json(run))
    lines = [json.dumps(sample.as_record()) for sample in taken]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    assert lanewise.read_results(tmp_path / "run.json").observations == run.rows
    assert lanewise.read_results(tmp_path / "samples.jsonl").observations == run.rows
    cut = read_results("\n".join(lines)[:-20], "s.jsonl")
    assert cut.observations[0].samples == (3e9, 1e9)
    assert cut.notes == ("s.jsonl:3: the last sample is cut off and left out",)
    with pytest.raises(FormatError, match="no measured rows"):
        read_results(run_to_json(lanewise.as_measured_run([])), "empty.json")


def test_outputs_of_several_tools_in_one_text_or_several_files_come_together(tmp_path):
    both = (DATA / "p2p.txt").read_text() + (DATA / "bandwidth-test.txt").read_text()
    found = read_results(both, "post.txt")
    assert found.tool == "p2pBandwidthLatencyTest, bandwidthTest"
    assert lanewise.read_results([DATA / "p2p.txt", DATA / "bandwidth-test.txt"]).observations == found.observations
    with pytest.raises(InputError, match="cannot be read"):
        lanewise.read_results(tmp_path / "none.txt")


CUTS = [
    ("nvbandwidth-0.8.txt", "    391.20\n", "1 cells for 2 columns"),
    ("nvbandwidth-0.8.json", '"390.2"', "the JSON breaks off"),
    ("p2p.txt", " 26.10  17.91", "1 cells for 3 columns"),
    ("bandwidth-test.txt", "   32000000\t\t\t12.3", "no figures below 'Host to Device Bandwidth'"),
    ("gdsio.txt", "Throughput: 6.25", "a result line of gdsio breaks off"),
    ("ib_write_bw.txt", " 65536      5000", "perftest's table has no rows"),
    ("ib_write_bw.txt", "392.10", "2 figures below 5 heads"),
    ("ib_write_bw.json", '"BW_average"', "perftest's JSON breaks off"),
    ("fio.json", '"bins"', "the JSON breaks off"),
]


@pytest.mark.parametrize(("name", "before", "cause"), CUTS)
def test_a_text_that_breaks_off_is_refused_with_its_line_and_what_to_do(name, before, cause):
    text = (DATA / name).read_text(encoding="utf-8").split(before)[0]
    with pytest.raises(FormatError, match=cause) as caught:
        read_results(text, name)
    assert caught.value.location is not None
    assert caught.value.location.line > 0
    assert caught.value.hint


WHOLE_UNTIL = [
    ("nvbandwidth-0.8.txt", " 1    390.10", "a matrix ends after 1 of 2 rows"),
    ("p2p.txt", "     2  17.60", "a matrix ends after 2 of 3 rows"),
    ("p2p.txt", " Latency (P2P Writes)", "the text breaks off in a heading"),
    ("bandwidth-test.txt", "   32000000\t\t\t13.2", "the text breaks off below 'Device to Host Bandwidth'"),
]


@pytest.mark.parametrize(("name", "before", "note"), WHOLE_UNTIL)
def test_what_is_whole_before_a_text_breaks_off_is_read_with_a_note(name, before, note):
    whole = read_results((DATA / name).read_text(encoding="utf-8"), name)
    cut = read_results((DATA / name).read_text(encoding="utf-8").split(before)[0], name)
    assert any(note in each for each in cut.notes)
    assert 0 < len(cut.observations) < len(whole.observations)
    assert set(map(repr, cut.observations)) <= set(map(repr, whole.observations))


def test_a_last_figure_that_lost_digits_is_left_out_with_its_row():
    title = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
    text = title + " D\\D 0 1 2\n 0 774.87 48.35 48.34\n 1 48.3"
    rows = read_results(text + "4 775.84 96.4\n", "f").observations
    assert {row.flow for row in rows} == {"gpu0->gpu0", "gpu0->gpu1", "gpu0->gpu2"}
    assert len(read_results(text + "4 775.84 96.44\n", "f").observations) == 6


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"a": 1}', "0 1\n0 2 3", "#bytes of it", "\x00\x01"])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(FormatError) as caught:
        read_results(text, "f")
    assert caught.value.hint


@given(st.sampled_from(FILES), st.integers(0, 6000), st.integers(0, 400), st.text('0 1.N/A-\n{}":', max_size=8))
def test_any_damage_gives_rows_or_one_error_with_a_hint(name, start, length, put):
    text = (DATA / name).read_text(encoding="utf-8")
    error = None
    try:
        read_results(text[:start] + put + text[start + length :], name)
    except FormatError as caught:
        error = caught
    assert error is None or (error.hint and error.location is not None)


def test_what_a_run_predicted_beside_what_it_measured_is_not_read_as_measured():
    values = {Source.MEASURED: 90.0, Source.PREDICTED: 99.0, Source.EXTRAPOLATED: 180.0}
    rows = [observation("Server 15 ms", "host0->gpu0", "qps", value, "1/s", source) for source, value in values.items()]
    found = read_results(run_to_json(Run((), "now", "1", "lanewise", {}, rows=tuple(rows))), "run.json")
    assert [shown(row) for row in found.observations] == [90.0]
    alone = run_to_json(Run((), "now", "1", "lanewise", {}, rows=tuple(rows[1:])))
    with pytest.raises(FormatError, match="no measured rows"):
        read_results(alone, "run.json")
