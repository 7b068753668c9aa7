"""The modes of the torch engine on one GPU: Offline rate, the engine's own rate, first and second start.

    python benchmarks/h200/modes.py --out FOLDER [--seconds 450] [--only 'NAME;...'] [--list]

Every step is a process of its own; the caches of compiled code begin empty. One that would not end in time is left out
and said so. FOLDER gets modes.json, modes.md, and raw/ with logs. `start` is the time to open the engine and to run
each size a few times, without the import of torch. `per size` compiles each batch size, none with an open batch.
With `--cpu` a rehearsal with a small model on a CPU, where modes with graphs are errors: no result.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loads import Ran, Step, run_step

BATCHES = "48,64,128"


def steps(cpu: bool) -> list[Step]:
    """What runs, the most important first."""
    model, precision, batches = ("small-cnn", "fp32", "2,3,4") if cpu else ("resnet50", "fp16", BATCHES)
    alone = f"--engines torch --device {'cpu' if cpu else 'cuda'} --models {model} --precision {precision} --rounds 1 "
    alone += f"--batches {batches}"
    send = (
        f"loadtest run --json --engine torch --model {model} --precision {precision} --scenario offline "
        f"--devices {'cpu' if cpu else 'gpu0'} --batch {batches.split(',')[-1]} --seconds {2 if cpu else 8}"
    )

    def engine(name: str, mode: str, more: str = "") -> Step:
        words = f"{alone} --modes {mode} {more} --out {{out}}/{name.replace(', ', '-').replace(' ', '-')}.json"
        return Step(name, words, 200, "benchmarks/engines.py")

    def offline(mode: str) -> Step:
        return Step(f"{mode or 'auto'}, Offline", f"{send} --mode {mode}" if mode else send, 120)

    best = "compiled" if cpu else "compiled-graphs"
    return [
        engine("first start", best),
        engine("second start", best),
        offline(""),
        engine("graphs", "graphs"),
        offline("graphs"),
        engine("per size, first start", best, "--per-size"),
        engine("per size, second start", best, "--per-size"),
        *(offline(mode) for mode in ("compiled-graphs", "compiled", "eager")),
        *(engine(mode, mode) for mode in ("compiled", "eager")),
    ]


def main() -> int:
    """Run what fits into the time, write after each step."""
    asked = _arguments()
    chosen = [step for step in steps(asked.cpu) if not asked.only or step.name in asked.only.split(";")]
    if asked.list:
        print("\n".join(f"{step.name}: {step.program} {step.words}" for step in chosen))
        return 0
    out, begun = asked.out.resolve(), time.monotonic()
    (out / "raw").mkdir(parents=True, exist_ok=True)
    ran: list[Ran] = []
    with tempfile.TemporaryDirectory() as cache:
        for step in chosen:
            # Code of each size is kept apart, or its first start would be quickened by what the others share with it.
            os.environ["XDG_CACHE_HOME"] = str(Path(cache) / ("sizes" if step.name.startswith("per size") else "all"))
            Path(os.environ["XDG_CACHE_HOME"]).mkdir(exist_ok=True)
            left = asked.seconds - (time.monotonic() - begun)
            ran.append(run_step(step, out, min(step.limit, left), 1000.0))
            print(f"{step.name}: exit {ran[-1].code}, {ran[-1].seconds:.1f} s", file=sys.stderr, flush=True)
            if ran[-1].code:
                print(ran[-1].said, file=sys.stderr, flush=True)
            (out / "modes.json").write_text(json.dumps([asdict(each) for each in ran], indent=1) + "\n")
            (out / "modes.md").write_text("\n".join(page(ran, out)) + "\n")
    print((out / "modes.md").read_text())
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/modes"))
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--only", default="", help="names of steps, with ; between")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def page(ran: Sequence[Ran], out: Path) -> Iterator[str]:
    """A table of the steps, and their commands."""
    yield "# Modes of the torch engine"
    yield ""
    yield "samples/s are those of the Offline run, or of the engine alone by batch, on a GPU with two in flight."
    yield ""
    yield "| step | exit | s | mode | start, s | samples/s | verdict |"
    yield "|---|---|---|---|---|---|---|"
    for each in ran:
        cells = " | ".join(_offline(each.told) if isinstance(each.told, dict) else _alone(each, out))
        yield f"| {each.name} | {each.code} | {each.seconds:.0f} | {cells} |"
    yield ""
    yield from (f"* {each.name}: `{each.command}`" for each in ran)


def _offline(told: dict[str, Any]) -> tuple[str, str, str, str]:
    rate = f"{told['qps']:,.0f}" if told.get("qps") else ""
    return str(told.get("about", {}).get("mode", "")), "", rate, "VALID" if told.get("valid") else "not valid"


def _alone(each: Ran, out: Path) -> tuple[str, str, str, str]:
    path = out / f"{each.name.replace(', ', '-').replace(' ', '-')}.json"
    if each.code != 0 or not path.exists():
        return "", "", each.said.strip().splitlines()[-1] if each.said.strip() else "", ""
    (engine,) = json.loads(path.read_text())["engines"].values()
    took = engine.get("in flight", engine["seconds"])
    rates = ", ".join(f"{batch}: {int(batch) / min(seconds):,.0f}" for batch, seconds in took.items())
    return str(engine["what"].get("mode", "")), f"{min(engine['start']):.1f}", rates, ""


if __name__ == "__main__":
    sys.exit(main())
