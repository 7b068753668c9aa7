"""ucx_perftest: bandwidth and latency of UCX between two processes. Its MB is 2^20 bytes.

Source of what is read: the tool's own sources (github.com/openucx/ucx, src/tools/perf). The last row of a test counts;
two processes are taken for those of two hosts unless the text names this host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lanewise import late_re as re
from lanewise.errors import FormatError, Location
from lanewise.readers.texts import WHOLE, count, figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "ucx_perftest"
_HEAD = re.compile(r"\|\s{1,40}(overhead|latency) \(usec\)\s{1,40}\|\s{1,20}bandwidth \(MB/s\)")
_MADE = re.compile(r"\s*\|?(?:\s*:?-{3,}:?\s*\|){2,}")
_ROW = re.compile(r"\s*(?:\[thread \d{1,4}\]|Final:)?\s{1,40}\d{1,15}((?:\s{1,20}[\d.]{1,20}){7})\s*$")
_TITLE = re.compile(r"\|\s{0,20}(Test|Send memory|Recv memory|Message size):\s{0,40}([^|]{1,80}?)\s{0,100}\|")
_OPTION = re.compile(r"(?:^|\s)-(t|m|s) ?([\w.,:]{1,60})")
_LOCAL = re.compile(r"\blocalhost\b|\b127\.0\.0\.1\b")


@dataclass
class _UcxTest:
    """What stands above rows: the test, the memories of both ends, the size of a message."""

    name: str = ""
    send: str = "host"
    receive: str = "host"
    size: str = ""
    latency: bool = False

    def stated(self, key: str, value: str) -> None:
        """Takes a line of the head, or an option of the command."""
        if key in ("Test", "t"):
            self.name = value
        elif key == "m":
            self.send, _, receive = value.partition(",")
            self.receive = receive or self.send
        elif key == "Send memory":
            self.send = value
        elif key == "Recv memory":
            self.receive = value
        else:
            self.size = value if value.isdigit() else self.size

    def row(self, numbers: Sequence[str], local: bool, at: Location) -> Observation:
        """The last figures of the test: latency, or bandwidth."""
        send, receive = ("cuda" in self.send or "rocm" in self.send), ("cuda" in self.receive or "rocm" in self.receive)
        if local and send and receive:
            flow, path = "gpu0->gpu1", "peer"
        else:
            flow, path = f"{'gpu0' if send else 'host0'}->{'host0' if local and send else 'host1'}", "network"
        settings = {"bytes": count(self.size, at)} if self.size else {}
        metric, unit, value = "goodput", "GB/s", figure(numbers[4], at) * MIB / 1e9
        if self.latency:
            metric, unit, value = "latency_mean", "us", figure(numbers[2], at)
        kind = ToolValue(flow, flow, metric, unit, path)
        return observation(TOOL, f"ucx {self.name}".strip(), kind, value, {"engine": "UCX"}, settings)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of ucx_perftest, not one that somebody made with its columns."""
    return any(_HEAD.search(line) and not _MADE.match(below) for line, below in pairwise([*lines, ""]))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """One row a test; FormatError for a text whose tables have no rows, or a figure that is none."""
    rows: list[Observation] = []
    test, last = _UcxTest(), ""
    local = any(_LOCAL.search(line) for line in lines)

    def finish(number: int) -> None:
        nonlocal last
        if last:
            rows.append(test.row(last.split(), local, Location(file, number)))
            check_rows(rows, Location(file, number))
        last = ""

    for number, line in enumerate(lines, 1):
        stated = [*_TITLE.findall(line), *(_OPTION.findall(line) if "ucx_perftest" in line else ())]
        if stated or _HEAD.search(line):
            finish(number)
        for key, value in stated:
            test.stated(key, value)
        if (head := _HEAD.search(line)) is not None:
            test.latency = head[1] == "latency" and not test.name.endswith(("_bw", "bandwidth"))
        elif match := _ROW.match(line):
            last = match[1]
    finish(len(lines))
    if not rows:
        raise FormatError("the table of ucx_perftest has no rows", location=Location(file, len(lines)), hint=WHOLE)
    return ImportedResults(TOOL, tuple(rows))
