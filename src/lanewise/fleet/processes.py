"""Nodes reached through a process each: ssh, srun, ip netns exec, or a program of this machine.

The process answers on its stdout, a JSON object a line, to each line of its stdin: first its version, then a report for
each job. What it says on stderr is kept for the reason why it ended.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from lanewise.errors import LanewiseError, printable, shorten
from lanewise.fleet.node import NodeReport
from lanewise.fleet.survey import NodeJob
from lanewise.results.codec import decode, encode

GREETING = "lanewise"
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}"
SRUN = "srun --nodes=1 --ntasks=1 --overlap --nodelist={host}"
_AGENT = ("fleet", "agent")
_READ = 1 << 20
# One answer is no longer than this; a node that writes more is given up.
_LONGEST = 1 << 26


def node_command(via: str, host: str, program: str) -> list[str]:
    """The words that start the agent of `host`: `via` with {host} in it, then the program there."""
    return [*(word.replace("{host}", host) for word in shlex.split(via)), *shlex.split(program), *_AGENT, host]


class NodeProcess:
    """The process of one node, and the part of an answer that has come by now."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.failure = ""
        self.greeted = False
        self._text = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process is
        try:
            # A session of its own: Ctrl-C at the terminal is for this program, which ends its nodes when it is done.
            self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
            )
        except OSError as error:
            self.process = None
            self.failure = f"{command[0]} cannot be started: {error.strerror}"

    @property
    def stdout(self) -> IO[bytes]:
        """Where it answers."""
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout

    def send(self, job: NodeJob) -> None:
        """Send a job; a process that has ended is lost."""
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(encode(job, "job")).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.lose()

    def lines(self) -> list[bytes] | None:
        """The whole lines that have come; None where it has ended, or writes without end."""
        data = os.read(self.stdout.fileno(), _READ)
        if not data or len(self._text) > _LONGEST:
            return None
        *lines, self._text = (self._text + data).split(b"\n")
        return lines

    def lose(self, why: str = "") -> None:
        """Give it up: for that reason, else for the last words of the process."""
        if not self.failure:
            self.failure = why or self.last_words()
        self.end()

    def end(self) -> None:
        """End the process."""
        if self.process is None:
            return
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.process.kill()
        self.process.wait()

    def last_words(self) -> str:
        """How it ended, with the error that it wrote."""
        assert self.process is not None
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if line.startswith("error:")] or lines[-1:]
        code = self.process.poll()
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
        ended = f"its process ended{how}"
        return f"{ended}: {shorten(printable(errors[0]), 200)}" if errors else ended


class ProcessConnections:
    """The nodes of a fleet by their processes; `version` is the one that they must have."""

    def __init__(self, commands: Mapping[str, Sequence[str]], addresses: Mapping[str, str], version: str) -> None:
        self._addresses, self._version = dict(addresses), version
        self._nodes = {name: NodeProcess(name, command) for name, command in commands.items()}

    @property
    def addresses(self) -> Mapping[str, str]:
        """The nodes' names and addresses."""
        return self._addresses

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """What each of these nodes answers; those that do not within `limit` seconds are ended."""
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            for name, job in jobs.items():
                node = self._nodes[name]
                if not node.failure:
                    node.send(job)
                if node.failure:
                    yield NodeReport(name, failure=node.failure)
                else:
                    selector.register(node.stdout, selectors.EVENT_READ, node)
            while selector.get_map():
                ready = selector.select(max(0.0, end - time.monotonic()))
                for key, _ in ready:
                    if (report := self._read(key.data)) is not None:
                        selector.unregister(key.fileobj)
                        yield report
                if not ready and time.monotonic() >= end:
                    for key in list(selector.get_map().values()):
                        selector.unregister(key.fileobj)
                        key.data.lose(f"no answer within {limit:.0f} s")
                        yield NodeReport(key.data.name, failure=key.data.failure)

    def close(self) -> None:
        """End all nodes' processes."""
        for node in self._nodes.values():
            node.end()

    def _read(self, node: NodeProcess) -> NodeReport | None:
        """The report that a node's output completes; one with `failure` where it ended; None: more has to come."""
        lines = node.lines()
        if lines is None:
            node.failure = node.failure or node.last_words()
            return NodeReport(node.name, failure=node.failure)
        for line in lines:
            try:
                data = json.loads(line)
                if not node.greeted:
                    node.greeted = True
                    self._check_greeting(node, data)
                    if node.failure:
                        return NodeReport(node.name, failure=node.failure)
                    continue
                return decode(NodeReport, data, "report", node.name)
            except (ValueError, LanewiseError, AttributeError) as error:
                node.failure = f"its answer cannot be read: {shorten(printable(str(error)))}"
                return NodeReport(node.name, failure=node.failure)
        return None

    def _check_greeting(self, node: NodeProcess, data: Any) -> None:
        version = str(data.get(GREETING, "unknown"))
        if version != self._version:
            node.failure = (
                f"it has Lanewise {shorten(printable(version), 20)}, this is {self._version}: install the same"
            )
