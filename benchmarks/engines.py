"""Service time by batch of the engines that are installed: samples on the device, answers back in host memory.

    python benchmarks/engines.py [--engines torch] [--rounds 3] [--device cpu] [--models small-cnn,resnet50] [--out ...]

One batch after another, on a GPU also two in flight: then the next is queued while one runs, which is all that an
engine can do. An engine that does not run here is a row with its reason. Each figure is the median of the rounds, and a
round's is the median of its runs (lanewise.loadtest.engines.base), of two in flight their mean.
Rounds visit all engines in turn, so that what else runs hits all alike. Writes the JSON and a page of the same name.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from typing import Any

import kept

from lanewise.errors import LanewiseError
from lanewise.loadtest.engines import ENGINES, Engine, EngineOptions, open_engine
from lanewise.loadtest.engines.base import random_batch

SECONDS = 0.7  # of two batches in flight, for each size


def cases(asked: argparse.Namespace) -> dict[str, tuple[str, str, str]]:
    """Engine, model and mode of everything that is measured, by the name it is shown under."""
    found = {}
    for name in asked.engines.split(","):
        for model in asked.models.split(","):
            for mode in asked.modes.split(",") if name == "torch" else [""]:
                found[" ".join(filter(None, (name, model, mode)))] = (name, model, mode)
    return found


def sizes(text: str) -> list[int]:
    """Batch sizes of `1,2,4`."""
    return [int(size) for size in text.split(",")]


def measure(asked: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Seconds of each engine and batch by round, with what the engine says of itself; one is open at a time, as idle
    threads of another would take the cores. One that fails is told and left out from then on."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(asked.rounds):
        for shown, case in cases(asked).items():
            values = found.setdefault(shown, {"what": {}, "seconds": {}})
            if "skipped" in values:
                continue
            try:
                measure_one(asked, case, values)
            except LanewiseError as error:
                values["skipped"] = str(error)
            print(f"round {number + 1}: {shown}: {values.get('skipped', 'measured')}", file=sys.stderr)
    return found


def measure_one(asked: argparse.Namespace, case: tuple[str, str, str], values: dict[str, Any]) -> None:
    """A round of one engine, into its `values`."""
    name, model, mode = case
    begun = time.perf_counter()
    engine = open_engine(name, model, asked.device, asked.precision, EngineOptions(mode=mode), max(asked.batches))
    try:
        values["what"] = engine.describe() | ({"notes": engine.notes} if engine.notes else {})
        engine.warm(asked.batches)
        values.setdefault("start", []).append(time.perf_counter() - begun)
        for batch, seconds in engine.service_times(asked.batches).items():
            values["seconds"].setdefault(str(batch), []).append(seconds)
        if asked.device != "cpu":
            for batch in asked.batches:
                values.setdefault("in flight", {}).setdefault(str(batch), []).append(
                    in_flight(engine, batch, asked.device)
                )
    finally:
        engine.close()


def in_flight(engine: Engine, batch: int, device: str) -> float:
    """Seconds from one batch to the next with two in flight, each of its own samples on the GPU."""
    import torch

    held = [torch.from_numpy(random_batch(engine.spec, batch)).to(device) for _ in range(2)]
    answer = engine.classes_at if engine.classifies else engine.infer_at
    done = [0, 0]

    def loop(number: int) -> None:
        while time.perf_counter() < end:
            answer(held[number].data_ptr(), batch)
            done[number] += 1

    for each in held:
        answer(each.data_ptr(), batch)  # what is made once for a buffer
    begun = time.perf_counter()
    end = begun + SECONDS
    threads = [threading.Thread(target=loop, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begun) / sum(done)


def page(record: dict[str, Any]) -> str:
    """The medians as a table."""
    lines = [
        *kept.heading("Service times of engines", record),
        "Weights are random. Milliseconds of a batch, median of the rounds (smallest to largest round), samples/s.",
        "",
        "| engine | batch | ms | samples/s | of multiply-adds, G/s | two in flight, samples/s |",
        "|---|---|---|---|---|---|",
    ]
    for name, engine in record["engines"].items():
        if "skipped" in engine:
            lines.append(f"| {name} | | {engine['skipped']} | | | |")
        work = engine["what"].get("multiply_adds", 0)
        for batch, values in engine["seconds"].items():
            middle, low, high = (1e3 * value for value in (statistics.median(values), min(values), max(values)))
            rate = int(batch) / middle * 1e3
            spread = f"{middle:.3g} ({low:.3g} to {high:.3g})"
            both = engine.get("in flight", {}).get(batch)
            queued = f"{int(batch) / statistics.median(both):.4g}" if both else ""
            lines.append(f"| {name} | {batch} | {spread} | {rate:.4g} | {rate * work / 1e9:.3g} | {queued} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs everything and writes both files."""
    parser = kept.options(__doc__, "engines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated")
    parser.add_argument("--modes", default="", help="of torch, comma-separated; empty: the engine's own choice")
    parser.add_argument("--models", default="small-cnn,resnet50")
    parser.add_argument("--per-size", action="store_true", help="compile each batch size, none with an open batch")
    parser.add_argument("--batches", type=sizes, default=[1, 2, 4, 8, 16])
    asked = parser.parse_args()
    if asked.per_size:
        import torch

        torch._dynamo.maybe_mark_dynamic = lambda tensor, index: None
    record = kept.begin(asked)
    record["engines"] = measure(asked)
    if not any(engine["seconds"] for engine in record["engines"].values()):
        sys.exit("error: no engine runs here\nhint:  pip install onnxruntime onnx")
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
