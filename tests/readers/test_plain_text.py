"""Figures of plain text: quantities, their names, and time that grows with the length alone."""

from __future__ import annotations

import pytest
from bounded import outcome

from lanewise.readers.kinds import read_plain
from lanewise.readers.plain_text import MOST_FIGURES
from lanewise.readers.text_quantities import quantities

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
        ("100 MB of data in 3 s, v2.3 MB/ss", []),
    ],
)
def test_quantities_of_a_line(line, values):
    assert [pytest.approx(quantity.value) for quantity in quantities(line, bits=False)] == values


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Before: Throughput: 20.13 requests/s, 10308.29 tokens/s", ["Before: Throughput", "Before"]),
        ("speed on 0.2.7\nAvg prompt throughput: 1006.0 tokens/s", ["speed on 0.2.7: Avg prompt throughput"]),
        ("MPI ranks 2 | 4 | 8\nMiB BW 11701 | 9021 | 6707", 3),
        ("| Scenario | Throughput Mb/s |\n-----\n| pod-to-pod | 9541.04 |\n| host | 9580 |", 2),
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
    "dashes": "-a" * (LONG // 2) + " 3 GB/s",
    "headings": "with --a=b v1.2.3:\n" * (LONG // 20) + "3 GB/s",
    "short lines": "with " + "--a " * 1900 + "3 GB/s\n" * 300,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_read_in_time_that_grows_with_its_length(text):
    assert "Error" not in outcome(lambda: len(read_plain(text, "f").observations), mebibytes=4096)
