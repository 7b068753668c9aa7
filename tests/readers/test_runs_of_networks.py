"""What runs of network tools say beside their rates: directions, options, lost datagrams, round trips, sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.readers.kinds import read_results
from lanewise.readers.tools.commands import options_of, scaled
from lanewise.results.observation import Observation

TEXTS = Path(__file__).parents[1] / "checking/provoked"


def rows(name: str) -> tuple[Observation, ...]:
    return read_results((TEXTS / f"{name}.txt").read_text(), "f").observations


def test_both_directions_at_once_are_two_rows():
    forth, back = rows("networks/slow-one-way-bidir")
    assert (forth.flow, forth.value) == ("host0->host1", pytest.approx(930e6 / 8))
    assert (back.flow, back.value) == ("host1->host0", pytest.approx(187e6 / 8))


def test_the_command_above_a_run_says_what_it_asked_for():
    (limited,), (small,) = rows("networks/rate-option"), rows("networks/udp-of-64-bytes")
    assert limited.how["asked for"] == "300 Mb/s"
    assert (small.how["protocol"], small.how["bytes a call"], small.how["lost"]) == ("UDP", "64", "0.477")
    first, last = rows("networks/slow-one-way")
    assert "asked for" not in first.how
    assert last.how["repeats"] == "12"


def test_a_window_that_iperf_was_asked_for_and_segments_that_iperf3_shows_are_kept():
    assert rows("networks/iperf2-window-16k")[0].how["window"] == "requested"
    assert rows("networks/small-segments-shown")[0].how["segment"] == "68"
    assert "window" not in rows("networks/iperf2-two-streams-2.5g")[0].how


def test_options_are_those_of_the_last_command_with_their_values():
    lines = ["$ iperf3 -c host -b 1M", "root# iperf3 -c 10.0.0.1 -P4 --window=64K -u", "no iperf3 at all"]
    assert options_of(lines, "iperf3?") == {"-c": "10.0.0.1", "-P": "4", "--window": "64K", "-u": ""}
    assert options_of(lines, "fio") == {}
    assert [scaled(text, 1024) for text in ("64K", "1.5m", "300", "0", "x")] == [65536, 1.5 * 2**20, 300, 0, 0]


def test_sockperf_gives_its_mean_and_two_percentiles():
    found = {row.metric: row.value for row in rows("networks/latency-half-a-millisecond")}
    assert found == {
        "latency_mean": pytest.approx(675.807e-6), "latency_p50": pytest.approx(591.543e-6),
        "latency_p99": pytest.approx(2702.968e-6),
    }  # fmt: skip


def test_nuttcp_gives_rate_and_round_trip():
    (row,) = rows("networks/nuttcp-gigabit")
    assert (row.value, row.how["round trip"]) == (pytest.approx(937.9177e6 / 8), "0.25 ms")


@pytest.mark.parametrize("words", ["messages of 64 bytes", "64-byte messages", "$ qperf -t 2 -m 64 host tcp_bw"])
def test_a_size_of_messages_is_that_of_the_command_or_of_the_words(words: str):
    (row,) = read_results(f"{words}\ntcp_bw:\n    bw  =  27.4 MB/sec\n", "f").observations
    assert row.settings == {"bytes": 64}


def test_percentiles_of_fio_are_those_that_it_prints():
    found = {row.metric: row.value for row in rows("storage/iops-at-depth-1")}
    assert found["latency_p50"] == pytest.approx(61.184e-6)
    assert found["latency_p99"] == pytest.approx(2072.576e-6)
    assert found["latency_p99.9"] == pytest.approx(4816.896e-6)


def test_fast_ethernet_is_a_line_of_100_megabits():
    statements = read_results((TEXTS / "networks/receivers-last-line.txt").read_text(), "f").posted.stated("line")
    assert [statement.value for statement in statements] == ["100 Mb/s"]


def test_enhanced_reports_of_iperf_2_count_repeats_and_say_segment_and_round_trip():
    results = read_results((TEXTS / "networks/second-loss-iperf2.txt").read_text(), "f")
    (row,) = results.observations
    assert (row.how["segment"], row.how["round trip"]) == ("1448", "4382 us")
    assert [statement.value for statement in results.posted.stated("lost packets")] == ["158 retransmits"]


def test_segments_are_those_that_the_command_asks_for():
    assert rows("networks/second-mss-option")[0].how["segment"] == "100"


@pytest.mark.parametrize(("name", "steady"), [("second-throttled-300", True), ("long-reads", False)])
def test_samples_of_fio_that_are_all_alike_are_no_drives_own(name: str, steady: bool):
    assert (rows(f"storage/{name}")[0].how.get("samples") == "all alike") is steady


@pytest.mark.parametrize(
    ("words", "line"),
    [("1 Gbit/s between two clouds, and iperf3 shows this.", "1 Gb/s"), ("We have a 1 Gbit/s fibre there.", "1 Gb/s"),
     ("We see 1 Gbit/s between two clouds.", "")],
)  # fmt: skip
def test_a_sentence_that_begins_with_a_rate_between_two_places_names_their_line(words: str, line: str):
    text = f"{words}\n[  5]   0.00-3.00   sec  33.4 MBytes  93.5 Mbits/sec                  receiver\n"
    stated = read_results(text, "f").posted.stated("line")
    assert [statement.value for statement in stated] == ([line] if line else [])


def test_intervals_and_samples_that_are_no_figures_end_in_no_traceback():
    run = "".join(f"[  5]   {n}.00-{n + 1}.00   sec  1.00 MBytes  1.2.3 Mbits/sec\n" for n in range(3))
    result = "[  5]   0.00-3.00   sec  3.00 MBytes  8.39 Mbits/sec                  receiver\n"
    assert read_results(run + result, "f").observations[0].value == pytest.approx(8.39e6 / 8)
    text = (TEXTS / "storage/second-throttled-300.txt").read_text().replace("stdev= 0.00", "stdev= 0.0.0")
    assert "samples" not in read_results(text, "f").observations[0].how
