"""Loopback: goodput against iperf3 and half round trips against sockperf, by turns in one call.

    python benchmarks/network.py [-o benchmarks/runs/DATE-network.json]

Whole processes, as a user starts them: 128 KiB messages, 1, 2 and 4 streams for 2 s each, then 64-byte messages back
and forth for 1 s; five rounds, every value kept, medians compared. Needs iperf3; without sockperf no latency.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kept

from lanewise import units

LANEWISE = str(Path(sys.executable).with_name("lanewise"))
BYTES, STREAMS, ROUNDS, PING = 131072, (1, 2, 4), 5, 64
HERE = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


def run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def with_server(server: list[str], client: list[str]) -> str:
    """What the client prints while the server runs."""
    process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        return run(client)
    finally:
        process.terminate()
        process.wait(10)


def lanewise(*options: str) -> dict[str, float]:
    """The mean of each metric's samples, in GB/s or us, of `lanewise measure network`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.jsonl"
        run([LANEWISE, "measure", "network", *options, "--samples", str(path)])
        found: dict[str, list[float]] = {}
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["metric"], []).append(units.in_unit(row["value"], row["display_unit"]))
    return {metric: statistics.fmean(values) for metric, values in found.items()}


def iperf3(streams: int) -> float:
    """GB/s received by iperf3's server."""
    port = str(free_port())
    answer = with_server(
        ["iperf3", "-s", "-1", "-B", HERE, "-p", port],
        ["iperf3", "-c", HERE, "-p", port, "-P", str(streams), "-l", str(BYTES), "-t", "2", "-O", "0.3", "-J"],
    )
    return float(json.loads(answer)["end"]["sum_received"]["bits_per_second"]) / 8e9


def sockperf() -> dict[str, float]:
    """Half round trips of sockperf in us, under our names."""
    port = str(free_port())
    answer = with_server(
        ["sockperf", "server", "--tcp", "-i", HERE, "-p", port],
        ["sockperf", "ping-pong", "--tcp", "-i", HERE, "-p", port, "-m", str(PING), "-t", "1"],
    )
    found = {"latency": r"Latency is\s+([\d.]+)"}
    for share in ("50", "99", "99.9"):
        found[f"latency_p{share}"] = rf"percentile {float(share):.3f} =\s+([\d.]+)"
    return {metric: float(re.findall(pattern, answer)[-1]) for metric, pattern in found.items()}


def bandwidth() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for streams in STREAMS:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            theirs.append(iperf3(streams))
            ours.append(lanewise("--connections", str(streams), "--sizes", str(BYTES), "--seconds", "0.13")["goodput"])
        rows.append(compared(f"goodput, {streams} streams", "GB/s", ours, "iperf3", theirs))
    return rows


def latency() -> list[dict[str, object]]:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(sockperf())
        ours.append(lanewise("--latency", "--sizes", str(PING), "--seconds", "0.067"))
    return [
        compared(metric, "us", [one[metric] for one in ours], "sockperf", [one[metric] for one in theirs])
        for metric in theirs[0]
    ]


def compared(what: str, unit: str, ours: list[float], peer: str, theirs: list[float]) -> dict[str, object]:
    middle, other = statistics.median(ours), statistics.median(theirs)
    print(f"{what}: lanewise {middle:.3f}, {peer} {other:.3f} {unit}, ratio {middle / other:.3f}", flush=True)
    return {"what": what, "unit": unit, "peer": peer, "lanewise": ours, "other": theirs,
            "median_lanewise": middle, "median_other": other, "ratio": middle / other}  # fmt: skip


def page(made: kept.Record) -> str:
    """All values as a table."""
    lines = kept.heading("Network", made)
    lines += [
        f"Peers: {', '.join(made['peers'].values())}.",
        "",
        "| | unit | Lanewise | peer | ratio | Lanewise, range | peer, range |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for row in made["rows"]:
        ours, theirs = row["lanewise"], row["other"]
        cells = [
            row["what"], row["unit"], f"{row['median_lanewise']:.3f}", f"{row['median_other']:.3f} ({row['peer']})",
            f"{row['ratio']:.3f}", f"{min(ours):.3f} .. {max(ours):.3f}", f"{min(theirs):.3f} .. {max(theirs):.3f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join([*lines, "", __doc__.split("\n\n")[2].strip() if __doc__ else "", ""])


def main() -> None:
    """Compares whatever peers there are and keeps it."""
    asked = kept.options(__doc__, "network").parse_args()
    if shutil.which("iperf3") is None:
        sys.exit("error: iperf3 is not installed\nhint:  apt-get install iperf3 sockperf")
    made = kept.begin(asked) | {"rows": bandwidth(), "peers": {"iperf3": kept.first_line("iperf3", "--version")}}
    if shutil.which("sockperf") is not None:
        made["rows"] += latency()
        made["peers"]["sockperf"] = kept.first_line("sockperf", "--version")
    kept.keep(made, page, asked.out)


if __name__ == "__main__":
    main()
