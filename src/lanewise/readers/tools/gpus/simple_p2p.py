"""simpleP2P, the CUDA sample: copies of 64 MiB to and fro between two GPUs. Its GB is 2^30 bytes.

Source of what is read: the sample's own sources (github.com/NVIDIA/cuda-samples).
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import GIB, ImportedResults, ToolValue, observation
from lanewise.results.posted import PostedFacts

TOOL = "simpleP2P"
_RATE = re.compile(r"MemcpyPeer / \w{3,4}Memcpy between GPU(\d{1,4}) and GPU(\d{1,4}): ?(\d[\d.]{0,20}) ?GB/s")
_ACCESS = re.compile(r"Peer access from (.{1,80}?) \(GPU(\d{1,4})\) -> (.{1,80}?) \(GPU(\d{1,4})\) *: (Yes|No)")
_SIZE = re.compile(r"Allocating buffers \((\d{1,6})MB on GPU")


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold output of simpleP2P."""
    return any(_RATE.search(line) or _ACCESS.search(line) for line in lines)


def read_text(lines: list[str], file: str) -> ImportedResults:
    """The rate of the pair that was measured, and who can access whom."""
    titles: dict[str, str] = {}
    peers: dict[tuple[str, str], bool] = {}
    rows = []
    size = 64
    for number, line in enumerate(lines, 1):
        if match := _ACCESS.search(line):
            titles |= {f"gpu{match[2]}": match[1], f"gpu{match[4]}": match[3]}
            peers[f"gpu{match[2]}", f"gpu{match[4]}"] = match[5] == "Yes"
        elif match := _SIZE.search(line):
            size = int(match[1])
        elif match := _RATE.search(line):
            flow = f"gpu{match[1]}->gpu{match[2]}"
            value = ToolValue(flow, flow, path="peer", note="the mean of copies one way and back, one after another")
            rate = figure(match[3], Location(file, number)) * GIB / 1e9
            how = {"engine": "copy engine", "p2p": "on"}
            rows.append(observation(TOOL, TOOL, value, rate, how, {"bytes": size << 20}))
    return ImportedResults(TOOL, tuple(rows), peers, posted=PostedFacts(titles))
