"""Service time by batch of the engines that are installed: samples in host memory, answers back there, closed loop.

    python benchmarks/engines.py [--rounds 3] [--device cpu] [--models small-cnn,resnet50] [--out ...]

Each figure is the median of the rounds, and a round's is the median of its runs (lanewise.loadtest.engines.base).
Rounds visit all engines in turn, so that what else runs hits all alike. Writes the JSON and a page of the same name.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from importlib.util import find_spec
from typing import Any

import kept

from lanewise.errors import LanewiseError
from lanewise.loadtest.engines import ENGINES, Options, open_engine


def cases(asked: argparse.Namespace) -> dict[str, tuple[str, str, str]]:
    """Engine, model and mode of everything that is measured, by the name it is shown under."""
    found = {}
    for name in ENGINES:
        if find_spec(name) is None:
            print(f"skipped: {name} is not installed", file=sys.stderr)
            continue
        for model in asked.models.split(","):
            for mode in asked.modes.split(",") if name == "torch" else ["eager"]:
                found[f"{name} {model}{'' if mode == 'eager' else f' {mode}'}"] = (name, model, mode)
    return found


def sizes(text: str) -> list[int]:
    """Batch sizes of `1,2,4`."""
    return [int(size) for size in text.split(",")]


def measure(asked: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Seconds of each engine and batch by round, with what the engine says of itself; one is open at a time, as idle
    threads of another would take the cores."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(asked.rounds):
        for shown, (name, model, mode) in cases(asked).items():
            engine = open_engine(name, model, asked.device, asked.precision, Options(mode=mode), max(asked.batches))
            values = found.setdefault(shown, {"what": engine.describe(), "seconds": {}})
            engine.warm(asked.batches)
            for batch, seconds in engine.service_times(asked.batches).items():
                values["seconds"].setdefault(str(batch), []).append(seconds)
            engine.close()
            print(f"round {number + 1}: {shown} measured", file=sys.stderr)
    return found


def page(record: dict[str, Any]) -> str:
    """The medians as a table."""
    lines = [
        *kept.heading("Service times of engines", record),
        "Weights are random. Milliseconds of a batch, median of the rounds (smallest to largest round), samples/s.",
        "",
        "| engine | batch | ms | samples/s | of multiply-adds, G/s |",
        "|---|---|---|---|---|",
    ]
    for name, engine in record["engines"].items():
        work = engine["what"]["multiply_adds"]
        for batch, values in engine["seconds"].items():
            middle, low, high = (1e3 * value for value in (statistics.median(values), min(values), max(values)))
            rate = int(batch) / middle * 1e3
            spread = f"{middle:.3g} ({low:.3g} to {high:.3g})"
            lines.append(f"| {name} | {batch} | {spread} | {rate:.4g} | {rate * work / 1e9:.3g} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs everything and writes both files."""
    parser = kept.options(__doc__, "engines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--modes", default="eager", help="of torch, comma-separated")
    parser.add_argument("--models", default="small-cnn,resnet50")
    parser.add_argument("--batches", type=sizes, default=[1, 2, 4, 8, 16])
    asked = parser.parse_args()
    record = kept.begin(asked)
    try:
        measured = measure(asked)
    except LanewiseError as error:
        sys.exit(error.show())
    if not measured:
        sys.exit("error: no engine is installed\nhint:  pip install onnxruntime onnx")
    record["engines"] = measured
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
