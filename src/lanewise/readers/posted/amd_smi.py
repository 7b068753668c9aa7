"""The links of AMD's GPUs as amd-smi prints them: lanes in use (`metric --pcie`) and at most (`static --bus`).

Source: amd-smi's own sections, a GPU after another: 'GPU: 2', 'PCIE:', 'WIDTH: 8' (before ROCm 6.1 CURRENT_LANES), and
'BUS:', 'MAX_PCIE_WIDTH: 16' (before ROCm 6.1 MAX_PCIE_LANES). An idle link keeps its lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.results.posted import Statement

_GPU = re.compile(r"GPU: (\d{1,3})\s*$")
_NOW = re.compile(r"\s+(?:WIDTH|CURRENT_LANES): (\d{1,2})\s*$")
_MOST = re.compile(r"\s+MAX_PCIE_(?:WIDTH|LANES): (\d{1,2})\s*$")


def links_of_amd_smi(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The links that have fewer lanes than their GPU can."""
    now: dict[str, tuple[int, int]] = {}
    most: dict[str, int] = {}
    gpu = ""
    for number, line in enumerate(lines, 1):
        if match := _GPU.match(line):
            gpu = match[1]
        elif gpu and (match := _NOW.match(line)):
            now[gpu] = (int(match[1]), number)
        elif gpu and (match := _MOST.match(line)):
            most[gpu] = int(match[1])
    for name, (lanes, number) in now.items():
        if 0 < lanes < most.get(name, 0):
            yield Statement("link width", f"GPU {name} x{lanes} of x{most[name]}", f"{file}:{number}")
