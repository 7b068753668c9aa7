"""Causes that runs of iperf, fio and others show themselves, and when they do not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.causes.drive_runs import _limit
from lanewise.checking.checkup import Checkup
from lanewise.checking.symptom import keeps_to, said_quantity
from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results

HEAD = "[ ID] Interval           Transfer     Bitrate         Retr\n"
RUN = (
    "Connecting to host b, port 5201\n[  5]   0.00-1.00   sec   100 MBytes   839 Mbits/sec    0    400 KBytes\n"
    + HEAD + "[  5]   0.00-10.00  sec  1.00 GBytes  {rate} Mbits/sec    {repeats}             sender\n"
    "[  5]   0.00-10.00  sec  1.00 GBytes  {rate} Mbits/sec                  receiver\n\niperf Done.\n"
)  # fmt: skip
SUM = RUN.replace("[  5]   0.00-10", "[  7]   0.00-10.00  sec  1.00 GBytes  1 Mbits/sec  receiver\n[SUM]   0.00-10")


def checked(text: str, folder: Path) -> Checkup:
    path = folder / "post.txt"
    path.write_text(text)
    return api.check([path])


def causes(text: str, folder: Path) -> list[str]:
    return first_causes(checked(text, folder))


def run(rate: float, repeats: int = 0) -> str:
    return RUN.format(rate=rate, repeats=repeats)


def test_a_rate_that_the_command_asks_for_comes_first_only_where_it_is_reached(tmp_path):
    command = "Two hosts with gigabit Ethernet.\n$ iperf3 -c b -b {}\n"
    assert causes(command.format("300M") + run(300), tmp_path)[0] == "setting"
    assert causes(command.format("900M") + run(300), tmp_path)[0] == "software"


def test_a_long_round_trip_is_a_window_unless_packets_are_lost_or_a_lesser_port_is_full(tmp_path):
    words = "Gigabit line between two sites, a ping of 20 ms.\n"
    assert causes(words + run(110), tmp_path)[0] == "window"
    assert causes(words + run(110, repeats=9000), tmp_path)[0] == "congestion"
    assert causes(words + run(94.1), tmp_path) == ["port", "window"]  # one of the two is chance
    assert "window" not in causes(words.replace("20", "0.2") + run(110), tmp_path)


def test_retransmits_at_the_payload_of_a_lesser_port_come_after_it(tmp_path):
    words = "Two hosts with gigabit Ethernet.\n"
    assert causes(words + run(94.1, repeats=400), tmp_path) == ["port", "congestion"]
    assert causes(words + run(310, repeats=4000), tmp_path)[0] == "congestion"


def test_more_connections_that_carry_as_much_meet_a_limit_and_those_that_carry_more_have_windows(tmp_path):
    words = "Two hosts with gigabit Ethernet.\n"
    several = SUM.format(rate=380, repeats=0)
    assert causes(words + run(379) + several, tmp_path)[0] == "setting"
    assert causes(words + run(120) + several.replace("380", "930"), tmp_path)[0] == "window"


def test_a_tool_that_hardly_used_its_cores_waited_for_others(tmp_path):
    text = "Two hosts with 10GbE.\n" + run(4300).replace("iperf Done", "CPU Utilization: local/sender {}% "
                                                         "(0.3%u/21.3%s), remote/receiver 11.8% (1.0%u/10.8%s)")
    assert "others" in causes(text.format(21.6), tmp_path)
    assert "others" not in causes(text.format(99.6), tmp_path)


def test_the_other_direction_of_one_tool_is_no_other_program(tmp_path):
    reverse = "Reverse mode, remote host b is sending\n"
    back = run(95).replace("[  5]   0.00-1.00 ", f"{reverse}[  5]   0.00-1.00 ")
    text = "Two hosts with 2.5GbE.\n" + run(2350) + back
    assert causes(text, tmp_path)[0] == "port"


@pytest.mark.parametrize(("median", "cause"), [(8.9, "others"), (70.0, "setting")])
def test_messages_that_are_late_alike_have_another_cause_than_a_few_very_late_ones(median, cause, tmp_path):
    text = (
        "Two hosts with 10GbE, sockperf should show about 15 usec.\nsockperf: Summary: Latency is 89.068 usec\n"
        f"sockperf: ---> percentile 50.000 =  {median:8.3f}\n"
    )
    assert causes(text, tmp_path)[0] == cause


@pytest.mark.parametrize(
    ("words", "verdict"),
    [("The volume is rated for 60,000 IOPS.", "slow"), ("It had 8,000 IOPS last week.", "unknown"),
     ("It had 60,000 IOPS last week.", "slow"), ("It has 60,000 IOPS.", "unknown"), ("", "unknown")],
)  # fmt: skip
def test_counts_a_second_are_compared_with_what_the_words_expect_or_say_of_another_time(words, verdict, tmp_path):
    text = (Path(__file__).parent / "provoked/storage/iops-at-depth-1.txt").read_text().splitlines(keepends=True)
    assert verdict_of(checked(f"{words}\n{''.join(text[1:])}", tmp_path)) == verdict


def test_a_figure_of_one_kernel_is_of_that_kernel(tmp_path):
    stream = "Function    Best Rate MB/s\nCopy:       {}     0.1  0.1  0.1\nTriad:      {}     0.1  0.1  0.1\n"
    words = "STREAM's Triad was 15 GB/s on this machine.\n"
    assert verdict_of(checked(words + stream.format(16000.0, 7000.0), tmp_path)) == "slow"
    assert verdict_of(checked(words + stream.format(7000.0, 14000.0), tmp_path)) == "unknown"


def test_limits_are_round_numbers():
    found = [_limit(number) for number in (3001, 100.3, 125.2, 249, 3100, 128, 0.5, 99.6, 7987)]
    assert found == [3000, 100, 125, 250, 0, 0, 0, 100, 0]


def test_a_run_that_stops_after_its_first_packets_has_an_mtu_that_is_too_large_on_the_way(tmp_path):
    text = (Path(__file__).parent / "provoked/networks/large-packets-vanish.txt").read_text()
    assert causes(text, tmp_path)[0] == "mtu"
    again = text.replace("2.00-3.00   sec  0.00 Bytes  0.00 bits/sec", "2.00-3.00   sec  9.00 KBytes  73.0 Kbits/sec")
    assert "mtu" not in causes(again, tmp_path)


def test_a_faster_kernel_of_stream_is_no_evidence_against_the_memory(tmp_path):
    stream = "Function    Best Rate MB/s\nCopy:      16000.0     0.1  0.1  0.1\nTriad:      7000.0     0.1  0.1  0.1\n"
    checkup = checked("STREAM's Triad was 15 GB/s on this machine.\n" + stream, tmp_path)
    (finding,) = (finding for finding in checkup.findings if finding.kind == "slow")
    assert [(cause.key[0], bool(cause.evidence)) for cause in finding.causes[:2]] == [
        ("others", True), ("software", False),
    ]  # fmt: skip


def test_a_run_that_nothing_names_and_that_was_slower_than_another_may_have_had_company(tmp_path):
    text = "Two hosts with gigabit Ethernet, twice:\n" + run(937)
    assert "others" in causes(text + run(253), tmp_path)
    assert "others" not in causes(text + "with the new driver:\n" + run(253), tmp_path)


@pytest.mark.parametrize(
    ("words", "verdict"),
    [("Yesterday this volume read 950 MB/s.", "slow"), ("The array reads 1000 MB/s according to its vendor.", "slow"),
     ("The array reads 1000 MB/s.", "unknown")],
)  # fmt: skip
def test_what_was_there_on_another_day_and_what_a_vendor_says_is_expected(words, verdict, tmp_path):
    text = (Path(__file__).parent / "provoked/storage/second-two-jobs-beside.txt").read_text().splitlines(keepends=True)
    assert verdict_of(checked(f"{words}\n{''.join(text[1:])}", tmp_path)) == verdict


def test_what_was_faster_before_has_no_window_now(tmp_path):
    words = "Gigabit line between two sites, a ping of 20 ms{}.\n"
    assert causes(words.format(", 940 Mbit/s last week") + run(110), tmp_path)[0] == "others"
    assert causes(words.format("") + run(110), tmp_path)[0] == "window"


def test_no_rate_of_a_connection_is_a_cause_of_a_late_message(tmp_path):
    text = "qperf latency between two hosts, 10GbE. Expected: below 20 us.\ntcp_lat:\n    latency  =  1.81 ms\n"
    (finding,) = (finding for finding in checked(text, tmp_path).findings if finding.kind == "slow")
    assert not any("carries less than the line" in cause.what for cause in finding.causes)


@pytest.mark.parametrize("words", ["16,000 write IOPS", "16k random write IOPS", "16000 IOPS"])
def test_counts_of_reads_or_writes_are_counts(words, tmp_path):
    text = (Path(__file__).parent / "provoked/storage/third-throttled-write-iops.txt").read_text()
    lines = text.splitlines(keepends=True)
    assert verdict_of(checked(f"The volume should have {words}.\n{''.join(lines[1:])}", tmp_path)) == "slow"


def test_captured_runs_with_a_rate_asked_for_either_keep_it_or_are_far_from_it():
    shares = []
    for file in (Path(__file__).parent / "provoked" / "networks").glob("*.txt"):
        with suppress(FormatError):
            for row in read_results(file.read_text(encoding="utf-8"), file.name).observations:
                asked = said_quantity(row, "asked for", "B/s") * max(1, row.settings.get("connections", 1))
                shares += [(row.value / asked, keeps_to(row.value, asked))] if asked and row.value else []
    assert len(shares) >= 5
    assert all(kept is (share > 0.5) for share, kept in shares), shares
