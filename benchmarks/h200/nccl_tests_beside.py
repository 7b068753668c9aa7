"""Times of a call by `lanewise measure collectives` beside those of nccl-tests: what nccl_tests.sh wrote, as a table.

    python benchmarks/h200/nccl_tests_beside.py FOLDER

FOLDER holds nccl-tests-NAME-TURN.txt and lanewise-TURN.run.json. A cell is the median over the sizes of a class, out of
place, both turns: microseconds of nccl-tests, of Lanewise, and the median ratio of a size.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

KIB, MIB = 2**10, 2**20
CLASSES = (("8 B to 16 KiB", 0, 32 * KIB), ("32 KiB to 512 KiB", 32 * KIB, MIB), ("1 to 128 MiB", MIB, 256 * MIB),
           ("256 MiB to 1 GiB", 256 * MIB, 2**40))  # fmt: skip
# size, count, type, redop, root, then time in us out of place
ROW = re.compile(r"\s+(\d+)\s+\d+\s+float\s+\S+\s+-?\d+\s+([\d.]+)\s")
Times = dict[tuple[str, int], list[float]]


def times_of_tests(folder: Path) -> Times:
    """Microseconds of a call by operation and size."""
    times: Times = defaultdict(list)
    for file in sorted(folder.glob("nccl-tests-*.txt")):
        name = file.stem.removeprefix("nccl-tests-").rpartition("-")[0]
        for size, time in ROW.findall(file.read_text()):
            times[name, int(size)].append(float(time))
    return times


def times_of_lanewise(folder: Path) -> Times:
    """The same of the runs."""
    times: Times = defaultdict(list)
    for file in sorted(folder.glob("lanewise-*.run.json")):
        for row in json.loads(file.read_text())["rows"]:
            if row["metric"] == "time":
                times[row["scenario"], row["settings"]["bytes"]].append(row["value"] * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    tests, own = times_of_tests(options.folder), times_of_lanewise(options.folder)
    print("| operation |" + "".join(f" {name} |" for name, *_ in CLASSES) + "\n|---|" + "---|" * len(CLASSES))
    for operation in sorted({name for name, _ in tests}):
        cells = []
        for _, least, below in CLASSES:
            keys = [key for key in tests if key[0] == operation and max(least, 1) <= key[1] < below and key in own]
            pairs = [(statistics.median(tests[key]), statistics.median(own[key])) for key in keys]
            theirs, ours = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            cells.append(f" {theirs:.1f}, {ours:.1f}, {statistics.median(our / their for their, our in pairs):.2f} |")
        print(f"| {operation} |" + "".join(cells))


if __name__ == "__main__":
    main()
