"""A Frontend and two Accelerator nodes in network namespaces of their own, joined by links of unequal rates.

    python benchmarks/dispatch_namespaces.py [--rates 40mbit 10mbit] [--seconds 20]

Root, `ip` and `tc` are needed: the links are veth pairs shaped by tbf at both ends. The nodes answer from the synthetic
engine, so the links limit. First every sample is sent once in the Server scenario, at half of what the links carry, and
its payload audited; then come a run at 70 % of it, an Offline run, and a search for the largest VALID rate; then the
link to the second node is taken down, and taken away, under load.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dispatch.namespaces import Fabric, fabric
from dispatch.nodes import NodeProcess, load_test

SAMPLE_BYTES = 20_000
OPTIONS = ("--engine", "synthetic", "--service", "100 us", "--sample-bytes", f"{SAMPLE_BYTES} B")
TEST = ("--connections", "2", "--depth", "64", "--bound", "1 s", "--percentile", "0.99")
AUDITED = 1000
# A Frontend that takes the NIC of the second node away when queries were answered.
GONE = """
import subprocess
from lanewise.loadtest import frontend_session
taken = []
def tick(issued, answered, late):
    if answered and not taken:
        taken.append(subprocess.run("{command}".split(), check=True))
class NicTaker(frontend_session.NetworkRunner):
    def __init__(self, system, folder, setup, old):
        super().__init__(system, folder, setup, tick)
frontend_session.NetworkRunner = NicTaker
"""
LOSSES = ("ip link set port1 down", "ip link del port1")


def bits(rate: str) -> float:
    """bit/s of a rate as tc writes it, in Mbit/s or Gbit/s."""
    found = re.fullmatch(r"(\d+)([mg])bit", rate)
    if not found:
        raise SystemExit(f"{rate} is not a rate such as 200mbit")
    return float(found[1]) * (1e9 if found[2] == "g" else 1e6)


def started(stack: ExitStack, links: Fabric, folder: Path, rates: list[str]) -> list[NodeProcess]:
    """A node behind each link."""
    nodes = []
    for number in range(len(rates)):
        node = NodeProcess(folder, "ab"[number], OPTIONS, host=links.host(number), prefix=links.inside(number))
        stack.callback(node.close)
        nodes.append(node)
    return nodes


def row(name: str, code: int, result: dict[str, Any], stderr: str) -> kept.Record:
    """What is kept of a load test."""
    keys = ("queries", "qps", "seconds", "valid", "verdict", "reasons", "reason", "latency", "audit", "nodes", "limit",
            "interval", "runs")  # fmt: skip
    kept_of = {key: result[key] for key in keys if key in result}
    return {"test": name, "exit code": code, **kept_of, "stderr": stderr.splitlines()[-3:]}


def measure(rates: list[str], seconds: float) -> list[kept.Record]:
    """All load tests over links of these rates."""
    audited = ("run", "--scenario", "server", "--audit", "payload", "--library", str(AUDITED))
    most = sum(map(bits, rates)) / (8 * SAMPLE_BYTES)
    half, much = f"{0.5 * most:.0f}", f"{0.7 * most:.0f}"
    tests: list[tuple[str, tuple[str, ...], str]] = [
        ("payload audit", (*audited, "--qps", half), ""),
        ("run at 70 %", ("run", "--qps", much, "--seconds", f"{seconds:g}", "--library", "256"), ""),
        ("Offline", ("run", "--scenario", "offline", "--seconds", f"{seconds:g}", "--library", "256"), ""),
        ("peak", ("peak", "--seconds", f"{seconds:g}", "--library", "256"), ""),
    ]
    lossy = ("run", "--qps", half, "--seconds", "2", "--queries", "100", "--library", "256")
    tests += [(command, lossy, GONE.format(command=command)) for command in LOSSES]
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        links = stack.enter_context(fabric(*rates))
        nodes = started(stack, links, folder, rates)
        for number, (name, words, patch) in enumerate(tests):
            done, result = load_test(folder, nodes, (*words, *TEST), links.inside(), patch, f"frontend{number}")
            rows.append(row(name, done.returncode, result, done.stderr.replace(str(folder), "FOLDER")))
            if name == LOSSES[0]:
                nodes[1].line("was silent")
                links.link(1, "up")
    return rows


def page(record: kept.Record) -> str:
    """The load tests, and each node's share next to its link's."""
    whole = sum(map(bits, record["rates"]))
    lines = ["| load test | verdict | queries/s | p99, ms | answered by a | by b | verified |", "|---" * 7 + "|"]
    for each in record["rows"]:
        answered = [node["answered"] for node in each["nodes"]]
        shares = [f"{node['answered']:,} ({node['answered'] / sum(answered):.0%}){', lost' * bool(node['lost'])}"
                  for node in each["nodes"]]  # fmt: skip
        audit = each["audit"]["figures"] if each.get("audit") else None
        verified = f"{audit['checked'] - audit['wrong']:g} of {AUDITED}" if audit else ""
        verdict = each.get("verdict") or ("VALID" if each["valid"] else "INVALID")
        p99 = 1e3 * each["latency"].get("p99", 0.0)
        figures = f"{each['qps'] or 0:,.0f} | {p99:.1f} | {shares[0]} | {shares[1]} | {verified}"
        lines.append(f"| {each['test']} | {verdict} | {figures} |")
    rates = " and ".join(record["rates"])
    shares_of = " and ".join(f"{bits(rate) / whole:.0%}" for rate in record["rates"])
    most = whole / (8 * SAMPLE_BYTES)
    about = (f"Links of {rates}, {shares_of} of their sum, which carries {most:,.0f} samples/s of {SAMPLE_BYTES:,} B "
             "without headers.")
    reasons = [f"* `{each['test']}`: {each['reasons'][0]}" for each in record["rows"] if each["test"] in LOSSES]
    return "\n".join([*kept.heading("Query dispatch over links of unequal rates", record), about, "", *lines, "",
                      "The link to b, once queries were answered:", "", *reasons, ""])  # fmt: skip


def main() -> None:
    """Measures, and keeps the outcomes."""
    parser = kept.options(__doc__, "dispatch-namespaces")
    parser.add_argument("--rates", nargs=2, default=["40mbit", "10mbit"])
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    record = kept.begin(asked)
    record["rates"] = asked.rates
    record["rows"] = measure(asked.rates, asked.seconds)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
