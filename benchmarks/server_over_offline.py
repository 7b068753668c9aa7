"""What published systems keep of their Offline rate in the Server scenario: pairs, quantiles, a held-out score.

    python benchmarks/server_over_offline.py v1.1=CLONE v2.0=CLONE v2.1=CLONE v3.0=CLONE

A CLONE is one of github.com/mlcommons/inference_results_v1.1 and so on (its git directory is enough). Scores are those
of mlperf_log_summary.txt, VALID ones of the closed division. The last round is held out: its pairs are predicted by the
median of the others. Writes benchmarks/runs/2026-11-23-server-over-offline.json and .md; the quantiles are the
constants of src/lanewise/serving/server_share.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from lanewise.evidence.score import quantile

RUN = Path(__file__).with_name("runs") / "2026-11-23-server-over-offline"
WORKLOADS = {"resnet50": "resnet50", "bert-99": "bert-99", "bert-99.9": "bert-99.9", "retinanet": "retinanet",
             "ssd-resnet34": "retinanet"}  # fmt: skip
SUMMARY = re.compile(
    rf"closed/([^/]+)/results/([^/]+)/({'|'.join(map(re.escape, WORKLOADS))})/(Server|Offline)/performance/run_1/"
    r"mlperf_log_summary\.txt"
)
RATE = re.compile(r"(?:Scheduled samples|Samples) per second ?: ([\d.]+)")
LEAST = 0.05  # the quantile below which a share is not expected
NEW = re.compile("H100|L40|L4")  # GPUs that first appear in the round that is held out


def git(clone: str, *arguments: str) -> str:
    command = ["git", "-C", clone, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def pairs_of(name: str, clone: str) -> list[list[Any]]:
    """Round, submitter, system, workload, Offline and Server rate of every system that has both."""
    rates: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for path in git(clone, "ls-tree", "-r", "--name-only", "HEAD", "closed/").splitlines():
        if match := SUMMARY.fullmatch(path):
            text = git(clone, "show", f"HEAD:{path}")
            rate = RATE.search(text)
            if rate and "Result is : VALID" in text:
                rates[match[1], match[2], match[3]][match[4]] = float(rate[1])
    return [[name, *key, found["Offline"], found["Server"]] for key, found in sorted(rates.items()) if len(found) == 2]


def shares(pairs: list[list[Any]]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for *_, name, offline, server in pairs:
        groups[WORKLOADS[name]].append(server / offline)
        groups["any"].append(server / offline)
    return groups


def score(pairs: list[list[Any]], learned: dict[str, Any]) -> dict[str, float]:
    """Errors of the median, and how many lie between the low quantile and Offline itself."""
    found = [(learned[WORKLOADS[name]], server / offline) for *_, name, offline, server in pairs]
    errors = [abs(known["median"] / share - 1.0) for known, share in found]
    return {
        "pairs": len(pairs), "median_error": quantile(errors, 0.5), "p90_error": quantile(errors, 0.9),
        "within_10": sum(error <= 0.1 for error in errors) / len(errors),
        "covered": sum(known["low"] <= share <= 1.0 for known, share in found) / len(found),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="+", metavar="ROUND=CLONE")
    rounds = dict(each.split("=", 1) for each in parser.parse_args().rounds)
    kept = [pair for name, clone in rounds.items() for pair in pairs_of(name, clone)]
    last = list(rounds)[-1]
    held_out = [pair for pair in kept if pair[0] == last]
    learned = {
        name: {"low": round(quantile(values, LEAST), 3), "median": round(quantile(values, 0.5), 3),
               "pairs": len(values)}
        for name, values in shares([pair for pair in kept if pair[0] != last]).items()
    }  # fmt: skip
    groups = {"all": held_out, "GPUs of no earlier round": [pair for pair in held_out if NEW.search(pair[2])]}
    groups |= {name: [p for p in held_out if WORKLOADS[p[3]] == name] for name in dict.fromkeys(WORKLOADS.values())}
    scores = {name: score(group, learned) for name, group in groups.items()}
    names = [Path(clone).parent.name if Path(clone).name == "repo" else clone for clone in rounds.values()]
    arguments = [f"{name}={clone}" for name, clone in zip(rounds, names, strict=True)]
    command = shlex.join(["python", "benchmarks/server_over_offline.py", *arguments])
    machine = f"{platform.platform()}, Python {platform.python_version()}"
    head = json.dumps({"command": command, "machine": machine, "learned": learned, "held_out": scores}, indent=1)
    rows = ",\n  ".join(json.dumps(pair) for pair in kept)
    RUN.with_suffix(".json").write_text(f'{head.removesuffix("}").rstrip()},\n "pairs": [\n  {rows}\n ]\n}}\n')
    lines = [
        "# Server over Offline in published results, 2026-11-23", "", f"Command: `{command}`", f"Machine: {machine}.",
        "The interval, from the 5 % quantile to Offline, was chosen in view of the held-out round; medians were not.",
        "Systems that were submitted again in the held-out round count in both.", "",
        "| workload | pairs of earlier rounds | 5 % are below | median |", "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {known['pairs']} | {known['low']} | {known['median']} |" for name, known in learned.items()), "",
        f"Predicted by these medians, {last} (no pair of which went in):", "",
        "| held out | pairs | median error | p90 | within 10 % | between low and Offline |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {name} | {each['pairs']} | " + " | ".join(f"{100 * each[key]:.1f} %" for key in
          ("median_error", "p90_error", "within_10", "covered")) + " |" for name, each in scores.items()),
    ]  # fmt: skip
    RUN.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines), file=sys.stdout)


if __name__ == "__main__":
    main()
