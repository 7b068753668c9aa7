"""CPU time of `check` on a table of slow collectives of two hosts, and of curves of 30 sizes; prints a table.

PYTHONPATH=tests python benchmarks/check_collectives.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

from collectives.collective_systems import pcie_box, two_nodes

from lanewise.checking.checkup import check
from lanewise.collectives.curve import predict_collective
from lanewise.collectives.model import Collective
from lanewise.readers.tools.collectives.nccl_tests import read_text
from lanewise.results.observation import Observation

SIZES = [2**power for power in range(20, 34)]
CURVE = [2.0**power for power in range(4, 34)]
SLOW = 0.4  # of what is predicted


def slow_table() -> tuple[Observation, ...]:
    """What nccl-tests would print of all_reduce on sixteen GPUs, in place and out of place."""
    points = predict_collective(two_nodes(8, "connectx-7-ndr"), Collective.ALL_REDUCE, "n[0-1]gpu[0-7]", SIZES).points
    ranks = [f"# Rank {rank} Group 0 Pid 1 on host{rank // 8} device {rank % 8} [0x1b] H100" for rank in range(16)]
    rates = [SLOW * point.bus_bandwidth / 1e9 for point in points]
    rows = [f"{size} 4 float sum -1 " + f"1.0 1.0 {rate:.2f} 0 " * 2 for size, rate in zip(SIZES, rates, strict=True)]
    head = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong"
    return tuple(read_text(["# all_reduce_perf", *ranks, head, *rows], "nccl.txt").observations)


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    nodes, box, rows = two_nodes(8, "connectx-7-ndr"), pcie_box(gpus=8), slow_table()
    print(f"check, {len(rows)} slow rows: {seconds(lambda: check(rows, target=nodes)):.3f} s")
    for system, ranks, collective in (
        (nodes, "n[0-1]gpu[0-7]", Collective.ALL_REDUCE),
        (box, "gpu[0-7]", Collective.ALL_REDUCE),
        (box, "gpu[0-7]", Collective.ALL_TO_ALL),
    ):
        least = seconds(lambda: predict_collective(system, collective, ranks, CURVE))  # noqa: B023
        print(f"curve of {len(CURVE)} sizes, {collective} on {system.name} ({ranks}): {least:.4f} s")


if __name__ == "__main__":
    main()
