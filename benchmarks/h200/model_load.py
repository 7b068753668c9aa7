"""A model of random tensors loaded to one H200, predicted and measured.

    python benchmarks/h200/model_load.py predict OUT     # here, before: predicted.json
    python benchmarks/h200/model_load.py measure OUT     # there; OUT has predicted.json; measured.json, load.run.json
    python benchmarks/h200/model_load.py compare OUT     # here, after: README.md's table
    python benchmarks/h200/model_load.py overlap OUT     # there, as root: OUT/overlap.json

What the page cache and the link allow is predicted as numbers. What depends on the drive, which nobody has measured, is
predicted from its rate and the time of one read: `measure` takes these two from `lanewise measure storage`, predicts,
writes that down, and only then loads anything. `overlap` is a second run: the cached mode whose readers go on while
copies run, and safetensors with read-aheads of the kernel at which a read's latency must limit it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lanewise

SYSTEM = "h200-pair"
LIBRARIES = ("safetensors", "runai-streamer", "fastsafetensors")
TENSORS, BYTES = int(os.environ.get("TENSORS", "300")), 20 * 2**20  # 6.3 GB
READERS, CORE = 8, (5.0, 7.0, 11.0)  # of our cached mode: GB/s that one core copies from the page cache
Row = dict[str, Any]


def warm() -> dict[str, Row]:
    """What is read from the page cache: no drive in it."""
    link = lanewise.predict(SYSTEM, "host0->gpu0").rates[0]
    # A reader copies a chunk from the page cache, then waits until the copy engine has it; readers overlap.
    low, nominal, high = (
        min(READERS / (1 / (core * 1e9) + 1 / link.rate), end)
        for core, end in zip(CORE, (link.low, link.rate, link.high), strict=True)
    )
    rows = {
        "cached": rate_row(nominal, low, high, "CPU copies, near the link"),
        "copies alone": rate_row(link.rate, link.low, link.high, link.limit),
    }
    for name in LIBRARIES:
        rows[f"{name} warm"] = load_row(name, "1 GB/s", None, warm=True)
    return rows


def cold(rate: float, latency: float) -> dict[str, Row]:
    """What is read from a drive of that rate (B/s), a read of 128 KiB in `latency` s."""
    text = f"{rate / 1e9} GB/s"
    rows = {mode: load_row("direct", text, latency) for mode in ("direct", "bounce")}
    # Through the page cache, eight readers of our own with the read-ahead of Linux.
    rows["buffered"] = load_row("runai-streamer", text, latency, readers=READERS)
    for name in LIBRARIES:
        rows[f"{name} cold"] = load_row(name, text, latency)
    return rows


def rate_row(rate: float, low: float, high: float, limit: str) -> Row:
    size = TENSORS * BYTES
    return {"seconds": size / rate, "low": size / high, "high": size / low, "limit": limit}


def load_row(loader: str, source: str, latency: float | None, **how: Any) -> Row:
    """One prediction of `lanewise predict --load`."""
    load = lanewise.predict_load(
        SYSTEM, TENSORS * BYTES, source, "gpu0", [loader], read_latency=latency, **how
    ).loads[0]  # fmt: skip
    return {"seconds": load.time, "low": load.low, "high": load.high, "limit": load.limit}


def make(path: Path) -> None:
    """Half-precision tensors of random bytes, no two alike."""
    header: dict[str, Any] = {
        f"layers.{i}.weight": {"dtype": "F16", "shape": [BYTES // 2], "data_offsets": [i * BYTES, (i + 1) * BYTES]}
        for i in range(TENSORS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = bytearray(os.urandom(BYTES))
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(TENSORS):
            block[: 1 << 16] = os.urandom(1 << 16)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def median(rows: Sequence[Any], metric: str) -> float:
    return float(next(row.value for row in rows if row.metric == metric))


def measure(out: Path, folder: Path) -> None:
    """The drive, the predictions that follow from it, then the loads."""
    began = time.monotonic()
    path = folder / "random.safetensors"
    make(path)
    print(f"made {path.stat().st_size / 1e9:.2f} GB after {time.monotonic() - began:.0f} s", flush=True)
    os.posix_fadvise(descriptor := os.open(path, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    drive = lanewise.as_measured_run(lanewise.measure_storage(
        path, io="4 MiB", threads=READERS, depth=4, size=6_000_000_000, modes="direct", runs=5)).rows  # fmt: skip
    one = lanewise.as_measured_run(lanewise.measure_storage(
        path, io="128 KiB", threads=1, depth=1, size=500_000_000, modes="direct", runs=3)).rows  # fmt: skip
    rate, latency = median(drive, "goodput"), median(one, "latency_p50")
    rows = cold(rate, latency)
    predicted = {"drive": rate, "latency": latency, "rows": rows}
    (out / "predicted-cold.json").write_text(json.dumps(predicted, indent=1) + "\n", encoding="utf-8")
    print(f"drive {rate / 1e9:.3f} GB/s, {latency * 1e6:.0f} us after {time.monotonic() - began:.0f} s", flush=True)
    for name, row in rows.items():
        print(f"predicted {name}: {row['seconds']:.3f} s ({row['low']:.3f} to {row['high']:.3f}), {row['limit']}")
    samples: list[Any] = []
    for sample in lanewise.measure_load(path, "gpu0", readers=READERS, runs=3):
        samples.append(sample)
        value = "none" if sample.value is None else f"{sample.value:.4g} {sample.unit}"
        after = f"after {time.monotonic() - began:.0f} s"
        print(f"{sample.scenario} {sample.metric} {value} {sample.note} {after}", flush=True)
        # At once: a loader of another maker may end the process.
        lanewise.save_run(lanewise.as_measured_run(samples), out / "load.run.json")
    path.unlink()


def overlap(out: Path, folder: Path) -> None:
    """The cached mode by number of readers, then safetensors by the kernel's read-ahead, each predicted first."""
    path = folder / "random.safetensors"
    make(path)
    record: dict[str, Any] = {"cached": [], "read_ahead": []}
    for readers in (4, 8, 12):
        for run in lanewise.as_measured_run(
            lanewise.measure_load(path, "gpu0", modes=("cached",), readers=readers, runs=5)
        ).rows:
            record["cached"].append({"readers": readers, "metric": run.metric, "value": run.value, "unit": run.unit})
            print(f"cached, {readers} readers: {run.metric} {run.value:.4g} {run.unit}", flush=True)
    setting = Path("/sys/block/vda/queue/read_ahead_kb")
    before = setting.read_text(encoding="utf-8")
    try:
        for kib in (16, 32, 64, 128):
            setting.write_text(str(kib), encoding="utf-8")
            record["read_ahead"].append(read_ahead(path, kib * 1024))
            (out / "overlap.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    finally:
        setting.write_text(before, encoding="utf-8")
        path.unlink()


def read_ahead(path: Path, size: int) -> Row:
    """safetensors cold with that read-ahead (B): the latency of such a read, the prediction, the load."""
    one = lanewise.as_measured_run(lanewise.measure_storage(
        path, io=size, threads=1, depth=1, size=100_000_000, modes="direct", runs=3)).rows  # fmt: skip
    latency = median(one, "latency_p50")
    load = lanewise.predict_load(
        SYSTEM, path.stat().st_size, "2 GB/s", "gpu0", ["safetensors"], read_latency=latency, read_ahead=size
    ).loads[0]
    row = {"read_ahead": size, "latency": latency, "predicted": load.time, "low": load.low, "high": load.high,
           "limit": load.limit}  # fmt: skip
    print(row, flush=True)
    samples = lanewise.measure_load(path, "gpu0", modes=("safetensors",), runs=3)
    rows = lanewise.as_measured_run(sample for sample in samples if sample.scenario.endswith("cold")).rows
    row["measured"] = median(rows, "makespan")
    print(row, flush=True)
    return row


def compare(out: Path) -> None:
    """The table of predictions and medians."""
    predicted = json.loads((out / "predicted.json").read_text(encoding="utf-8"))["rows"]
    predicted |= json.loads((out / "predicted-cold.json").read_text(encoding="utf-8"))["rows"]
    measured: dict[str, Row] = {}
    for row in lanewise.load_run(out / "load.run.json").rows:
        name = row.scenario.removeprefix("load ")
        if row.value is not None:
            measured.setdefault(name, {"limit": row.how.get("limit", "")})[row.metric] = row.value
    if "copies_alone" in measured.get("direct", {}):
        alone = measured["direct"]["copies_alone"]
        measured["copies alone"] = {"makespan": TENSORS * BYTES / alone, "total": alone, "limit": ""}
    print("| loader | predicted s | interval s | predicted limit | measured s | GB/s | error | in interval | of the "
          "slower stage | measured limit |\n|---|---:|---|---|---:|---:|---:|---|---:|---|")  # fmt: skip
    for name, row in predicted.items():
        if name not in measured:
            print(
                f"| {name} | {row['seconds']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['limit']} |" + " |" * 6
            )
            continue
        seen = measured[name]
        seconds = seen["makespan"]
        inside = "yes" if row["low"] <= seconds <= row["high"] else "no"
        share = f"{seen['of_slower_stage']:.3f}" if "of_slower_stage" in seen else ""
        print(
            f"| {name} | {row['seconds']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['limit']} | {seconds:.3f} "
            f"| {seen['total'] / 1e9:.2f} | {100 * (row['seconds'] / seconds - 1):+.0f} % | {inside} | {share} "
            f"| {seen['limit']} |"
        )


def main() -> None:
    verb, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    if verb == "predict":
        (out / "predicted.json").write_text(json.dumps({"rows": warm()}, indent=1) + "\n", encoding="utf-8")
        print((out / "predicted.json").read_text(encoding="utf-8"))
    elif verb == "measure":
        measure(out, Path(sys.argv[3] if len(sys.argv) > 3 else "."))
    elif verb == "overlap":
        overlap(out, Path(sys.argv[3] if len(sys.argv) > 3 else "."))
    else:
        compare(out)


if __name__ == "__main__":
    main()
