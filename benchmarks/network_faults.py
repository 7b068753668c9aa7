"""Faults made on purpose on a network, a volume and memory: does `lanewise check` see them in what the tools print?

    sudo python benchmarks/network_faults.py run networks storage memory [--only PATTERN]   # writes the texts
    PYTHONPATH=tests python benchmarks/network_faults.py judge [--half 0|1] [--json FILE]   # anywhere: a table

Cases, what is wrong in each and what is right to answer stand in tests/checking/provoked/{networks,storage,memory}/
cases*.yaml; the texts lie beside it, as somebody would post them. The network is a pair of namespaces with a line of
veth and tc's tbf, or with network_relay.cpp where packets are to be delayed or lost. Needs root, iproute2, iperf3,
iperf, qperf, sockperf, nuttcp, fio, sysbench, mbw, stress-ng and g++.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
FOLDER = HERE.parent / "tests/checking/provoked"
GROUPS = ("networks", "storage", "memory")
NEAR, FAR = "lwa", "lwb"
ADDRESSES = {NEAR: "10.9.0.1/24", FAR: "10.9.0.2/24"}
SPIN = "while :; do :; done"
BLOCK_GROUP = Path("/sys/fs/cgroup/blkio/lanewise_faults")
# Other programs of the machine are not to be what is measured.
FIRST = "nice -n -15"


def cases(group: str) -> list[dict[str, Any]]:
    """The cases of a group, in the order of its files."""
    files = sorted((FOLDER / group).glob("cases*.yaml"))
    return [case for file in files for case in yaml.safe_load(file.read_text(encoding="utf-8"))]


def shell(command: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(command, shell=True, check=True, capture_output=True, text=True)


@contextlib.contextmanager
def program(command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in the background, ended with all that it started."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, shell=True, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def network(case: dict[str, Any], build: Path) -> Iterator[None]:
    """Two namespaces with a line between them."""
    with contextlib.ExitStack() as stack:
        for name in ADDRESSES:
            shell(f"ip netns add {name}")
            stack.callback(shell, f"ip netns del {name}")
        if relay := case.get("relay"):
            words = " ".join(str(relay.get(key, 0)) for key in ("delay", "lost", "largest", "rate", "queue"))
            stack.enter_context(program(f"{FIRST} {build}/network_relay {NEAR} eth0 {FAR} eth0 {words}"))
            time.sleep(0.5)
        else:
            shell(f"ip link add eth0 netns {NEAR} type veth peer name eth0 netns {FAR}")
        for name, address in ADDRESSES.items():
            shell(f"ip -n {name} link set lo up; ip -n {name} link set eth0 up txqueuelen 10000")
            shell(f"ip -n {name} addr add {address} dev eth0")
            shell(f"ip -n {name} route replace 10.9.0.0/24 dev eth0 congctl cubic")
        for name, rate in ((NEAR, case.get("line")), (FAR, case.get("back", case.get("line")))):
            if rate:
                burst = max(64, int(rate / 4))  # two milliseconds: the machine's other programs may take a core
                shell(f"tc -n {name} qdisc add dev eth0 root tbf rate {rate}mbit burst {burst}kb latency 5ms")
        if mtu := case.get("mtu"):
            shell(f"ip -n {NEAR} link set eth0 mtu {mtu}; ip -n {FAR} link set eth0 mtu {mtu}")
        if before := case.get("before"):
            shell(f"for each in {NEAR} {FAR}; do ip netns exec $each {before}; done")
        yield


@contextlib.contextmanager
def server(case: dict[str, Any]) -> Iterator[None]:
    """The tool's other end, on the far host."""
    command = case.get("server", "iperf3 -s")
    core = f"taskset -c {case['cpu']} " if "cpu" in case else ""
    with contextlib.ExitStack() as stack:
        stack.enter_context(program(f"exec ip netns exec {FAR} {FIRST} {core}{command}"))
        if "beside" in case or "between" in case:
            stack.enter_context(program(f"exec ip netns exec {FAR} {FIRST} iperf3 -s -p 5301"))
        time.sleep(0.5)
        yield


@contextlib.contextmanager
def throttled(limits: dict[str, int]) -> Iterator[None]:
    """A control group whose reads or writes are limited."""
    number = os.stat("/tmp").st_dev
    BLOCK_GROUP.mkdir(exist_ok=True)
    for key, value in limits.items():
        name = BLOCK_GROUP / f"blkio.throttle.{key}_device"
        name.write_text(f"{os.major(number)}:{os.minor(number)} {value}\n")
    try:
        yield
    finally:
        BLOCK_GROUP.rmdir()


def printed(command: str, case: dict[str, Any], prefix: str, folder: Path) -> str:
    """What a command prints."""
    core = f"taskset -c {case['sender_cpu']} " if "sender_cpu" in case else ""
    join = f"echo $$ > {BLOCK_GROUP}/cgroup.procs; " if "throttle" in case else ""
    done = subprocess.run(f"{join}exec {prefix} {FIRST} {core}{command}", shell=True, capture_output=True, text=True,
                          cwd=folder, timeout=60, env={**os.environ, **case.get("env", {})}, check=False)  # fmt: skip
    return done.stdout + done.stderr


