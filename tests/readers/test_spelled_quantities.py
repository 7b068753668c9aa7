"""Quantities as people spell them in questions."""

from __future__ import annotations

import pytest

from lanewise.errors import FormatError
from lanewise.readers.typed import figures
from lanewise.readers.words.spellings import line, rate_or_time, size


def _row(fields: str) -> figures.ImportedResults:
    return figures.read_text(f"lanewise-rows: 1\nrows:\n  - {{{fields}}}\n", "typed.yaml")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("13 Gbps", 13e9 / 8), ("96.6Gbps", 96.6e9 / 8), ("71 mbps", 71e6 / 8), ("12.5 Mbit/s", 12.5e6 / 8),
        ("9.41 Gbits/sec", 9.41e9 / 8), ("3 GBps", 3e9), ("112 MBytes/sec", 112e6), ("2 GiB/sec", 2 * 2**30),
        ("~175 MB/s", 175e6), ("4-6 MB/s", 5e6), ("200 to 300 MB/s", 250e6), ("940 Mb/s", 940e6 / 8),
    ],
)  # fmt: skip
def test_rates_over_a_network_are_read_as_people_spell_them(text: str, rate: float) -> None:
    row = _row(f'flows: "host0->host1", value: {text}').observations[0]
    assert row.metric == "goodput"
    assert row.value == pytest.approx(rate)


def test_a_small_b_counts_bytes_where_no_network_is_and_is_refused_where_one_is() -> None:
    row = _row('flows: "sda->host0", value: 6mb/s').observations[0]
    assert row.value == 6e6
    assert row.note == "mb/s taken for MB/s"
    with pytest.raises(FormatError, match="'6mb/s' is no rate"):
        _row('flows: "host0->host1", value: 6mb/s')


@pytest.mark.parametrize(
    ("text", "count", "unit"),
    [
        ("30000 infer/s", 30000, "inferences/s"), ("3.7k hashes/s", 3700, "hashes/s"),
        ("1045.8 tok/s", 1045.8, "tokens/s"), ("1.5k req/s", 1500, "requests/s"), ("12 rps", 12, "requests/s"),
        ("14.88 Mpps", 14.88e6, "packets/s"), ("300k IOPS", 3e5, "IOPS"), ("5k IO/s", 5000, "IOPS"),
        ("60 fps", 60, "frames/s"), ("7 ops", 7, "operations/s"), ("40 tps", 40, "1/s"),
        ("120.5 t/s", 120.5, "tokens/s"), ("9 T/s", 9, "tokens/s"), ("22 MH/s", 22e6, "hashes/s"),
        ("24 s/it", 1 / 24, "1/s"),
        ("125 ms/token", 8, "1/s"), ("40 ms per step", 25, "1/s"), ("30 tokens/s (decode)", 30, "tokens/s"),
    ],
)  # fmt: skip
def test_counts_a_second(text: str, count: float, unit: str) -> None:
    row = _row(f'flows: "host0->gpu0", value: {text}').observations[0]
    assert (row.metric, row.display_unit) == ("iops", unit)
    assert row.value == pytest.approx(count)


@pytest.mark.parametrize("text", ["12 GB/s busbw", "12 GB/s (peak)", "12 GB/s, measured twice", "~12 GB/s read"])
def test_what_people_add_to_a_rate_changes_nothing(text: str) -> None:
    assert _row(f'flows: "nvme0->host0", value: "{text}"').observations[0].value == 12e9


@pytest.mark.parametrize("text", ["16 GT/s", "12 GB/s or 14", "12 GB/s x 4", "12 GB/s per node and GPU"])
def test_words_that_change_what_a_rate_is_of_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="is no rate and no time"):
        _row(f'flows: "nvme0->host0", value: "{text}"')


def test_counts_and_lines_may_have_their_words() -> None:
    words = 'threads: 8 streams, depth: QD32, hosts: 2 nodes, bytes: 128K buffers, line: "10GbE, bonded"'
    row = _row(f'flows: "host0->host1", value: 9 Gb/s, {words}').observations[0]
    assert row.settings == {"threads": 8, "depth": 32, "hosts": 2, "bytes": 131072}
    assert row.how["line"] == "10 Gb/s"


@pytest.mark.parametrize("words", ["threads: many", "depth: 0", "hosts: 2.5", "ranks: -4", "threads: 4-8"])
def test_what_is_no_number_of_threads_or_hosts_is_refused(words: str) -> None:
    with pytest.raises(FormatError, match="takes whole numbers from 1 to 1073741824"):
        _row(f'flows: "host0->host1", value: 9 Gb/s, {words}')


def test_packets_of_a_size_are_a_rate() -> None:
    row = _row('flows: "host0->host1", value: 14.88 Mpps, bytes: 64').observations[0]
    assert row.value == pytest.approx(14.88e6 * 64)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("128K", 131072), ("1M", 1 << 20), ("4 KiB", 4096), ("64 KB", 64000), ("2097152", 1 << 21)]
)
def test_sizes_of_requests_as_fio_writes_them(text: str, bytes_: int) -> None:
    assert _row(f'flows: "nvme0->host0", value: 1 GB/s, bytes: {text}').observations[0].settings["bytes"] == bytes_


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2x100 Gb/s", "200 Gb/s"), ("2 x 100GbE", "200 Gb/s"), ("4×HDR", "800 Gb/s"), ("8x 400Gbps", "3200 Gb/s"),
        ("2 x 2.5G", "5 Gb/s"), ("2x fast", "2x fast"),
    ],
)  # fmt: skip
def test_several_lines_are_added_up(text: str, rate: str) -> None:
    assert line(text) == rate


def test_a_line_is_spelled_as_freely_as_a_rate() -> None:
    results = figures.read_text(
        'lanewise-rows: 1\nstated: {line: 25 Gbit/s}\nrows:\n  - {flows: "host0->host1", value: 1 Gbps, line: 10GbE}\n'
        .replace("10GbE", "10Gbps"), "typed.yaml",
    )  # fmt: skip
    assert results.observations[0].how["line"] == "10 Gb/s"
    assert [statement.value for statement in results.posted.statements] == ["25 Gb/s"]


@pytest.mark.parametrize("text", ["12 apples", "fast", "3 GT/s", "5 Gfoo/s"])
def test_what_is_no_quantity_stays_an_error(text: str) -> None:
    with pytest.raises(FormatError, match=r"no rate and no time|not a quantity|unknown unit"):
        _row(f'flows: "host0->host1", value: {text}')


def test_units_that_lanewise_knows_stay_as_they_are() -> None:
    for text in ("12.3 GB/s", "100 Gb/s", "2.1 us", "1,238 MiB/s", "1e-3 s"):
        assert rate_or_time(text, bits=True) == (text, "")
    assert [size(text) for text in ("64 KB", "4 KiB", "100")] == ["64 KB", "4 KiB", "100"]
