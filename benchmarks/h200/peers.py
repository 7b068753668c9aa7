"""What nvbandwidth and p2pBandwidthLatencyTest print, as values under the names that `lanewise measure gpu` gives.

A value's name is (scenario, flow, metric), in GB/s, ns (chase_latency) and us (latency).
"""

from __future__ import annotations

import json
import re
import statistics
from typing import TYPE_CHECKING, Any

from lanewise import units

if TYPE_CHECKING:
    from collections.abc import Iterator

Name = tuple[str, str, str]
Values = dict[Name, float]
# Which of our cases and metrics answers each matrix of the CUDA sample: peers reach each other or not, and what is
# shown: of one way each flow, of both ways the sum, and the time of a small copy.
_MATRICES = {
    ("Unidirectional", "Disabled"): ("device_to_device_memcpy_no_p2p", "goodput"),
    ("Unidirectional", "Enabled"): ("device_to_device_memcpy_write_ce", "goodput"),
    ("Bidirectional", "Disabled"): ("device_to_device_bidirectional_memcpy_no_p2p", "total"),
    ("Bidirectional", "Enabled"): ("device_to_device_bidirectional_memcpy_write_ce", "total"),
    ("Latency", "Disabled"): ("device_to_device_launch_latency_no_p2p", "latency"),
    ("Latency", "Enabled"): ("device_to_device_launch_latency", "latency"),
}
# Cases of nvbandwidth that copy both ways by one kernel, half of it each way, and print half of the sum
# (MemcpyInitiatorSMSplitWarp in memcpy.cpp): only sums can be compared.
_HALVES = tuple(
    f"{way}_bidirectional_memcpy_sm" for way in ("host_to_device", "device_to_host", "all_to_host", "host_to_all")
)
# Cases whose kernels run on the source although their names say read (PREFER_SRC_CONTEXT in testcases_sm.cpp).
_PUSHED = {"all_to_one_read_sm": "one_to_all_write_sm", "one_to_all_read_sm": "all_to_one_write_sm"}


def nvbandwidth(text: str) -> Values:
    """The cells of `nvbandwidth --json`; what it could not measure is left out."""
    data = json.loads(text[text.index("{") : text.rindex("}") + 1])
    found: dict[Name, list[float]] = {}
    for case in data["nvbandwidth"].get("testcases", []):
        for name, value in _cells(case):
            found.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def _cells(case: dict[str, Any]) -> Iterator[tuple[Name, float]]:
    rows = case.get("bandwidth_matrix") or []
    width = len(rows[0]) if rows else 0
    for i, row in enumerate(rows):
        for column, text in enumerate(row):
            name = _named(case["name"], i // width if len(rows) > 1 else 0, i % width, column, width)
            if name is not None and text != "N/A" and float(text) > 0:
                yield name, float(text) * (2 if case["name"] in _HALVES else 1)


def _named(case: str, matrix: int, row: int, column: int, gpus: int) -> Name | None:
    """A cell by our names; a case with both ways has three matrices: column to row, row to column, their sum.

    Which way data goes is read off its source (testcases_ce.cpp), as its titles have the arrows of reads and writes
    the other way round.
    """
    into_row, into_column = f"gpu{column}->gpu{row}", f"gpu{row}->gpu{column}"
    if case.startswith("device_to_device_bidirectional"):
        flow = (into_row, into_column)[matrix] if matrix < 2 else ""
        return (case, flow, "goodput") if flow else None
    if case == "device_to_device_latency_sm":
        return case, into_row, "chase_latency"
    if case.startswith("device_to_device"):
        return case, into_row if "read" in case else into_column, "goodput"
    if case == "host_device_latency_sm":
        return case, f"host0->gpu{column}", "chase_latency"
    if case == "device_local_copy":
        return case, f"gpu{column}->gpu{column}", "goodput"
    if case in _HALVES:
        return _both_ways(case, f"gpu{column}")
    if case.startswith(("host_to_", "device_to_host", "all_to_host")):
        into_host = case.startswith(("device_to_host", "all_to_host"))
        return case, f"gpu{column}->host0" if into_host else f"host0->gpu{column}", "goodput"
    return _one_and_all(case, column, gpus)


def _one_and_all(case: str, one: int, gpus: int) -> Name:
    inbound = case.startswith(("all_to_one_write", "one_to_all_read"))
    others = [i for i in range(gpus) if i != one]
    flows = [f"gpu{i}->gpu{one}" if inbound else f"gpu{one}->gpu{i}" for i in others]
    return _PUSHED.get(case, case), ", ".join(flows), "total" if len(flows) > 1 else "goodput"


def _both_ways(case: str, gpu: str) -> Name:
    return case, f"host0->{gpu}, {gpu}->host0", "total"


def p2p_test(text: str) -> Values:
    """The matrices of p2pBandwidthLatencyTest without their diagonals; both ways are sums."""
    found: Values = {}
    about: tuple[str, str] | None = None
    for line in text.splitlines():
        if "Matrix" in line:
            about = _about(line)
        elif re.match(r"\s*CPU\s", line):
            about = None  # the second matrix of a latency is what the CPU spends on the call
        elif about and re.match(r"\s*\d+\s+[\d.]+(\s|$)", line):
            number, *cells = line.split()
            for column, cell in enumerate(cells):
                if column != int(number):
                    found[_in_sample(about, int(number), column)] = float(cell)
    return found


def _about(title: str) -> tuple[str, str] | None:
    way = next((word for word in ("Unidirectional", "Bidirectional", "Latency") if word in title), None)
    peers = re.search(r"P2P=(Enabled|Disabled)", title)
    return (way, peers[1]) if way and peers else None


def _in_sample(about: tuple[str, str], row: int, column: int) -> Name:
    scenario, metric = _MATRICES[about]
    if metric == "total":
        one, other = sorted((row, column))
        return scenario, f"gpu{one}->gpu{other}, gpu{other}->gpu{one}", metric
    return scenario, f"gpu{row}->gpu{column}", metric


def lanewise(text: str) -> Values:
    """The measured rows of a run file, scattered queries by batch as `queries_in_one_call batch=128`."""
    found: Values = {}
    for row in json.loads(text)["rows"]:
        batch = row.get("settings", {}).get("batch")
        scenario = f"{row['scenario']} batch={batch}" if batch else row["scenario"]
        if row.get("value") is not None:
            # A run/1 file states values in the unit of their table, a later one in SI.
            value = units.in_unit(row["value"], row["display_unit"]) if "display_unit" in row else row["value"]
            found[scenario, row["flow"], row["metric"]] = value
    for (scenario, flow, metric), value in list(found.items()):
        src, _, dst = flow.partition("->")
        back = (scenario, f"{dst}->{src}", "goodput")
        if scenario in _HALVES and metric == "goodput" and src == "host0" and back in found:
            found[_both_ways(scenario, dst)] = value + found[back]
    return found
