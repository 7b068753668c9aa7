"""iperf3's JSON (-J) as the lines that it prints without it, which `iperf` reads.

Source: the tool's own sources (github.com/esnet/iperf, iperf_api.c): rates are bits a second, times seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lanewise.errors import FormatError, Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults
from lanewise.readers.tools.networks import iperf

# The sums at the end: name, who tells it, and the label of a run of both directions at once.
_SUMS = (
    ("sum_sent", "sender", "TX-C"), ("sum_received", "receiver", "TX-C"),
    ("sum_sent_bidir_reverse", "sender", "RX-C"), ("sum_received_bidir_reverse", "receiver", "RX-C"),
)  # fmt: skip


def is_json(data: Any) -> bool:
    """Whether a JSON object is iperf3's."""
    return isinstance(data, dict) and isinstance(data.get("start"), dict) and isinstance(data.get("end"), dict)


def read_json(data: Mapping[str, Any], file: str) -> ImportedResults:
    """The rate of the run, of each direction where both ran at once; FormatError for a run without a rate."""
    if data.get("error") and "sum_sent" not in data["end"]:
        raise FormatError(f"iperf3 says: {data['error']}"[:200], location=Location(file), hint="run it again")
    lines = [*_lines(data, file)]
    if not iperf.is_text(lines):
        hint = "let iperf3 finish, or give the whole file"
        raise FormatError("iperf3's JSON without a rate", location=Location(file), hint=hint)
    results = iperf.read_text(lines, file)
    posted = replace(results.posted, statements=tuple(replace(each, source=file) for each in results.posted.statements))
    return replace(results, posted=posted)


def _lines(data: Mapping[str, Any], file: str) -> Iterator[str]:
    test = _mapping(data["start"].get("test_start"))
    reverse, udp = bool(test.get("reverse")), test.get("protocol") == "UDP"
    # What the tool was asked for stands in the JSON as the options of a command.
    asked = f" -b {test['target_bitrate']}" if test.get("target_bitrate") else ""
    yield f"iperf3 -c host{' -u' * udp}{asked} -l {test.get('blksize', 0)}"
    if reverse:
        yield "Reverse mode, remote host is sending"
    both = "sum_sent_bidir_reverse" in data["end"]
    connections = int(figure(test.get("num_streams", 1), Location(file)))
    for interval in data.get("intervals") or ():
        yield _line(_mapping(interval.get("sum")), "SUM", "TX-C" if both else "", "", udp, file)
    for name, who, way in _SUMS:
        part = _mapping(data["end"].get(name, data["end"].get("sum") if udp and name == "sum_received" else None))
        for number in range(connections if who == "sender" and "bits_per_second" in part else 0):
            # The lines of single connections are left out, but for how many there are.
            yield f"[{number + 4:3d}]{f'[{way}]' if both else ''}   0.00-0.00 sec  0.00 Bytes  0.00 bits/sec"
        yield _line(part, "SUM", way if both else "", who, udp, file)
    cpu = _mapping(data["end"].get("cpu_utilization_percent"))
    if "host_total" in cpu and "remote_total" in cpu:
        near, far = ("receiver", "sender") if reverse else ("sender", "receiver")
        yield (
            f"CPU Utilization: local/{near} {cpu['host_total']:.1f}% (0.0%u/0.0%s), "
            f"remote/{far} {cpu['remote_total']:.1f}% (0.0%u/0.0%s)"
        )


def _line(part: Mapping[str, Any], who: str, way: str, said: str, udp: bool, file: str) -> str:
    """One of its lines; empty for a sum without a rate."""
    if "bits_per_second" not in part:
        return ""
    start, end, rate = (figure(part.get(key, 0), Location(file)) for key in ("start", "end", "bits_per_second"))
    rest = f"{int(part['retransmits'])}" if "retransmits" in part else ""
    if udp and "lost_packets" in part:
        rest = f"0.0 ms  {int(part['lost_packets'])}/{int(part.get('packets', 0))} (0%)"
    return (
        f"[{who}]{f'[{way}]' if way else ''}  {start:.2f}-{end:.2f} sec  0.00 Bytes  {rate / 1e6:.9g} Mbits/sec"
        f"  {rest}             {said}"
    )


def _mapping(data: object) -> Mapping[str, Any]:
    return data if isinstance(data, dict) else {}
