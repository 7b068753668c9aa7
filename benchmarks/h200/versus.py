"""Lanewise against nvbandwidth and p2pBandwidthLatencyTest on the same GPUs, in turns, and against its predictions.

    python benchmarks/h200/versus.py --nvbandwidth FILE --p2p FILE --out FOLDER [--seconds 480] [--rounds 5]

Rounds of all tools follow each other, each in the other order than the one before, as long as another fits into the
time. A tool that is not given is left out. FOLDER gets versus.json, versus.md and raw/, what each tool printed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
import peers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PREDICTIONS = Path(__file__).parents[1] / "runs/2026-11-22-h200-predictions.json"
OF_THE_SAMPLE = "device_to_device_*no_p2p,*_launch_latency"
LEAST, LATENCY, P2P, P2P_LATENCY, PREDICTED, GATHERED, TIME = 0.99, 0.03, 0.02, 0.10, 0.10, 0.97, 0.5


@dataclass(frozen=True)
class Tool:
    """`once` runs in the first round only; `read` makes values of what it printed, or of the run file it wrote."""

    name: str
    command: tuple[str, ...]
    read: Callable[[str], peers.Values]
    writes: bool = False
    once: bool = False


@dataclass
class Ran:
    """One run of one tool: which round, how long (s), its exit code and the values it gave."""

    tool: str
    round: int
    seconds: float
    code: int
    values: peers.Values


@dataclass(frozen=True)
class Line:
    """One value beside another's: medians over rounds, and each one's (largest - smallest) / median."""

    against: str
    scenario: str
    flow: str
    metric: str
    ours: float
    theirs: float
    ratio: float
    spread: float
    their_spread: float
    holds: bool


def main() -> int:
    """Run everything that fits into the time, compare, write; 1 where a bound does not hold."""
    args = _arguments()
    out = Path(args.out)
    (out / "raw").mkdir(parents=True, exist_ok=True)
    ran = rounds(_tools(args), out / "raw", args.seconds, args.rounds)
    lines = compare(ran)
    data = {
        "ran": [{**asdict(each), "values": len(each.values)} for each in ran],
        "lines": [asdict(line) for line in lines],
        "bounds": bounds(ran, lines),
    }
    (out / "versus.json").write_text(json.dumps(data, indent=1) + "\n")
    text = markdown(ran, lines)
    (out / "versus.md").write_text(text)
    print(text)
    return 0 if all(bound["holds"] for bound in bounds(ran, lines)) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nvbandwidth", help="its program")
    parser.add_argument("--p2p", help="p2pBandwidthLatencyTest's program")
    parser.add_argument("--lanewise", default=f"{sys.executable} -m lanewise.cli.main", help="how to run Lanewise")
    parser.add_argument("--rounds", type=int, default=5, help="begin no more rounds than this")
    parser.add_argument("--seconds", type=float, default=480.0, help="begin no round that would end later")
    parser.add_argument("--out", required=True, help="the folder of the results")
    return parser.parse_args()


def _tools(args: argparse.Namespace) -> list[Tool]:
    gpu = (*shlex.split(args.lanewise), "measure", "gpu")
    tools = []
    if args.nvbandwidth:
        tools.append(Tool("nvbandwidth", (args.nvbandwidth, "--json"), peers.nvbandwidth))
    tools.append(Tool("lanewise nvbandwidth", (*gpu, "--cases", "nvbandwidth"), peers.lanewise, writes=True))
    if args.p2p:
        tools.append(Tool("p2pBandwidthLatencyTest", (args.p2p,), peers.p2p_test))
    tools.append(Tool("lanewise p2p", (*gpu, "--cases", OF_THE_SAMPLE), peers.lanewise, writes=True))
    for name in ("queries", "sweep"):
        command = (*gpu, f"--{name}", "--devices", "0")
        tools.append(Tool(f"lanewise {name}", command, peers.lanewise, writes=True, once=True))
    return tools


def rounds(tools: Sequence[Tool], raw: Path, seconds: float, most: int) -> list[Ran]:
    """Rounds of all tools until another like the longest one would not end in time; at least one."""
    begun, longest, ran, number = time.monotonic(), 0.0, [], 0
    while number == 0 or (number < most and time.monotonic() - begun + longest < seconds):
        number += 1
        left = [tool for tool in tools if number == 1 or not tool.once]
        for tool in left if number % 2 else reversed(left):
            last = _run(tool, number, raw)
            ran.append(last)
            print(f"round {number}: {tool.name} {last.seconds:.1f} s, exit {last.code}", file=sys.stderr, flush=True)
        again = {tool.name for tool in tools if not tool.once}
        longest = max(longest, sum(each.seconds for each in ran if each.round == number and each.tool in again))
    return ran


def _run(tool: Tool, number: int, raw: Path) -> Ran:
    stem = raw / f"{number}-{tool.name.replace(' ', '-')}"
    run_file = stem.with_suffix(".run.json")
    command = [*tool.command, "-o", str(run_file)] if tool.writes else list(tool.command)
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    seconds = time.monotonic() - started
    stem.with_suffix(".txt").write_text(done.stdout + done.stderr)
    try:
        values = tool.read(run_file.read_text() if tool.writes else done.stdout)
    except (OSError, ValueError, KeyError) as error:
        print(f"{tool.name}: nothing readable ({error}); it said: {done.stderr[-500:]}", file=sys.stderr)
        values = {}
    return Ran(tool.name, number, seconds, done.returncode, values)


def compare(ran: Sequence[Ran]) -> list[Line]:
    """Every value that both we and another have: nvbandwidth's, the sample's, and what was predicted."""
    single = [each for each in ran if each.tool.startswith("lanewise") and each.tool != "lanewise sweep"]
    ours, lines = _series(single), []
    for other in ("nvbandwidth", "p2pBandwidthLatencyTest"):
        for name, values in _series(each for each in ran if each.tool == other).items():
            if name in ours:
                lines.append(_line(other, name, ours[name], values))
    for name, value in peers.lanewise(PREDICTIONS.read_text()).items():
        if name in ours:
            lines.append(_line("prediction", name, ours[name], [value]))
    return lines


def _series(ran: Iterable[Ran]) -> dict[peers.Name, list[float]]:
    found: dict[peers.Name, list[float]] = {}
    for each in ran:
        for name, value in each.values.items():
            found.setdefault(name, []).append(value)
    return found


def _line(against: str, name: peers.Name, ours: Sequence[float], theirs: Sequence[float]) -> Line:
    mine, other = statistics.median(ours), statistics.median(theirs)
    ratio = mine / other
    latency = name[2] in ("latency", "chase_latency")
    off = abs(ratio - 1)
    if against == "nvbandwidth":
        holds = off <= LATENCY if latency else ratio >= LEAST
    elif against == "prediction":
        holds = off <= PREDICTED
    else:
        holds = off <= P2P_LATENCY if latency else ratio >= 1 - P2P
    return Line(against, *name, mine, other, ratio, _spread(ours), _spread(theirs), holds)


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def bounds(ran: Sequence[Ran], lines: Sequence[Line]) -> list[dict[str, object]]:
    """Each bound on the whole: what was reached and whether it holds."""
    failed = [f"{each.tool} {each.code}" for each in ran if each.code]
    found: list[dict[str, object]] = [
        {"bound": "every tool exits with 0", "reached": ", ".join(dict.fromkeys(failed)) or "all", "holds": not failed}
    ]
    for against in dict.fromkeys(line.against for line in lines):
        of = [line for line in lines if line.against == against]
        held = sum(line.holds for line in of)
        found.append({"bound": f"{against}: values within bounds", "reached": f"{held} of {len(of)}",
                      "holds": held == len(of)})  # fmt: skip
    ours, theirs = ([r.seconds for r in ran if r.tool == tool] for tool in ("lanewise nvbandwidth", "nvbandwidth"))
    if ours and theirs:
        share = statistics.median(ours) / statistics.median(theirs)
        found.append({"bound": f"time of the 35 cases at most {TIME:g} of nvbandwidth's", "reached": f"{share:.2f}",
                      "holds": share <= TIME})  # fmt: skip
    values = _series(each for each in ran if each.tool == "lanewise queries")
    shares = [v[0] / 100 for (name, _, metric), v in values.items() if metric == "share" and "batch=128" in name]
    if shares:
        found.append({"bound": f"queries in batches of 128, best method, at least {GATHERED:g} of one large copy",
                      "reached": f"{max(shares):.3f}", "holds": max(shares) >= GATHERED})  # fmt: skip
    return found


def markdown(ran: Sequence[Ran], lines: Sequence[Line]) -> str:
    """The bounds, the times, each case's worst value, and every line that does not hold."""
    text = ["| bound | reached | holds |", "|---|---|---|"]
    text += [f"| {b['bound']} | {b['reached']} | {'yes' if b['holds'] else 'NO'} |" for b in bounds(ran, lines)]
    text += ["", "| tool | runs | median s | exit codes |", "|---|---|---|---|"]
    for tool in dict.fromkeys(each.tool for each in ran):
        of = [each for each in ran if each.tool == tool]
        codes = sorted({each.code for each in of})
        text.append(f"| {tool} | {len(of)} | {statistics.median(each.seconds for each in of):.1f} | {codes} |")
    text += [
        "",
        "| against | case | metric | values | worst ratio | ours there | theirs | our spread | theirs | hold |",
    ]
    text += ["|---|---|---|---|---|---|---|---|---|---|"]
    for key in dict.fromkeys((line.against, line.scenario, line.metric) for line in lines):
        of_case = [line for line in lines if (line.against, line.scenario, line.metric) == key]
        worst = max(of_case, key=lambda line: (not line.holds, abs(line.ratio - 1)))
        spreads = [max(getattr(line, which) for line in of_case) for which in ("spread", "their_spread")]
        held = "all" if all(line.holds for line in of_case) else f"{sum(line.holds for line in of_case)}"
        text.append(
            f"| {' | '.join(key)} | {len(of_case)} | {worst.ratio:.3f} | {worst.ours:.4g} | {worst.theirs:.4g} | "
            f"{100 * spreads[0]:.2f} % | {100 * spreads[1]:.2f} % | {held} |"
        )
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    sys.exit(main())
