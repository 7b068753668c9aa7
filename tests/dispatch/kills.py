"""SIGKILL at a random moment of a load test over two nodes, to a node or the Frontend, and what is true after it."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatch.nodes import HANGS, NodeProcess, load_test, start_load_test

SAMPLES = 400
RATE = 400.0  # queries/s
LOAD = ("run", "--scenario", "server", "--audit", "payload", "--library", str(SAMPLES), "--qps", f"{RATE:g}",
        "--connections", "2", "--depth", "32")  # fmt: skip
CLEAN = ("run", "--audit", "payload", "--library", "32", "--connections", "1", "--depth", "16", "--qps", "2000")
SIDES = ("node", "frontend")


@dataclass
class KillRound:
    """What was killed and when, how the survivor ended, and what is wrong about it (nothing should be)."""

    side: str
    transport: str
    delay: float
    outcome: str = ""
    last_line: str = ""
    answered: int = 0
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)


class Killing:
    """Two nodes and one Frontend after the other; a killed node is started again at its address.

    `took`: the seconds of a load test that nobody kills, by transport. `moments`: the first and the last moment of a
    kill, as shares of that.
    """

    def __init__(
        self, folder: Path, seed: int, took: dict[str, float] | None = None,
        moments: tuple[float, float] = (0.0, 1.05),
    ) -> None:  # fmt: skip
        self._folder, self._chance, self._moments = folder, random.Random(seed), moments
        self._nodes: list[NodeProcess] = []
        self._took = {} if took is None else took
        self._count = 0

    def __enter__(self) -> Killing:
        self._nodes = [NodeProcess(self._folder, name) for name in "ab"]
        return self

    def __exit__(self, *_: object) -> None:
        for node in self._nodes:
            node.close()

    def round(self, side: str, transport: str) -> KillRound:
        """One kill, at a random moment after the Frontend's start, then a run that is whole."""
        if transport not in self._took:
            began = time.monotonic()
            self._whole(LOAD, transport, [])
            self._took[transport] = time.monotonic() - began
        kill = KillRound(side, transport, self._moment(transport))
        process, path = start_load_test(self._folder, self._nodes, self._with(LOAD, transport), name=self._name())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(kill.delay)
        victim = self._chance.randrange(2)
        if side == "node":
            self._nodes[victim].kill()
            stderr = process.communicate(timeout=HANGS)[1]
            self._judge_frontend(kill, process.returncode, stderr, path, self._nodes[victim])
            self._start_again(victim)
        else:
            process.kill()
            process.communicate(timeout=HANGS)
            kill.outcome = "finished" if process.returncode == 0 else "killed"
            self._judge_nodes(kill)
        self._whole(CLEAN, transport, kill.faults)
        for node in self._nodes:
            self._free(node)
            kill.faults += node.named_memory()
        return kill

    def _moment(self, transport: str) -> float:
        first, last = (share * self._took[transport] for share in self._moments)
        return self._chance.uniform(first, last)

    def _judge_frontend(self, kill: KillRound, code: int, stderr: str, path: Path, victim: NodeProcess) -> None:
        last = next((line for line in reversed(stderr.splitlines()) if line), "")
        kill.last_line = last.replace(str(self._folder), "FOLDER")
        if "Traceback" in stderr:
            kill.faults.append(stderr)
        if code not in (0, 1, 2):
            kill.faults.append(f"exit code {code}")
        if code == 2:
            kill.outcome = "the load test ended"
            if victim.address not in stderr and f"port {victim.port}" not in stderr:
                kill.faults.append(f"the node is not named: {stderr}")
            if "error: " not in stderr or "hint: " not in kill.last_line:
                kill.faults.append(f"not an error and a hint: {stderr}")
            return
        self._judge_result(kill, code, stderr, json.loads(path.read_text()), victim)

    def _judge_result(
        self, kill: KillRound, code: int, stderr: str, result: dict[str, Any], victim: NodeProcess
    ) -> None:
        figures, reasons = result["audit"]["figures"], result["reasons"]
        kill.answered, kill.unanswered = int(figures["checked"]), int(figures.get("unanswered", 0))
        kill.outcome = "finished" if code == 0 else "INVALID"
        if code == 1 and not any(reason in stderr for reason in reasons):
            kill.faults.append(f"stderr does not say why: {stderr}")
        lost = [re.search(r"([\d,]+) queries unanswered$", reason) for reason in reasons if victim.address in reason]
        if figures["wrong"]:
            kill.faults.append(f"{figures['wrong']:g} corrupt answers")
        if kill.answered + kill.unanswered != SAMPLES:
            kill.faults.append(f"{kill.answered} answered and {kill.unanswered} unanswered of {SAMPLES}")
        if code == 1 and not (lost and lost[0]):
            kill.faults.append(f"no reason names the node and what it left: {reasons}")
        elif code == 1 and lost[0] and int(lost[0][1].replace(",", "")) != kill.unanswered:
            kill.faults.append(f"{kill.unanswered} queries have no answer, said is {reasons}")

    def _judge_nodes(self, kill: KillRound) -> None:
        """Both nodes, after their Frontend was killed: each session that began has ended with a line that says so."""
        for node in self._nodes:
            self._free(node)
            node.wait(lambda said: _count(said, " came\n") == _count(said, " after ") + _count(said, "error"))
            kill.last_line = node.said[-1].strip()
            if any("Traceback" in line for line in node.said):
                kill.faults.append("".join(node.said))

    def _free(self, node: NodeProcess) -> None:
        """Until a node has no shared memory any more; a leak is a wait that does not end."""
        end = time.monotonic() + HANGS
        while any("memfd:lanewise" in name for name in node.descriptors()):
            assert time.monotonic() < end, f"shared memory is left over: {node.descriptors()}"
            time.sleep(0.01)

    def _whole(self, words: tuple[str, ...], transport: str, faults: list[str]) -> None:
        """A load test that nobody kills: every answer is there and right."""
        done, result = load_test(self._folder, self._nodes, self._with(words, transport), name=self._name())
        if done.returncode != 0 or result["audit"]["figures"]["wrong"]:
            faults.append(f"the next Frontend: exit code {done.returncode}, {done.stderr}")

    def _start_again(self, victim: int) -> None:
        lost = self._nodes[victim]
        lost.close()
        self._nodes[victim] = NodeProcess(self._folder, lost.name, port=lost.port)

    def _with(self, words: tuple[str, ...], transport: str) -> tuple[str, ...]:
        return (*words, "--transport", transport)

    def _name(self) -> str:
        self._count += 1
        return f"frontend{self._count}"


def _count(said: list[str], words: str) -> int:
    return sum(words in line for line in said)
