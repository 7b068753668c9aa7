"""Every set of up to four flows on one or two GPUs: predicted first, then measured, then compared.

    python benchmarks/h200/flow_sets.py predict SYSTEM.yaml [--measured RUN] -o FOLDER  # commit FOLDER before the next
    python benchmarks/h200/flow_sets.py measure --gpus 2 -o FOLDER
    python benchmarks/h200/flow_sets.py compare FOLDER

The flows of several GPUs: each GPU from and to the host, and each GPU to every other one; of one GPU: from and to the
host. Of four GPUs 30 sets are drawn of each size, and all copies of the host are measured at once, one way and both.
A set is measured while all its flows run; staged copies (peer access off) are measured alone and both ways, which
is predicted as issued in turns, not all of one direction before the other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lanewise
from lanewise.api.provenance import now, version
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import predict
from lanewise.perf.schedules import SCHEDULES, TOGETHER

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS = (1, 2, 4)
DRAWN, SEED = 30, 4  # sets of each size, where trying all of them would take hours
STAGED = ("gpu0->gpu1", "gpu0->gpu1, gpu1->gpu0")
MOST = 4
WITHIN = 0.10


def all_flows(gpus: int) -> list[str]:
    """Each GPU from and to the host, then each to every other one."""
    names = [f"gpu{number}" for number in range(gpus)]
    of_host = [flow for name in names for flow in (f"host0->{name}", f"{name}->host0")]
    return of_host + [f"{src}->{dst}" for src, dst in itertools.permutations(names, 2)]


def flow_sets(gpus: int) -> Iterator[tuple[str, bool]]:
    """Each set as text, and whether the GPUs reach each other directly."""
    flows, chance = all_flows(gpus), random.Random(SEED)
    for size in range(1, MOST + 1):
        every = list(itertools.combinations(flows, size))
        for chosen in every if len(every) <= 2 * DRAWN else sorted(chance.sample(every, DRAWN)):
            yield ", ".join(chosen), True
    if gpus > MOST // 2:
        of_host = flows[: 2 * gpus]
        yield from ((", ".join(chosen), True) for chosen in (of_host[::2], of_host[1::2], of_host))
    if gpus > 1:
        yield from ((text, False) for text in STAGED)


def predictions(path: str, measured: Path | None) -> dict[str, Any]:
    """The rate (B/s) of each flow of each set, with its range and its limit; by what was `measured` there."""
    system = lanewise.load_system(path) if measured is None else lanewise.calibrate_host(path, measured).system
    gpus = sum(name.startswith("gpu") for name in system.devices)
    rows = []
    for text, p2p in flow_sets(gpus):
        flows = parse_flows(text, p2p)
        schedule = TOGETHER if p2p or len(flows) == 1 else SCHEDULES["p2pBandwidthLatencyTest-cuda9"]
        rates = predict(system, flows, schedule).rates
        rows += [
            {"flows": text, "p2p": p2p, "flow": rate.flow.name, "predicted": rate.rate, "low": rate.low,
             "high": rate.high, "limit": rate.limit, "basis": rate.basis, "rests_on": rate.rests_on}
            for rate in rates
        ]  # fmt: skip
    return {"created": now(), "version": version(), "system": path, "title": system.title, "gpus": gpus, "rows": rows}


def measure(gpus: int, output: Path) -> None:
    """Write the median rate (B/s) of each flow of each set with its samples; after each set, so that none is lost."""
    rows: list[dict[str, Any]] = []
    for text, p2p in flow_sets(gpus):
        samples: dict[str, list[float]] = {}
        for sample in lanewise.measure_gpu(text, no_p2p=not p2p):
            if sample.metric == "goodput" and sample.value is not None:
                samples.setdefault(sample.flow, []).append(sample.value)
        for flow, values in samples.items():
            median = statistics.median(values)
            rows.append({"flows": text, "p2p": p2p, "flow": flow, "measured": median, "samples": values})
            print(f"{text:70} {flow:14} {median / 1e9:8.2f} GB/s", flush=True)
        write(output, {"created": now(), "version": version(), "gpus": gpus, "rows": rows})


def write(path: Path, data: dict[str, Any]) -> None:
    """Replace a JSON file at once: a run that is stopped leaves the last whole one."""
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(data, indent=1) + "\n")
    whole.replace(path)


def comparison(folder: Path) -> str:
    """A table of both, and how many flows and sums of sets lie within 10 % and within the predicted range."""
    predicted, measured = (json.loads((folder / name).read_text()) for name in ("predicted.json", "measured.json"))
    values = {(row["flows"], row["p2p"], row["flow"]): row["measured"] for row in measured["rows"]}
    rows = [
        (row, values[key]) for row in predicted["rows"] if (key := (row["flows"], row["p2p"], row["flow"])) in values
    ]
    errors = [abs(row["predicted"] / value - 1) for row, value in rows]
    covered = sum(row["low"] <= value <= row["high"] for row, value in rows)
    sums: dict[tuple[str, bool], list[float]] = {}
    for row, value in rows:
        total = sums.setdefault((row["flows"], row["p2p"]), [0.0, 0.0])
        total[0], total[1] = total[0] + row["predicted"], total[1] + value
    of_sets = [abs(ours / theirs - 1) for ours, theirs in sums.values()]
    return "\n".join(
        [
            f"# Every set of up to {MOST} flows: {predicted['title']}",
            "",
            f"Predicted {predicted['created']} from {predicted['system']}, measured {measured['created']}.",
            "",
            f"- flows: {_within(errors)}; {covered} of {len(rows)} within the predicted range",
            f"- sums of sets: {_within(of_sets)}",
            "",
            "| flows together | flow | predicted GB/s | range | measured GB/s | error | in range | limit |",
            "|---|---|---:|---|---:|---:|---|---|",
            *(_line(row, value) for row, value in rows),
            "",
        ]
    )


def _within(errors: list[float]) -> str:
    near = sum(error <= WITHIN for error in errors)
    return f"{near} of {len(errors)} within 10 %, median {statistics.median(errors):.1%}, largest {max(errors):.1%}"


def _line(row: dict[str, Any], value: float) -> str:
    name = row["flows"] + ("" if row["p2p"] else " (staged)")
    low, rate, high = (row[key] / 1e9 for key in ("low", "predicted", "high"))
    covered = "yes" if row["low"] <= value <= row["high"] else "NO"
    error = row["predicted"] / value - 1
    return (
        f"| {name} | {row['flow']} | {rate:.1f} | {low:.1f} to {high:.1f} | {value / 1e9:.1f} | {error:+.1%} "
        f"| {covered} | {row['limit']} |"
    )


def main() -> None:
    """One of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("predict", "measure", "compare"):
        step = steps.add_parser(name)
        if name == "predict":
            step.add_argument("system")
            step.add_argument("--measured", type=Path, help="a run of lanewise measure gpu on this very machine")
        if name == "measure":
            step.add_argument("--gpus", type=int, choices=COUNTS, required=True)
        if name == "compare":
            step.add_argument("folder", type=Path)
        else:
            step.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    if args.step == "compare":
        text = comparison(args.folder)
        (args.folder / "compared.md").write_text(text)
        print(text)
        return
    args.output.mkdir(parents=True, exist_ok=True)
    if args.step == "predict":
        write(args.output / "predicted.json", predictions(args.system, args.measured))
    else:
        measure(args.gpus, args.output / "measured.json")


if __name__ == "__main__":
    main()
