"""Blocks of a KV cache between one H200, host memory and a file: predicted, measured by `measure kv`, compared.

    python benchmarks/h200/kv.py predict FOLDER            # FOLDER/predicted.json, before anything is measured
    python benchmarks/h200/kv.py measure FOLDER [DISK]     # FOLDER/measured.json; with DISK a folder, files as well
    python benchmarks/h200/kv.py compare FOLDER            # both, side by side

Blocks of 4 KiB to 4 MiB, together 1 GiB but at most 65,536 of them; to the host, back and both ways, each software.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import lanewise
from lanewise.errors import LanewiseError
from lanewise.options.measure_kv import COPIES
from lanewise.results.block_rows import GOODPUT, software_of_scenario
from lanewise.results.compare import compare_runs
from lanewise.results.sample import Sample

SYSTEM = "h200-pair"
DIRECTIONS = ("gpu0->host0", "host0->gpu0", "gpu0->host0, host0->gpu0")
TOTAL, MOST = 1 << 30, 65_536
SIZES = tuple(kib << 10 for kib in (4, 16, 64, 128, 256, 1024, 4096))
FILES = ("16384 x 16 KiB", "2048 x 128 KiB", "256 x 1 MiB")
CLOSE = 0.10


def blocks(total: int, sizes: Sequence[int]) -> list[str]:
    """The blocks of every size, as the command line takes them."""
    return [f"{min(total // size, MOST)} x {size >> 10} KiB" for size in sizes if total >= size]


def predict(folder: Path, texts: Sequence[str]) -> None:
    """Writes what the model says of every case."""
    predictions = [
        lanewise.predict_blocks(SYSTEM, flows, text, software)
        for text in texts for software in COPIES for flows in DIRECTIONS
    ]  # fmt: skip
    rows = [row for prediction in predictions for row in lanewise.block_rows(prediction)]
    lanewise.save_run(lanewise.as_measured_run((), rows=rows), folder / "predicted.json")


def measure(folder: Path, texts: Sequence[str], runs: int, peak: int, disk: Path | None) -> None:
    """Every case in turn; what one of them cannot is printed, and the others go on."""
    from lanewise.api.measure import kv_probe
    from lanewise.options.measure_kv import MeasureKvOptions

    samples: list[Sample] = []
    cases = [MeasureKvOptions("host", text, runs=runs, peak_bytes=peak) for text in texts]
    if disk is not None:
        for source, threads in (("gpu0", 1), ("gpu0", 4), ("host", 4)):
            cases += [MeasureKvOptions(str(disk), text, source, threads=threads, runs=3) for text in FILES]
    facts: dict[str, str] = {}
    for options in cases:
        try:
            probe = kv_probe(options)
            facts |= probe.machine_facts()
            for sample in probe.run(options):
                samples.append(sample)  # noqa: PERF402 (what came before an error counts)
        except LanewiseError as error:
            print(f"{options.source} to {options.to}, {options.blocks}: {error}; {error.hint}", flush=True)
        lanewise.save_run(lanewise.as_measured_run(samples, facts), folder / "measured.json")
        print(f"{options.source} to {options.to}, {options.blocks}, {options.threads} thread(s): done", flush=True)


def compare(folder: Path) -> None:
    """Prints the table, and how many rates of each software lie within 10 % and in the interval."""
    predicted, measured = (lanewise.load_run(folder / f"{name}.json") for name in ("predicted", "measured"))
    errors: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    print("| software | flow | blocks | predicted GB/s | interval | measured GB/s | error | in interval | limit |")
    print("|---|---|---|---:|---|---:|---:|---|---|")
    for pair in compare_runs(predicted, measured).pairs:
        left, right = pair.left, pair.right
        if left.metric != GOODPUT or not (left.value and left.low and left.high and right.value):
            continue
        error = left.value / right.value - 1
        inside = left.low <= right.value <= left.high
        both = "both ways, " if "both ways" in left.scenario else ""
        software = software_of_scenario(left.scenario) or ""
        errors[software, both].append((error, inside))
        size = f"{left.settings['blocks']} x {left.settings['bytes'] >> 10} KiB"
        print(
            f"| {software} | {both}{left.flow} | {size} | {left.value / 1e9:.2f} | {left.low / 1e9:.1f} to "
            f"{left.high / 1e9:.1f} | {right.value / 1e9:.2f} | {error:+.0%} | {'yes' if inside else 'no'} | "
            f"{left.limit.partition(':')[0]} |"
        )
    for (software, both), each in errors.items():
        close = sum(abs(error) <= CLOSE for error, _ in each)
        print(
            f"\n{software}{', both ways' if both else ''}: median error {median(abs(error) for error, _ in each):.1%}, "
            f"{close} of {len(each)} within 10 %, {sum(inside for _, inside in each)} in the interval"
        )


def main() -> None:
    """Runs one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("predict", "measure", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("disk", type=Path, nargs="?")
    parser.add_argument("--total", type=int, default=TOTAL)
    parser.add_argument("--sizes", type=int, nargs="+", default=[size >> 10 for size in SIZES], help="KiB of a block")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    texts = blocks(options.total, [size << 10 for size in options.sizes])
    if options.what == "predict":
        predict(options.folder, texts)
    elif options.what == "measure":
        measure(options.folder, texts, options.runs, min(options.total, 256 << 20), options.disk)
    else:
        compare(options.folder)


if __name__ == "__main__":
    main()
