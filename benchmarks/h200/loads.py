"""Load tests on a machine with GPUs against the targets of the issue, one command after the other in a stated time.

    python benchmarks/h200/loads.py --gpus 1 --out FOLDER [--seconds 560] [--only 'NAME;...'] [--list]

The first commands find out whether each piece runs at all, the later ones what it reaches; one that would not end in
time is left out and said so. FOLDER gets loads.json (what each command printed as JSON), loads.md, and raw/ with logs.
Lanewise with its load tests, torch, and what run.sh lists as wheels must be there (`PYTHONPATH`).
On a machine without GPUs `--gpus 0` sends everything to the CPU with small models: a rehearsal, no result.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

IMAGE = 150_528  # bytes of a query
H2D, HELD, OFFLINE, SERVER, TWO, FOUR, PREDICTED = 0.95, 0.98, 0.95, 0.9, 1.95, 3.8, 0.05


@dataclass(frozen=True)
class Step:
    """A command with the seconds it may take; `{h2d}` in it is the measured host-to-device rate in queries/s."""

    name: str
    words: str
    limit: float
    program: str = "lanewise"


@dataclass
class Ran:
    """What a command gave: its exit code (None: left out), seconds, the JSON it printed and the end of its errors."""

    name: str
    command: str
    code: int | None
    seconds: float = 0.0
    told: Any = None
    said: str = field(default="", repr=False)


def steps(gpus: int) -> list[Step]:
    """What runs on so many GPUs, in order of what fails first."""
    every = ",".join(f"gpu{i}" for i in range(gpus)) or "cpu"
    one = every.split(",")[0]
    model = "--model resnet50 --precision fp16 --mode graphs" if gpus else "--model small-cnn"
    bert = model.replace("resnet50", "bert")
    engine = f"--engine {'torch' if gpus else 'onnxruntime'} {model}"
    alone = "--engines torch --device cuda --models resnet50 --precision fp16 --modes graphs"
    if not gpus:
        alone = "--engines onnxruntime --models small-cnn"
    zero = "--engine synthetic --service 0us --batch 128"
    send = "loadtest run --json"
    made = [
        Step("doctor", "doctor", 60),
        Step("payload, batch", f"{send} {zero} --devices {one} --audit payload --qps 1000 --copy batch", 60),
        Step("payload, kernel", f"{send} {zero} --devices {one} --audit payload --qps 1000 --copy kernel", 60),
        Step("payload, model", f"{send} {engine} --devices {one} --batch 32 --audit payload", 120),
        Step("h2d", "measure gpu --devices 0 --cases host_to_device_memcpy_ce --json" if gpus else
             "measure host --what copy --nodes 0 --json", 60),
        Step("held 1 ms", f"{send} --engine synthetic --service '1 ms + 0 us' --batch 128 --devices {one} "
             "--scenario offline --seconds 3", 60),
        *(Step(f"bytes offline, {streams} streams", f"{send} {zero} --devices {one} --scenario offline --seconds 8 "
               f"--library 8192 --streams {streams}", 90) for streams in (2, 4)),
        Step("bytes server", f"{send} {zero} --devices {one} --scenario server --qps {{h2d}} --coalesce --seconds 8 "
             "--library 8192 --streams 4", 90),
        Step("engine", f"{alone} --rounds 1 --batches 8,32,48,64,128 --out {{out}}/engines.json", 120,
             "benchmarks/engines.py"),
        *(Step(f"model offline, batch {batch}", f"{send} {engine} --devices {one} --batch {batch} --scenario offline "
               "--seconds 12", 90) for batch in (64, 128)),
        Step("model server", f"loadtest peak --json {engine} --devices {one} --batch 48 --seconds 60 "
             "--results {raw}/peak -o {out}/peak.json", 150),
        Step("bytes peak", f"loadtest peak --json {zero} --devices {one} --coalesce --library 8192 --streams 4 "
             "--seconds 40 --results {raw}/bytes-peak -o {out}/bytes-peak.json", 120),
        Step("batches", f"loadtest sweep --json {engine} --devices {one} --batches 16,32,64 --seconds 30 "
             "--results {raw}/batches --chart {out}/batches.svg -o {out}/batches.json", 150),
        Step("bert server", f"loadtest peak --json {engine.replace(model, bert)} --devices {one} --batch 64 "
             "--bound '130 ms' --seconds 40 --results {raw}/bert -o {out}/bert.json", 120),
        Step("generator", "loadtest selftest --json --precision 0.1 --seconds 5", 150),
    ]  # fmt: skip
    if gpus > 1:
        counts = ",".join(str(n) for n in (1, 2, 4, 8) if n <= gpus)
        sets = [",".join(every.split(",")[:n]) for n in (1, 2, 4, 8) if n <= gpus]
        made[5:] = [
            *(Step(f"h2d of {some.count('gpu')}", f"measure gpu --devices {some.replace('gpu', '')} --cases "
                   "host_to_all_memcpy_ce --json", 60) for some in sets),
            *(Step(f"model offline on {some.count('gpu')}", f"{send} {engine} --devices {some} --batch 64 --scenario "
                   "offline --seconds 10", 150) for some in sets),
            *(Step(f"bytes offline on {some.count('gpu')}", f"{send} --engine synthetic --service 0us --devices {some} "
                   "--batch 64 --streams 4 --sample-bytes 602112 --library 2048 --scenario offline --seconds 8", 90)
              for some in sets),
            Step("sweep", f"loadtest sweep --json {engine} --gpus {counts} --devices {every} --batch 48 --seconds 40 "
                 "--results {raw}/sweep --chart {out}/sweep.svg -o {out}/sweep.json", 330),
        ]  # fmt: skip
    return made


def main() -> int:
    """Run what fits into the time, write after each command."""
    asked = _arguments()
    chosen = [step for step in steps(asked.gpus) if not asked.only or step.name in asked.only.split(";")]
    if asked.list:
        print("\n".join(f"{step.name}: {step.program} {step.words}" for step in chosen))
        return 0
    out, begun = asked.out.resolve(), time.monotonic()
    (out / "raw").mkdir(parents=True, exist_ok=True)
    ran: list[Ran] = []
    for step in chosen:
        left = asked.seconds - (time.monotonic() - begun)
        ran.append(run_step(step, out, min(step.limit, left), _queries(ran)))
        last = ran[-1]
        print(f"{last.name}: exit {last.code}, {last.seconds:.1f} s", file=sys.stderr, flush=True)
        if last.code:
            print(last.said, file=sys.stderr, flush=True)
        (out / "loads.json").write_text(json.dumps([asdict(each) for each in ran], indent=1) + "\n")
        (out / "loads.md").write_text("\n".join(page(asked.gpus, ran)) + "\n")
    print("\n".join(page(asked.gpus, ran)))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/loads"))
    parser.add_argument("--seconds", type=float, default=560.0)
    parser.add_argument("--only", default="", help="names of steps, with ; between")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def run_step(step: Step, out: Path, limit: float, queries: float) -> Ran:
    """The step within `limit` seconds, its output below `out`; `queries` is the host-to-device rate."""
    words = step.words.replace("{h2d}", f"{H2D * queries:.0f}").replace("{out}", str(out))
    words = words.replace("{raw}", str(out / "raw"))
    head = ["-m", "lanewise.cli.main"] if step.program == "lanewise" else [step.program]
    shown = f"{step.program} {words}"
    if limit < 10:
        return Ran(step.name, shown, None, said="no time left")
    folder = out / "raw" / step.name.replace(", ", "-").replace(" ", "-")
    folder.mkdir(exist_ok=True)
    begun = time.monotonic()
    told = ["--results", str(folder / "kept")] if words.startswith("loadtest run") else []
    command = [sys.executable, *head, *shlex.split(words), *told]
    environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTHONUNBUFFERED": "1"}
    with (folder / "out.txt").open("w+") as stdout, (folder / "err.txt").open("w+") as stderr:
        try:
            code = subprocess.run(command, stdout=stdout, stderr=stderr, timeout=limit, env=environment).returncode
        except subprocess.TimeoutExpired:
            code = 124
        stdout.seek(0)
        stderr.seek(0)
        text, said = stdout.read(), stderr.read()
    try:
        found = json.loads(text)
    except ValueError:
        found = text[-4000:]
    return Ran(step.name, shown, code, time.monotonic() - begun, found, said[-1500:])


def _queries(ran: Sequence[Ran]) -> float:
    """Queries/s at the measured rate of large copies; 1,000 before it is known."""
    rate = _rate(_told(ran, "h2d"))
    return rate / IMAGE if rate else 1000.0


def _told(ran: Sequence[Ran], name: str) -> Any:
    return next((each.told for each in ran if each.name == name and each.code in (0, 1)), None)


def _rate(told: Any) -> float | None:
    """B/s of the first row that has any."""
    rows = told if isinstance(told, list) else told.get("rows", []) if isinstance(told, dict) else []
    return next((row["value"] * (1e9 if row.get("unit") == "GB/s" else 1) for row in rows if row.get("value")), None)


def page(gpus: int, ran: Sequence[Ran]) -> Iterator[str]:
    """Every command with its figure, and the targets."""
    yield f"# Load tests on {gpus or 'no'} GPU{'' if gpus == 1 else 's'}"
    yield ""
    yield "| step | exit | s | completed/s | GB/s | p99, ms | verdict |"
    yield "|---|---|---|---|---|---|---|"
    for each in ran:
        yield f"| {each.name} | {each.code} | {each.seconds:.0f} | {' | '.join(_figures(each.told))} |"
    yield ""
    yield "| target | wanted | found | holds |"
    yield "|---|---|---|---|"
    for name, wanted, found, holds in targets(ran):
        yield f"| {name} | {wanted} | {found:.4g} | {'yes' if holds else 'NO'} |"
    yield ""
    for each in ran:
        if isinstance(each.told, dict) and "sweep" in each.told:
            yield from _swept(each.name, each.told)
    yield from (f"* {each.name}: `{each.command}`" for each in ran)


def _swept(name: str, told: dict[str, Any]) -> Iterator[str]:
    """A sweep's points."""
    yield f"| {name}: {told['sweep']} | peak, queries/s | predicted before | speed-up | p99, ms | limit |"
    yield "|---|---|---|---|---|---|"
    for row in told["rows"]:
        if not row["qps"]:
            yield f"| {row['point']} | {row['note']} | | | | |"
            continue
        expected = f"{row['predicted']:,.0f} ({row['residual_pct']:+.1f} %)" if row.get("predicted") else ""
        speed = f"{row['speedup']:.2f}" if row["speedup"] else ""
        numbers = f"{row['qps']:,.0f} | {expected} | {speed} | {1e3 * row['p99']:.3g}"
        yield f"| {row['point']} | {numbers} | {row.get('limit', '')} |"
    yield ""


