"""Outputs of tools as other versions, other options, pages and terminals give them have the rows that they had."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise
from typing import Any

import pytest
from readers.rewritings import REWRITINGS, compared, outputs, rows
from readers.tool_versions import VERSIONS, bandwidth_test_other_device, p2p_reads

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results
from lanewise.results.observation import Observation

OUTPUTS = outputs()
ROWS = {name: rows(text) for name, text in OUTPUTS.items()}
# What a test reads of each rewriting: the program benchmarks/check_other_versions.py reads all.
_MOST = 10
# A line that a terminal broke within its heads, or a fraction of three digits, cannot be told from another thing.
_REFUSED = {"100 columns", "132 columns", "decimal commas"}
_FIGURE = re.compile(r"(?<![\w.,:/\-])(\d+)\.(\d+)(?=[\s|)]|$)")


def changed_by(name: str, rewriting) -> list[tuple[str, str]]:
    """Some outputs that a rewriting changes, picked by the hash of their names, each with its new text."""
    order = sorted(OUTPUTS, key=lambda path: hashlib.sha256(f"{name} {path}".encode()).hexdigest())
    texts = ((path, rewriting(OUTPUTS[path])) for path in order)
    return [(path, text) for path, text in texts if text != OUTPUTS[path]][:_MOST]


@pytest.mark.parametrize("name", sorted(VERSIONS))
def test_other_versions_and_options_of_a_tool_give_the_same_rows(name: str):
    rewritten = changed_by(name, VERSIONS[name])
    assert rewritten, "no captured output is of that tool"
    assert {path: compared(ROWS[path], rows(text)) for path, text in rewritten} == dict.fromkeys(
        (path for path, _ in rewritten), "equal"
    )


def rows_read(text: str) -> list[Observation]:
    """The rows of a text that can be read."""
    found = rows(text)
    assert not isinstance(found, str), found
    return list(found)


@pytest.mark.parametrize("name", sorted(REWRITINGS))
def test_what_pages_and_terminals_make_of_an_output_changes_no_row(name: str):
    rewritten = changed_by(name, REWRITINGS[name])
    allowed = {"equal", "refused"} if name in _REFUSED else {"equal"}
    seen = {path: compared(ROWS[path], rows(text)) for path, text in rewritten if path not in _AMBIGUOUS.get(name, ())}
    assert {path: what for path, what in seen.items() if what not in allowed} == {}
    assert "equal" in seen.values()


# 13,400 GBps may be thirteen thousand; of a text with two or three figures nothing says what its commas are. A line of
# 100 columns of which only one is broken.
_AMBIGUOUS = {
    "decimal commas": (
        "checking/pasted/b-09-rvs.txt", "checking/pasted/a-22-safetensors.txt", "checking/pasted/b-29-hdparm.txt",
        "checking/provoked/one-gpu_copy-host.txt",
    ),
    "100 columns": (
        "readers/data/fio-3.txt", "readers/data/torch-all-reduce.txt", "checking/pasted/a-09-dcgmproftester.txt",
        "checking/provoked/storage/buffered-writes.txt",
    ),
    "a list": ("checking/provoked/networks/third-backup-beside.txt",),
}  # fmt: skip


def test_p2p_reads_move_data_the_other_way():
    text = OUTPUTS["readers/data/p2p.txt"]
    written, read = (
        {row.flow: row.value for row in rows_read(each) if "P2P=Enabled" in row.scenario and row.metric == "goodput"}
        for each in (text, p2p_reads(text))
    )
    assert {"->".join(reversed(flow.split("->"))): value for flow, value in written.items()} == read


def test_the_gpu_of_bandwidth_test_is_the_one_that_its_head_names():
    flows = {row.flow for row in rows_read(bandwidth_test_other_device(OUTPUTS["readers/data/bandwidth-test.txt"]))}
    assert flows == {"host0->gpu4", "gpu4->host0", "gpu4->gpu4"}


@pytest.mark.parametrize("name", sorted(path for path in OUTPUTS if path.startswith("readers/data")))
def test_a_figure_four_times_as_large_scales_its_row_alone(name: str):
    text = OUTPUTS[name]
    before = rows_read(text)
    moved: set[int] = set()
    for match in _FIGURE.finditer(text):
        larger = f"{4 * float(match[0]):.{len(match[2])}f}"
        after = rows_read(text[: match.start()] + larger + text[match.end() :])
        assert len(after) == len(before), match[0]
        pairs = enumerate(zip(before, after, strict=True))
        changed = [(at, (b.value or 0.0) / (a.value or 1.0)) for at, (a, b) in pairs if a != b]
        assert len(changed) < 2, match[0]
        assert [factor for _, factor in changed] == pytest.approx([4] * len(changed), rel=1e-3)
        moved |= {at for at, _ in changed}
    whole = {at for at, row in enumerate(before) if not _is_shown_with_a_point(row, text)}
    assert moved | whole == set(range(len(before)))


def _is_shown_with_a_point(row, text: str) -> bool:
    """Whether the value stands in the text with decimals, in the unit of the row."""
    shown = row.display(row.value)
    return any(
        float(match[0]) * factor == pytest.approx(shown, rel=1e-9) for match in _FIGURE.finditer(text)
        for factor in (1, 0.5, 1e-3, 0.125)
    )  # fmt: skip


# A copy of a terminal ends anywhere, also within a figure.
@pytest.mark.parametrize("name", [
    "p2p.txt", "nvbandwidth-0.8.txt", "bus-grind.txt", "transfer-bench.txt", "rocm-bandwidth.txt", "ib_write_bw.txt",
    "gdsio.txt", "bandwidth-test.txt",
])  # fmt: skip
@pytest.mark.parametrize("step", [1, 7])
def test_of_a_text_that_lost_its_end_nothing_else_is_read(name: str, step: int):
    text = OUTPUTS[f"readers/data/{name}"]
    for end in range(len(text) // 3, len(text), 17 * step):
        after = rows(text[:end])
        if not isinstance(after, str) and after[0].how["tool"] != "plain text":
            assert compared(ROWS[f"readers/data/{name}"], after) in ("equal", "fewer", "settings"), text[end - 40 : end]


def test_ranks_whose_list_lost_its_first_lines_are_counted():
    text = OUTPUTS["readers/data/nccl-tests.txt"]
    lost = text[text.index("#  Rank  2") :]
    assert compared(ROWS["readers/data/nccl-tests.txt"], rows(f"# all_reduce_perf\n{lost}")) == "equal"


def test_outputs_of_two_tools_in_one_text_are_read_as_each_alone():
    tools = "nvbandwidth-0.8 nccl-tests fio-3 ib_write_bw nixlbench rocm-bandwidth p2p osu-bw iperf3"
    names = [f"readers/data/{name}.txt" for name in tools.split()]
    for one, other in (*pairwise(names), *pairwise(names[::-1])):
        together = rows(f"{OUTPUTS[one]}\n\n{OUTPUTS[other]}")
        assert compared([*ROWS[one], *ROWS[other]], together) == "equal", (one, other)


IPERF: dict[str, Any] = {
    "start": {"version": "iperf 3.16", "test_start": {"protocol": "TCP", "num_streams": 2, "reverse": 0}},
    "intervals": [{"sum": {"start": 0, "end": 1.0, "bits_per_second": 3.6e10}}],
    "end": {
        "sum_sent": {"start": 0, "end": 10.0, "bits_per_second": 3.54e10, "retransmits": 0},
        "sum_received": {"start": 0, "end": 10.04, "bits_per_second": 3.52e10},
    },
}
NCCL: dict[str, Any] = {
    "version": 1, "args": ["./build/all_reduce_perf", "-g", "4"], "nccl_version": 22809,
    "config": {"nthreads": 1, "ngpus": 4, "devices": [
        {"rank": rank, "group": 0, "pid": 5092, "hostname": "node1", "device": rank, "device_hex": "[0000:07:00]",
         "device_info": "NVIDIA A100-SXM4-80GB"} for rank in range(4)]},
    "results": [
        {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "-1",
         "out_of_place": {"time": 1760.2, "alg_bw": out * 2 / 3, "bus_bw": out, "nwrong": 0.0},
         "in_place": {"time": 1757.4, "alg_bw": within * 2 / 3, "bus_bw": within, "nwrong": None}}
        for size, out, within in ((268435456, 228.75, 229.11), (536870912, 232.0, 232.08))],
}  # fmt: skip


@pytest.mark.parametrize(("data", "name"), [(IPERF, "iperf3"), (NCCL, "nccl-tests")])
@pytest.mark.parametrize("indent", [None, 1])
def test_the_json_of_a_tool_says_what_its_text_says(data, name: str, indent):
    text = json.dumps(data, indent=indent)
    assert compared(ROWS[f"readers/data/{name}.txt"], rows(text)) == "equal"
    assert len(rows(f"{text}\n{text}\n")) == 2 * len(ROWS[f"readers/data/{name}.txt"])


def test_the_json_of_iperf3_in_reverse_and_both_ways():
    reverse = {**IPERF, "start": {"test_start": {"protocol": "TCP", "num_streams": 2, "reverse": 1}}}
    assert [row.flow for row in rows_read(json.dumps(reverse))] == ["host1->host0"]
    back = {f"{key}_bidir_reverse": value | {"bits_per_second": 8e9} for key, value in IPERF["end"].items()}
    end = IPERF["end"] | back
    both = rows_read(json.dumps(IPERF | {"end": end}))
    assert [(row.flow, row.value) for row in both] == [("host0->host1", 4.4e9), ("host1->host0", 1e9)]


@pytest.mark.parametrize("end", [{}, {"sum_sent": {}}])
def test_a_json_of_iperf3_without_a_rate_is_refused(end):
    with pytest.raises(FormatError, match=r"without a rate|iperf3 says"):
        read_results(json.dumps(IPERF | {"end": end, "intervals": [], "error": "unable to connect"}), "f")


def test_a_json_of_nccl_tests_that_lacks_something_is_refused():
    with pytest.raises(FormatError, match="not as it should be"):
        read_results(json.dumps({**NCCL, "config": {}}), "f")
    with pytest.raises(FormatError, match="no results"):
        read_results(json.dumps({**NCCL, "results": []}), "f")


@pytest.mark.parametrize(("line", "rate"), [
    ("1048576000 bytes transferred in 0.5 secs (2097152000 bytes/sec)", 2.097152e9),
    ("1048576000 bytes (1000.0MB) copied, 0.5 seconds, 2.0GB/s", 2.097152e9),
    ("1048576000 bytes (1,0 GB, 1000 MiB) copied, 0,5 s, 2,1 GB/s", 2.1e9),
])  # fmt: skip
def test_dd_of_other_systems_and_locales(line: str, rate: float):
    (row,) = rows_read(f"$ dd if=/dev/disk2 of=/dev/null bs=1m count=1000\n{line}\n")
    assert (row.flow, row.value) == ("disk2->host0", pytest.approx(rate))


@pytest.mark.parametrize(("word", "rate"), [("48,213", 48.213e9), ("48213,4", 48.2134e9), ("48,213.4", 48.2134e9)])
def test_commas_of_rates_are_thousands_or_a_point(word: str, rate: float):
    head = "Function    Best Rate MB/s  Avg time     Min time     Max time"
    (row,) = rows_read(f"{head}\nTriad:   {word}   0.1 0.1 0.1\n")
    assert row.value == pytest.approx(rate)