def text_of(case: dict[str, Any], group: str, build: Path, folder: Path) -> str:
    """The post: its sentence, then each command with what it printed."""
    prefix = f"ip netns exec {NEAR}" if group == "networks" else ""
    with contextlib.ExitStack() as stack:
        if group == "networks":
            stack.enter_context(network(case, build))
            stack.enter_context(server(case))
        elif "before" in case:
            shell(case["before"])
        if "throttle" in case:
            stack.enter_context(throttled(case["throttle"]))
        if "beside" in case:
            stack.enter_context(program(f"cd {folder}; exec {prefix} {FIRST} {case['beside']}"))
            time.sleep(3)
        core = case.get("cpu", case.get("sender_cpu", 0))
        for _ in range(case.get("spin", 0)):
            stack.enter_context(program(f"exec {FIRST} taskset -c {core} sh -c '{SPIN}'"))
        parts = [case["words"], ""]
        for at, command in enumerate(case["run"]):
            if at and "between" in case:
                stack.enter_context(program(f"exec {prefix} {FIRST} {case['between']}"))
                time.sleep(1)
            command = command.format(build=build)
            shown = [f"$ {command}"] if case.get("shown") else []
            parts += [*shown, printed(command, case, prefix, folder)]
            time.sleep(0.3)
    return "\n".join(parts).rstrip() + "\n"


def run(groups: list[str], only: str) -> None:
    """Record the texts of the cases, one after another."""
    with tempfile.TemporaryDirectory() as build_name, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder_name:
        build, folder = Path(build_name), Path(folder_name)
        shell(f"g++ -O2 -std=c++20 {HERE}/network_relay.cpp -o {build}/network_relay")
        for options, name in (("-O3 -march=native", "host_stream"), ("-O0", "host_stream_O0")):
            shell(f"g++ {options} -std=c++20 -fopenmp {HERE}/host_stream.cpp -o {build}/{name}")
        if "storage" in groups:
            for name in ("test", "other"):
                shell(f"cd {folder}; fio --name={name} --filename={name} --size=512m --rw=write --bs=1m --direct=1")
        for name, case in [(each, case) for each in groups for case in cases(each)]:
            if re.search(only, case["name"]):
                text = text_of(case, name, build, folder)
                (FOLDER / name / f"{case['name']}.txt").write_text(text, encoding="utf-8")
                print(f"{name}/{case['name']}: {len(text)} characters", flush=True)


def half(name: str) -> int:
    """Which half a case belongs to, by the hash of its name: rules are written on half 0 and judged on half 1."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2


def judge(group: str) -> list[dict[str, Any]]:
    """What check says of each text of a group, and whether that is right."""
    from checking.thread_list import first_causes, verdict_of

    from lanewise import api
    from lanewise.errors import LanewiseError

    found = []
    for case in cases(group):
        path, verdict, causes, words = FOLDER / group / f"{case['name']}.txt", "", [], []
        try:
            checkup = api.check([path])
            verdict, causes = verdict_of(checkup), first_causes(checkup)
            words = [cause.what for finding in checkup.findings[:1] for cause in finding.causes[:2]]
        except LanewiseError as error:
            verdict = f"not read: {error.cause}"[:60]
        right, faulty = verdict in case["verdict"], "fault" in case
        named = faulty and bool(set(causes) & set(case["causes"]))
        found.append({"case": f"{group}/{case['name']}", "half": half(case["name"]), "faulty": faulty,
                      "expected": case["verdict"], "verdict": verdict, "right": right, "causes": causes,
                      "true causes": case.get("causes", []), "named": named, "words": words})  # fmt: skip
    return found


def summary(results: list[dict[str, Any]]) -> str:
    """Verdicts right, healthy called slow, causes named, in words."""
    healthy, faulty = ([one for one in results if one["faulty"] is each] for each in (False, True))
    slow = [one for one in faulty if one["expected"] == ["slow"]]
    return (
        f"verdict right {sum(one['right'] for one in results)} of {len(results)}, "
        f"healthy called slow {sum(one['verdict'] == 'slow' for one in healthy)} of {len(healthy)}, "
        f"faulty called slow {sum(one['right'] for one in slow)} of {len(slow)}, "
        f"cause among the first two {sum(one['named'] for one in slow)} of {len(slow)}"
    )


def main() -> None:
    """Run or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "judge"))
    parser.add_argument("groups", nargs="*", default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--only", default="", help="a regular expression of cases")
    parser.add_argument("--half", type=int, choices=(0, 1), help="list the cases of this half alone")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.what == "run":
        run(options.groups, options.only)
        return
    results = [one for group in options.groups for one in judge(group)]
    for one in (one for one in results if options.half in (None, one["half"])):
        mark = "  " if one["right"] and (one["named"] or one["expected"] != ["slow"]) else "X "
        print(f"{mark}{one['case']:40} {one['verdict']:8} of {one['expected']} {one['causes']} of {one['true causes']}")
    for number in (0, 1):
        print(f"half {number}: {summary([one for one in results if one['half'] == number])}")
    print(f"all: {summary(results)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