def _figures(told: Any) -> tuple[str, str, str, str]:
    if not isinstance(told, dict) or not told.get("qps"):
        rate = _rate(told)
        return ("", f"{rate / 1e9:.4g}" if rate else "", "", "")
    size = told.get("about", {}).get("sample bytes", IMAGE)
    p99 = told.get("latency", {}).get("p99")
    audit = told.get("audit")
    verdict = told.get("verdict", "VALID" if told.get("valid") else "")
    said = f"{verdict}, audit {'passed' if audit['passed'] else 'FAILED'}" if audit else verdict
    return (f"{told['qps']:,.0f}", f"{told['qps'] * size / 1e9:.4g}", f"{1e3 * p99:.3g}" if p99 else "", said)


def targets(ran: Sequence[Ran]) -> Iterator[tuple[str, str, float, bool]]:
    """Each target that the commands so far tell of: its name, what is wanted, what was found, whether it holds."""
    queries = _queries(ran) if _told(ran, "h2d") else 0.0
    held, server, peak = (_told(ran, name) for name in ("held 1 ms", "bytes server", "model server"))
    if held:
        yield (
            "held 1 ms a batch of 128: share of 128,000/s",
            f">= {HELD}",
            held["qps"] / 128e3,
            held["qps"] >= HELD * 128e3,
        )
    found = [t["qps"] for each in ran if each.name.startswith("bytes offline, ") and (t := _told(ran, each.name))]
    if found and queries:
        yield "bytes, Offline: share of the H2D rate", f">= {H2D}", max(found) / queries, max(found) >= H2D * queries
    if server and queries:
        share, good = server["qps"] / queries, bool(server["valid"])
        yield (
            "bytes, Server within 15 ms: share of the H2D rate",
            f">= {0.99 * H2D:.4g} (sent at {H2D}), VALID",
            share,
            good and share >= H2D * 0.99,
        )
    offline = _told(ran, "model offline, batch 64")
    own = _own_rate(ran, 64)
    if offline and own:
        yield (
            "model, Offline: share of the engine's own",
            f">= {OFFLINE}",
            offline["qps"] / own,
            offline["qps"] >= OFFLINE * own,
        )
    if peak and peak.get("qps"):
        if own48 := _own_rate(ran, 48):
            yield (
                "model, Server: share of the engine's own",
                f">= {SERVER}",
                peak["qps"] / own48,
                peak["qps"] >= SERVER * own48,
            )
        if peak.get("predicted"):
            off = peak["predicted"] / peak["qps"] - 1.0
            yield "model, Server: the prediction is off by", f"<= {PREDICTED}", off, abs(off) <= PREDICTED
    most = _told(ran, "bytes peak")
    if most and most.get("qps") and queries:
        share = most["qps"] / queries
        yield "bytes, peak within 15 ms: share of the H2D rate", f">= {H2D}", share, share >= H2D
    for name in ("bytes peak", "bert server"):
        if (each := _told(ran, name)) and each.get("qps") and each.get("predicted"):
            off = each["predicted"] / each["qps"] - 1.0
            yield f"{name}: the prediction is off by", f"<= {PREDICTED}", off, abs(off) <= PREDICTED
    for name in ("batches", "sweep"):
        for row in (_told(ran, name) or {}).get("rows", []):
            if row.get("residual_pct") is not None:
                off = row["residual_pct"] / 100.0
                yield f"{name}, {row['point']}: the prediction is off by", f"<= {PREDICTED}", off, abs(off) <= PREDICTED
    for kind in ("model", "bytes"):
        one = _told(ran, f"{kind} offline on 1")
        for count, wanted in ((2, TWO), (4, FOUR)):
            if one and (many := _told(ran, f"{kind} offline on {count}")):
                grown = many["qps"] / one["qps"]
                yield f"{kind}, Offline: {count} GPUs against one", f">= {wanted}", grown, grown >= wanted
    for count in (1, 2, 4):
        moved, links = _told(ran, f"bytes offline on {count}"), _told(ran, f"h2d of {count}")
        if moved and links:
            rate = sum(
                row["value"] * (1e9 if row["unit"] == "GB/s" else 1) for row in links if row["metric"] == "goodput"
            )
            share = moved["qps"] * moved["about"]["sample bytes"] / rate
            yield f"bytes, Offline: share of {count} links at once", f">= {H2D}", share, share >= H2D


def _own_rate(ran: Sequence[Ran], batch: int) -> float | None:
    """The engine's own rate at a batch, with two in flight where that is faster, from the engines benchmark."""
    step = next((each for each in ran if each.name == "engine" and each.code == 0), None)
    if step is None:
        return None
    path = Path(step.command.split("--out ")[1].split()[0])
    engines = json.loads(path.read_text())["engines"].values()
    took = [
        min(each[way][str(batch)])
        for each in engines
        for way in ("seconds", "in flight")
        if str(batch) in each.get(way, {})
    ]
    return batch / min(took) if took else None


if __name__ == "__main__":
    sys.exit(main())
