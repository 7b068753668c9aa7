"""Figures of plain text: quantities, their names, and time that grows with the length alone."""

from __future__ import annotations

import pytest
from bounded import outcome

from lanewise.readers.kinds import read_plain
from lanewise.readers.plain_text.text import MOST_FIGURES
from lanewise.readers.words.clauses import bare_quantities
from lanewise.readers.words.devices import copy_of
from lanewise.readers.words.gpus import gpus_in, spoken_facts
from lanewise.readers.words.quantities import quantities

LONG = 400_000


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("send bw: 424.788240 MB/s 269.406982ms", [424.78824e6]),
        ("read : io=285240KB, bw=324535 B/s, iops=79 , runt=900011msec", [324535.0, 79.0]),
        ("Connections=8 : throughput=11.96Gbps cycles=17.90", [1.495e9]),
        ("8589934592 bytes (8,6 GB) copied, 109,603 s, 78,4 MB/s", [78.4e6]),
        ("1,234,567 IOPS and 1.5M IOPS", [1234567.0, 1.5e6]),
        ("30-40 MB/s", [35e6]),
        ("1006.0 tokens/s, 20.13 requests/s, 14.88 Mpps, 155961 msg/sec", [1006.0, 20.13, 14.88e6, 155961.0]),
        ("p99 latency 5.2 us", [5.2e-6]),
        ("took 5.2 us", []),
        ("lr 3e-4 samples/s 1204.3", []),
        ("100 MB of data in 3 s, v2.3 MB/ss", []),
    ],
)
def test_quantities_of_a_line(line, values):
    assert [pytest.approx(quantity.value) for quantity in quantities(line, bits=False)] == values


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("iperf 25 Gb/s, TestPMD 10", [10]),
        ("23.2 GB/s, 42 after other settings", [42]),
        ("200 MB/s with kernel 5.0, 1 MB/s with 5.4", []),
        ("gets 200 of 400 Gb/s", [200]),
        ("from 6.08 to 13.17 GB/s", [6.08]),
        ("with MTU 1500 5.8 Gb/s, 9.4 with 9000", [9.4]),
        ("16 GB/s where more than 40 are expected", [40]),
        ("3.3 Gb/s of 10; the card is x4", [10]),
        ("6 Gb/s over a card of 10", [10]),
        ("440 MB/s, 512 in flight", []),
        ("3 GB/s on an RTX 5090.", []),
        ("3 GB/s, later 640 MB/s to nvme0n1 (Samsung 980).", []),
        ("| 3 GB/s | 40 |", []),
        ("iops=3000, bw=20 MB/s (21)", [21]),
        ("3 GB/s: 123456789", []),
        ("A100 gemm 8192: 5.2 ms 211 TFLOPS 77 GB/s", []),
    ],
)
def test_numbers_that_take_the_unit_of_their_sentence(line, values):
    found = quantities(line, bits=True)
    scale = next(each.value for each in found if each.si == "B/s") / found[-1].value
    assert scale > 0
    unit = {"Gb/s": 1.25e8, "GB/s": 1e9, "MB/s": 1e6}[found[-1].unit]
    assert [each.value / unit for each in bare_quantities(line, found, bits=True)] == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("eight A100-SXM4-80GB, two sockets", ["A100-SXM4-80GB"]),
        ("RTX PRO 6000 Blackwell and another RTX PRO 6000", ["RTX PRO 6000 Blackwell"]),
        ("an Arc A770 beside an Arc Pro B60", ["Arc A770", "Arc Pro B60"]),
        ("RX 7900 XTX, MI300X, Tesla T4", ["RX 7900 XTX", "MI300X", "Tesla T4"]),
        ("the L4 of the network stack", []),
        ("copies to an L4 GPU", ["L4"]),
        ("an A1000000 and the P100000", []),
    ],
)
def test_gpus_that_sentences_name(text, names):
    assert gpus_in(text) == names


