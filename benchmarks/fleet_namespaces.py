"""A fleet check of nodes in network namespaces of their own with shaped links, one of them slow: is it named?

    python benchmarks/fleet_namespaces.py [--rates 200mbit 200mbit 50mbit 200mbit] [--on hosts|ray]

Root, `ip` and `tc` are needed: the links are veth pairs shaped by tbf at both ends. With `hosts` the nodes are reached
by `lanewise fleet check --hosts` with `ip netns exec` in the place of ssh; with `ray` each namespace runs a Ray node,
the first of them the head, and the check runs in its namespace with --on ray://.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from dispatch.namespaces import Fabric, fabric

BIN = Path(sys.executable).parent
_PORT, _CLIENT = 6395, 10001
_START_S = 300.0


def check(prefix: tuple[str, ...], words: list[str], folder: Path) -> tuple[kept.Record, str]:
    """What `lanewise fleet check` says: its JSON with exit code and seconds, and its text."""
    out = folder / "fleet.json"
    command = [*prefix, str(BIN / "lanewise"), "fleet", "check", *words, "--json", str(out)]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not out.exists():
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return {**json.loads(out.read_text()), "code": done.returncode, "wall_s": time.monotonic() - start}, done.stdout


def over_hosts(links: Fabric, count: int, folder: Path) -> tuple[kept.Record, str]:
    """The check from the Frontend's namespace, the nodes by `ip netns exec`."""
    names = {links.inside(number)[-1]: links.host(number) for number in range(count)}
    hosts = ",".join(f"{name}={address}" for name, address in names.items())
    words = ["--hosts", hosts, "--via", "ip netns exec {host}", "--program", str(BIN / "lanewise")]
    return check((), words, folder)


@contextmanager
def ray_nodes(links: Fabric, count: int, folder: Path) -> Iterator[str]:
    """A Ray node in each namespace, the first the head; the address of Ray's client."""
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    head = links.host(0)
    common = ["--num-cpus", "1", "--object-store-memory", "80000000", "--disable-usage-stats", "--block"]
    first = ["--head", "--port", str(_PORT), "--ray-client-server-port", str(_CLIENT), "--include-dashboard=false",
             "--temp-dir", str(folder / "ray")]  # fmt: skip
    started = []
    try:
        for number in range(count):
            role = first if number == 0 else ["--address", f"{head}:{_PORT}"]
            ports = ["--min-worker-port", "20000", "--max-worker-port", "20200"]
            command = [*links.inside(number), str(BIN / "ray"), "start", *role, "--node-ip-address", links.host(number),
                       *ports, *common]  # fmt: skip
            log = (folder / f"ray{number}.log").open("w")
            started.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True))
            _wait(links, head, number + 1, env)
        yield f"ray://{head}:{_CLIENT}"
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def _wait(links: Fabric, head: str, count: int, env: dict[str, str]) -> None:
    """Until so many nodes have joined."""
    code = (f"import ray; ray.init(address='{head}:{_PORT}', log_to_driver=False, _node_ip_address='{head}'); "
            "print(sum(node['Alive'] for node in ray.nodes()))")  # fmt: skip
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        done = subprocess.run([*links.inside(0), sys.executable, "-c", code], env=env, capture_output=True, text=True,
                              check=False)  # fmt: skip
        if done.stdout.strip() == str(count):
            return
        time.sleep(1)
    raise SystemExit(f"Ray does not start: {done.stderr[-2000:]}")


def page(record: kept.Record) -> str:
    """What was planted, what the check said."""
    answer = record["answer"]
    slow = record["rates"].index(min(record["rates"], key=lambda rate: int(rate.removesuffix("mbit"))))
    lines = ["| node | link | verdict | cause | network, share of the class |", "|---|---|---|---|---:|"]
    for node in sorted(answer["nodes"], key=lambda node: str(node["node"])):
        cause = node["findings"][0]["cause"] if node["findings"] else ""
        rate = record["rates"][record["names"].index(node["node"])]
        share = 100 * node["shares"]["network"]
        lines.append(f"| {node['node']} | {rate} | {node['state']} | {cause} | {share:.0f} % |")
    about = (f"Nodes through {record['on']}; the slow link is that of {record['names'][slow]}. "
             f"{answer['network_rounds']} rounds, exit code {answer['code']}, {answer['wall_s']:.0f} s.")  # fmt: skip
    return "\n".join([*kept.heading("A fleet check of nodes in network namespaces", record), about, "", *lines, ""])


def main() -> None:
    """Makes the namespaces, checks the fleet in them, and keeps the answer."""
    parser = kept.options(__doc__, "fleet-namespaces")
    parser.add_argument("--rates", nargs="+", default=["200mbit", "200mbit", "50mbit", "200mbit"])
    parser.add_argument("--on", choices=("hosts", "ray"), default="hosts")
    parser.add_argument("--logs", action="store_true", help="keep the folder with Ray's logs")
    words = parser.parse_args()
    record = {**kept.begin(words), "rates": words.rates, "on": words.on}
    count = len(words.rates)
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    try:
        with fabric(*words.rates) as links:
            if words.on == "hosts":
                record["names"] = [links.inside(number)[-1] for number in range(count)]
                record["answer"], text = over_hosts(links, count, folder)
            else:
                record["names"] = [links.host(number) for number in range(count)]
                with ray_nodes(links, count, folder) as address:
                    os.environ["RAY_AUTH_MODE"] = "disabled"
                    record["answer"], text = check(links.inside(0), ["--on", address], folder)
        print(text)
        kept.keep(record, page, words.out)
    finally:
        if not words.logs:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
