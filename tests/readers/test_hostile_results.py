"""Results that a hostile or broken tool wrote: an error with file and line, whatever the text, and never a hang."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bounded import outcome

from lanewise.errors import FormatError
from lanewise.readers import tool_results
from lanewise.readers.kinds import read_results
from lanewise.readers.posted import statements
from lanewise.readers.tables import timed_sizes
from lanewise.readers.texts import matrix
from lanewise.readers.tools import host_memory
from lanewise.readers.tools.collectives import oneccl, size_tables
from lanewise.readers.tools.gpus import result_tables
from lanewise.readers.tools.networks import cards_and_fabrics
from lanewise.readers.words import spellings

DATA = Path(__file__).parent / "data"
LONG = 400_000


def data(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def perftest_table(above: str, heads: str = "#bytes  #iterations  BW average[MB/sec]") -> str:
    return f"RDMA_Write BW Test\n{above}\n{heads}\n 65536 5000 100.0\n"


# Each would take half an hour or more (quadratic in a text of 400 kB) if its pattern were tried from every letter.
LONG_TEXTS = {
    "blank lines before a JSON": '"nvbandwidth"' + "\n" * LONG,
    "blanks before a colon of perftest": perftest_table(" " * LONG + "x"),
    "one word above a table of perftest": perftest_table("a" * LONG),
    "values with colons above a table of perftest": perftest_table("a:" * (LONG // 2) + "{"),
    "heads of perftest": perftest_table("", "#bytes " + "t_" * (LONG // 2)),
    "titles of perftest": perftest_table("Send_BW_" * (LONG // 8)),
    "a command line of gdsio": "gdsio " * (LONG // 6) + "\n" + data("gdsio.txt").split("\n", 1)[1],
    "results of gdsio without a command line": data("gdsio.txt").split("\n", 1)[1] * 800,
    "a rank line of nccl-tests": data("nccl-tests.txt") + "#  Rank  0 Group  0 Pid" + " " * LONG,
    "a head of mscclpp-test": "#  size" + " " * LONG + "count time algbw busbw\n",
    "ranks of nccl-tests": data("nccl-tests.txt") + "#  Rank  0 Group  0 Pid   1 on n device  0 [0x07] A\n" * 3_000,
    "channels of NCCL": data("p2p.txt") + "NCCL INFO Channel 00 : 0[7] -> 1[b] via SHM/direct\n" * 4_000,
    "transfers of TransferBench": data("transfer-bench.txt")
    + "Transfer 00 | 1.0 GB/s | 1 ms | 1 bytes | G0 -> G0:4 -> G1\n" * 3_000,
    "devices of rocm_bandwidth_test": data("rocm-bandwidth.txt") + "Device: 0,  x\n" * 5_000,
    "a line of dcgmi diag": data("dcgm-diag.txt") + "| PCIe | GPU 0 GPU to Host bandwidth: " + "9" * LONG,
    "cases of nvbandwidth without a matrix": "Running a\n" * (LONG // 10),
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_a_long_text_is_read_in_time_that_grows_with_its_length(text):
    outcome(lambda: read_results(text, "f").tool, mebibytes=4096)


# The same within one line. A line of a file is never as long, and each shorter one would take seconds.
BLANKS = " " * LONG
LONG_LINES = {
    "cells of a table of sizes": lambda: timed_sizes.is_text([f"size{BLANKS}x"]),
    "heads of a table of sizes": lambda: size_tables.is_text([f"size busbw{BLANKS}x"]),
    "heads of oneCCL's benchmark": lambda: oneccl.is_text([f"#bytes{BLANKS}x"]),
    "heads of fabtests": lambda: cards_and_fabrics.is_text([f"bytes {'MB/sec ' * (LONG // 7)}"]),
    "heads of gpu-stream": lambda: result_tables.is_text([f"block {'threads ' * (LONG // 8)}"]),
    "a kernel of STREAM": lambda: host_memory.is_text([f"Copy: 1{BLANKS}x"]),
    "heads of STREAM": lambda: host_memory.is_text(["Copy: 1", "Bandwidth " * (LONG // 10)]),
    "a link of sysfs": lambda: statements.posted_facts([f"current_link_width{BLANKS}x"], "f"),
    "a link of Windows": lambda: statements.posted_facts([f"MaxLinkWidth{BLANKS}x"], "f"),
    "digits of a value": lambda: spellings.rate_or_time("9" * LONG + " x" + BLANKS + "x", bits=False)[1],
    "confidential computing": lambda: statements.posted_facts(["Confidential Compute" + "a" * LONG], "f"),
}


@pytest.mark.parametrize("read", LONG_LINES.values(), ids=LONG_LINES)
def test_a_long_line_is_read_in_time_that_grows_with_its_length(read):
    outcome(read, mebibytes=4096)


class CountedLines(list[str]):
    """Lines that count how often one of them is looked at."""

    looks = 0

    def __getitem__(self, at):
        self.looks += 1
        return super().__getitem__(at)

    def __iter__(self):
        for line in super().__iter__():
            self.looks += 1
            yield line


def test_where_a_text_ends_is_not_searched_for_below_every_matrix():
    def looks(matrices: int) -> int:
        lines = CountedLines(["  0 1", "0 1.0 2.0", "1 1.0 2.0", ""] * matrices)
        for at in range(matrices):
            assert len(matrix(lines, 4 * at, "f")[0]) == 2
        return lines.looks

    assert looks(40) <= 2.2 * looks(20)


def test_every_line_is_looked_at_once_for_all_heads_of_a_table_of_sizes():
    lines = CountedLines(["size, rate (GB/s)"] * 50 + ["no row"] * 50)
    assert not timed_sizes.is_text(lines)
    assert lines.looks <= 2 * len(lines)


def test_what_moved_is_asked_once_a_table_of_sizes(monkeypatch):
    asked = []
    kind = timed_sizes._kind

    def counted(words, above):
        asked.append(words)
        return kind(words, above)

    monkeypatch.setattr(timed_sizes, "_kind", counted)
    text = "host to device\nsize (KB), rate (GB/s)\n" + "4, 1.5\n" * 30
    assert len(read_results(text, "f").observations) == 30
    assert asked == ["rate (GB/s)"]


def test_a_matrix_of_thousands_of_gpus_is_refused_before_its_flows_are_written_out():
    heads = " ".join(map(str, range(100_000)))
    text = f"Running all_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n {heads}\n0 {heads}\n"
    assert outcome(lambda: read_results(text, "f")).startswith("FormatError: f:")
    text = text.replace(heads, " ".join(map(str, range(1000))))
    assert outcome(lambda: read_results(text, "f")).startswith("FormatError: f:3: 1,000 columns")


def test_more_rows_than_any_machine_gives_are_refused(monkeypatch):
    monkeypatch.setattr(tool_results, "MAX_ROWS", 12_000)  # 200,000 take seconds to read
    heads = " ".join(map(str, range(100)))
    rows = "\n".join(f"{row} {heads}" for row in range(100))
    text = f"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n {heads}\n{rows}\n"
    assert outcome(lambda: read_results(text, "f").tool) == "p2pBandwidthLatencyTest"
    assert "more than 12,000 values" in outcome(lambda: read_results(text * 2, "f"))


BAD_FIGURES = [
    ("gdsio.txt", "6.5", "3.0.0", 0),
    ("gdsio.txt", "Threads: 24", "Threads: " + "9" * 5000, 0),
    ("bandwidth-test.txt", "12.3", "9" * 400, 0),
    ("bandwidth-test.txt", "32000000", "9" * 5000, 0),
    ("iperf3.txt", "10.00", "3.0.0", 0),
    ("iperf3.txt", "0.00-", "3.0.0-", 0),
    ("transfer-bench.txt", "CPU 00       GPU 00", f"CPU 00       GPU {'9' * 5000}", 17),
    ("transfer-bench.txt", "45.11", "4_5.11", 0),
    ("gdsio.txt", "6.5", "\u0666.5", 0),
    ("p2p.txt", "26.10", "1e999", 0),
    ("p2p.txt", "26.10", "-26.10", 0),
    ("p2p.txt", "26.10", "infinity", 0),
    ("nvbandwidth-0.8.txt", "55.51", "-55.51", 0),
    ("ib_write_bw.txt", "390.40", "-390.40", 0),
    ("ib_write_bw.txt", " 65536 ", f" {'9' * 400} ", 0),
    ("ib_write_bw.txt", " 65536 ", " -65536 ", 0),
    ("ib_write_bw.json", "65536", "9" * 400, 0),
    ("ib_write_bw.json", "780.80", "-780.80", 0),
    ("nvbandwidth-0.8.json", '"390.2"', "1e999", 0),
    ("nvbandwidth-0.8.json", '"390.2"', "NaN", 0),
    ("nvbandwidth-0.8.json", '"390.2"', "-390.2", -1),
    ("nvbandwidth-0.8.json", '"390.2"', '"inf"', -1),
    ("fio.json", "2000000000", "1e999", 0),
    ("fio.json", "2000000000", "-2000000000", -1),
    ("fio.json", "2000000000", "9" * 400, -1),
]


@pytest.mark.parametrize(("name", "old", "new", "line"), BAD_FIGURES)
def test_a_figure_that_is_none_is_refused_with_its_line(name, old, new, line):
    text = data(name)
    assert old in text
    text = text.replace(old, new, 1)
    with pytest.raises(FormatError) as caught:
        read_results(text, name)
    # Of a JSON value only what its reader refuses has a line; the rest names job or case.
    expected = line or text[: text.index(new)].count("\n") + 1
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == (name, max(0, expected))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("interval", ["0.00-0.00", "9.00-1.00"])
def test_an_interval_of_iperf_without_length_is_read(interval):
    line = f"[  5]   {interval}   sec  2.10 GBytes  18.0 Gbits/sec    0\n"
    assert [row.metric for row in read_results(line, "f").observations] == ["goodput"]


def fio(**changes: object) -> str:
    job = {"jobname": "j", "read": {"bw": 1024, "io_kbytes": 9}, **changes}
    return json.dumps({"fio version": "fio-3.1", "jobs": [job]})


@pytest.mark.parametrize(
    "text",
    [
        fio(groupid=[1]),
        fio(**{"job options": [1]}),
        fio(read={"bw": "x", "io_kbytes": 9}),
        fio(read={"bw": [1], "io_kbytes": 9}),
        json.dumps({"fio version": 3, "global options": [1], "jobs": [{"jobname": "j"}]}),
        json.dumps({"nvbandwidth": {"version": None, "testcases": [{"name": "device_local_copy"}, 3, None]}}),
        json.dumps({"nvbandwidth": {"testcases": [{"name": "device_local_copy", "bandwidth_matrix": [[]]}]}}),
        json.dumps({"nvbandwidth": {"testcases": [{"name": "device_local_copy", "bandwidth_matrix": [[10**400]]}]}}),
        '{"scenario": "\\ud800", "flow": "", "metric": "", "value": 1e999}',
        '{"scenario":1,"flow":1,"metric":1,"value":1}',
        '{"scenario":' + "[" * 100_000 + '"flow":"metric":"value":',
        '{"schema": "lanewise.run/2", "x": ' + "9" * 5000 + "}",
    ],
)
def test_json_of_another_shape_ends_in_an_error_or_is_read(text):
    outcome(lambda: read_results(text, "f"))


def test_digits_of_other_scripts_are_no_numbers():
    text = fio(**{"job options": {"iodepth": "²"}})
    assert read_results(text, "f").observations[0].settings["depth"] == 1


def test_a_string_times_1024_takes_no_memory():
    text = fio(read={"bw": "x" * 20_000_000, "io_kbytes": 9})
    assert "is not a number" in outcome(lambda: read_results(text, "f"))


def test_a_file_without_end_is_refused(tmp_path):
    from lanewise.api import read_results as read

    assert "more than 512 MiB" in outcome(lambda: read("/dev/zero"), mebibytes=2048)


@pytest.mark.parametrize("words", ["LatencyM", "Latency" + 300 * "x"])
def test_a_title_of_a_matrix_that_says_more_is_read(words: str):
    matrix = f"P2P=Enabled {words} Matrix (us)\n   GPU     0      1\n     0   1.00   2.50\n     1   2.50   1.00\n"
    assert read_results(matrix, "f").observations