def test_what_sentences_state_of_the_host():
    facts = spoken_facts(["A V100 in a slot of PCIe 3.0 x8 of an EPYC 7763.", "It runs at Gen1 x4 only."], "f")
    assert facts.title("gpu0") == "V100"
    assert {(each.key, each.value, each.source) for each in facts.statements} == {
        ("slot", "gen3 x8", "f:1"), ("cpu", "EPYC 7763", "f:1"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("H2D ", "host to device"), ("gpu to cpu: ", "device to host"), ("GPU0\u2192GPU1 = ", "peer"),
        ("copies to an RTX 4090 get ", "host to device"), ("from the GPU back ", "device to host"),
        ("all_reduce to the GPU ", ""), ("H2D and D2H together ", ""), ("the card has ", ""),
    ],
)  # fmt: skip
def test_the_ends_of_a_copy_by_its_words(words, path):
    assert copy_of([words]) == path


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Before: Throughput: 20.13 requests/s, 10308.29 tokens/s", ["Before: Throughput", "Before"]),
        ("speed on 0.2.7\nAvg prompt throughput: 1006.0 tokens/s", ["speed on 0.2.7: Avg prompt throughput"]),
        ("MPI ranks 2 | 4 | 8\nMiB BW 11701 | 9021 | 6707", 3),
        ("| Scenario | Throughput Mb/s |\n-----\n| pod-to-pod | 9541.04 |\n| host | 9580 |", 2),
        ("Comm size: 64 bytes; Algo bandwidth: 131.1 GB/s; Bus bandwidth: 229.4 GB/s", ["Bus bandwidth"]),
        ("Algo bandwidth: 131.1 GB/s", 1),
        ("Link 0: 25.781 GB/s\nSpeed: 10000Mb/s\nrate: 100 Gb/sec (4X EDR)", 0),
    ],
)
def test_rows_are_named_by_their_words(text, rows):
    names = [row.scenario for row in read_plain(text, "f").observations]
    assert names == rows if isinstance(rows, list) else len(names) == rows


def test_only_so_many_figures_are_weighed():
    result = read_plain("speed 3 GB/s\n" * (MOST_FIGURES + 50), "f")
    assert len(result.observations) == MOST_FIGURES
    assert f"the first {MOST_FIGURES} figures" in result.notes[0]


# Each would take hours if a pattern could try one letter twice for every other.
HOSTILE = {
    "digits": "9" * LONG,
    "groups of digits": "1,234" * (LONG // 5) + " MB/s",
    "figures in a line": "3 GB/s " * (LONG // 7),
    "lines of figures": ("3 GB/s " * 1100 + "\n") * 50,
    "figures in lines": "before 3 GB/s after 4 GB/s\n" * (LONG // 27),
    "cells": "|" * LONG + " MB/s\n" + "1|" * (LONG // 2),
    "blanks": "a" + " " * LONG + "3 GB/s",
    "words": "expected " * (LONG // 9) + "3 GB/s",
    "clauses": "3 GB/s, 4 with, " * 60 + "\n" + "3 GB/s, 4 with, " * (LONG // 16),
    "names of GPUs": "RTX 3090 " * (LONG // 9) + "3 GB/s",
    "slots": "Gen3 x8 " * (LONG // 8) + "3 GB/s",
    "dashes": "-a" * (LONG // 2) + " 3 GB/s",
    "headings": "with --a=b v1.2.3:\n" * (LONG // 20) + "3 GB/s",
    "short lines": "with " + "--a " * 1900 + "3 GB/s\n" * 300,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_read_in_time_that_grows_with_its_length(text):
    assert "Error" not in outcome(lambda: len(read_plain(text, "f").observations), mebibytes=4096)


def test_a_rate_that_names_the_algorithm_and_the_bus_is_read():
    [row] = read_plain("The algbw = busbw of broadcast is 180 GB/s, we expect 400 GB/s", "f").observations
    assert (row.value, row.how["expected"]) == (180e9, "400 GB/s")


def test_a_share_is_of_what_somebody_calls_full():
    (row,) = read_plain("NVIDIA H200\nh2d 28.1 GB/s (50.2% of 56 GB/s)", "f").observations
    assert (row.value, row.how["expected"], row.how["expectation"]) == (28.1e9, "56 GB/s", "nominal")


@pytest.mark.parametrize(("unit", "flow"), [("GBps", "device->host0"), ("Gbps", "host0->host1")])
def test_a_capital_b_counts_bytes_of_no_network(unit, flow):
    rows = read_plain(f"NVIDIA A30\n  iter   size_MB   {unit}\n0    1   256.0   24.85", "f").observations
    assert [row.flow for row in rows] == [flow]


def test_a_card_is_known_by_its_number_alone():
    assert gpus_in("2x A6000 with a bridge, A4500") == ["A6000", "A4500"]
