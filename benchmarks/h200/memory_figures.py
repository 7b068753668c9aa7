"""What the measured sets of H200 and H100 say of a full memory: dma_both and read_displaced of Emerald Rapids.

python benchmarks/h200/memory_figures.py
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path

from pairs_left_out import MACHINES, RUNS

from lanewise.perf.duplex import POSTED_SHARE

RATE = 358.4e9  # B/s, 8 channels of DDR5-5600
Sets = dict[str, dict[str, float]]


def host_sets(folder: Path) -> Sets:
    """The sets of copies from and to the host alone, in B/s by flow."""
    sets: Sets = defaultdict(dict)
    for row in json.loads((folder / "measured.json").read_text())["rows"]:
        if row["p2p"]:
            sets[row["flows"]][row["flow"]] = row["measured"]
    return {name: flows for name, flows in sets.items() if all("host0" in flow for flow in flows)}


def both(sets: Sets) -> float:
    """The mean sum of the sets of three and more copies, some of either direction, as a share of the memory's rate."""
    full = [flows for flows in sets.values() if len(flows) > 2 and 0 < _writes(flows) < len(flows)]
    return statistics.mean(sum(flows.values()) for flows in full) / RATE


def displaced(sets: Sets) -> float:
    """The mean of what a read loses for each byte that one write moves, less what packets of its own GPU take."""
    alone = statistics.mean(
        rate for flows in sets.values() if len(flows) == 1 for flow, rate in flows.items() if _is_read(flow)
    )
    losses = []
    for flows in sets.values():
        if len(flows) == 2 and _writes(flows) == 1:
            (read, rate), (write, written) = sorted(flows.items(), key=lambda item: _is_read(item[0]), reverse=True)
            own = read.partition("->")[2] == write.partition("->")[0]
            losses.append((alone - rate) / written - own * POSTED_SHARE)
    return statistics.mean(losses)


def _is_read(flow: str) -> bool:
    return flow.startswith("host0->")


def _writes(flows: dict[str, float]) -> int:
    return sum(not _is_read(flow) for flow in flows)


def main() -> None:
    """A line for each machine."""
    for name, folder in (MACHINES | {"4gpus of H100": "2026-11-28-four-gpus/h100"}).items():
        sets = host_sets(RUNS / folder)
        print(f"{name:13} dma_both {both(sets):.3f}, read_displaced {displaced(sets):.3f}")


if __name__ == "__main__":
    main()
