"""DeepEP's tests of its normal kernels (`test_intranode.py`, `test_internode.py`), which dispatch and combine tokens.

Source of what is read: the tests themselves (github.com/deepseek-ai/DeepEP). Its GB is 1e9 bytes. Of a test among hosts
RDMA is what each GPU sends to others over the network; what it sends over NVLink then waits for that and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation

TOOL = "DeepEP"
_TUNING = re.compile(
    r"\[tuning\] (?:Best (dispatch|combine)(?: \((\w{1,8})\))?: )?SMs \d{1,4}, NVL chunk .{0,100}?"
    r"(\d[\d.]{0,15}) GB/s \((RDMA|NVL)\)"
)


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of such a test."""
    return any("[tuning]" in line and _TUNING.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The best of each kernel, as the test says or the fastest of the lines of its tuning."""
    best: dict[tuple[str, str], float] = {}
    for number, line in enumerate(lines, 1):
        if "[tuning]" in line and (match := _TUNING.search(line)):
            name = f"{match[1]}{f' {match[2]}' if match[2] else ''}" if match[1] else ""
            rate = figure(match[3], Location(file, number))
            best[name, match[4]] = max(rate, best.get((name, match[4]), 0.0))
    named = {key: rate for key, rate in best.items() if key[0]}
    return ImportedResults(TOOL, tuple(_row(*key, rate) for key, rate in (named or best).items()))


def _row(kernel: str, over: str, rate: float) -> Observation:
    flow, path = ("gpu0->host1", "network") if over == "RDMA" else ("gpu0->gpu1", "peer")
    how = {"engine": "SM", "p2p": "on" if over == "NVL" else ""}
    value = ToolValue(flow, flow, path=path, note="of each GPU to all others")
    return observation(TOOL, f"{TOOL} {kernel or 'kernel'}", value, rate, how, {})
