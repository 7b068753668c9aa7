"""Every way to bring scattered samples to a GPU, with several batches in flight, beside one large copy.

    python benchmarks/h200/copies.py [--devices gpu0] [--batches 64,128,256] [--streams 1,2,4,8] [--out FILE.json]

GB/s of the system under test at work without any service time: what the synthetic engine can reach of the link at most.
`large` is the same GPU's copy of 256 MB from pinned memory, before and after. Writes the JSON and a page beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lanewise.errors import LanewiseError
from lanewise.loadtest.prediction import intervals
from lanewise.loadtest.session import open_system
from lanewise.options.loadtest import CPU, BatchingOptions

WAYS = ("batch", "kernel", "staged", "calls", "auto")


def main() -> int:
    """Measures, and writes after each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="gpu0")
    parser.add_argument("--batches", default="64,128,256")
    parser.add_argument("--streams", default="1,2,4,8")
    parser.add_argument("--sample-bytes", type=int, default=150_528)
    parser.add_argument("--out", type=Path, default=Path("out/copies.json"))
    asked = parser.parse_args()
    numbers = [[int(each) for each in text.split(",")] for text in (asked.batches, asked.streams)]
    devices = tuple(asked.devices.split(","))
    found: dict[str, Any] = {"command": " ".join(sys.argv), "large": large(devices), "rows": []}
    for way in WAYS if devices != (CPU,) else ("auto",):
        for batch in numbers[0]:
            for streams in numbers[1]:
                ask = BatchingOptions(devices=devices, batch=batch, streams=streams, copy=way, library=8192,
                                    sample_bytes=asked.sample_bytes, service=(0.0, 0.0))  # fmt: skip
                found["rows"].append(one(ask))
        write(asked.out, found)
    found["large"] += large(devices)
    write(asked.out, found)
    print(asked.out.with_suffix(".md").read_text())
    return 0


def one(ask: BatchingOptions) -> dict[str, Any]:
    """GB/s of all devices together."""
    row: dict[str, Any] = {"way": ask.copy, "batch": ask.batch, "streams": ask.streams}
    try:
        system = open_system(ask)
        took = intervals(system, ask, [ask.batch])[ask.batch]
    except LanewiseError as error:
        return row | {"skipped": str(error)}
    rate = len(ask.devices) * ask.batch * ask.sample_bytes / took / 1e9
    return row | {"GB/s": rate, "copies": [[way, dict(tried)] for way, tried in system.copies]}


def large(devices: Sequence[str]) -> list[float]:
    """GB/s of one large copy to the first GPU; nothing on a CPU."""
    if devices[0] == CPU:
        return []
    words = ("measure", "gpu", "--devices", devices[0].removeprefix("gpu"), "--cases", "host_to_device_memcpy_ce")
    command = [sys.executable, "-m", "lanewise.cli.main", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [row["value"] for row in json.loads(done.stdout)]


def write(path: Path, found: dict[str, Any]) -> None:
    """The raw data and the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    path.with_suffix(".md").write_text("\n".join(page(found)) + "\n")


def page(found: dict[str, Any]) -> Iterator[str]:
    """GB/s by way and batch, a column for each number of streams."""
    rows = found["rows"]
    streams = sorted({row["streams"] for row in rows})
    yield "# Ways to bring scattered samples to a GPU"
    yield ""
    yield f"`{found['command']}`. One large copy: {', '.join(f'{rate:.2f}' for rate in found['large'])} GB/s."
    yield ""
    yield "| way | batch | " + " | ".join(f"{n} in flight, GB/s" for n in streams) + " |"
    yield "|---|---|" + "---|" * len(streams)
    for way, batch in dict.fromkeys((row["way"], row["batch"]) for row in rows):
        cells = (_cell(row) for row in rows if (row["way"], row["batch"]) == (way, batch))
        yield f"| {way} | {batch} | {' | '.join(cells)} |"


def _cell(row: dict[str, Any]) -> str:
    if "skipped" in row:
        return str(row["skipped"])
    taken = f" ({row['copies'][0][0]})" if row["way"] == "auto" else ""
    return f"{row['GB/s']:.2f}{taken}"


if __name__ == "__main__":
    sys.exit(main())
