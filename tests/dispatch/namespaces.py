"""A Frontend's network namespace and one for each node, with a link of its own rate to each: a fabric on one machine.

The Frontend's namespace has the bridge, so a link taken down or away there is a NIC that is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

_NAMES = itertools.count()
_PREFIX = "lanewise-"


class NoNamespaces(Exception):
    """Why this machine makes none."""


class Fabric:
    """The namespaces of a Frontend (10.77.0.1) and of nodes (10.77.0.2 and following), with shaped links."""

    def __init__(self) -> None:
        self._name = f"{_PREFIX}{os.getpid()}-{next(_NAMES)}"
        self._made: list[str] = []

    def build(self, rates: Sequence[str]) -> None:
        """A node for each rate, as tc writes it; NoNamespaces where this machine cannot."""
        self._namespace("f")
        self._ip("f", "link add fabric type bridge")
        self._ip("f", "addr add 10.77.0.1/24 dev fabric")
        self._ip("f", "link set fabric up")
        for number, rate in enumerate(rates):
            node = f"n{number}"
            self._namespace(node)
            self._ip("f", f"link add port{number} type veth peer name nic netns {self._name}{node}")
            self._ip("f", f"link set port{number} master fabric up")
            self._ip(node, f"addr add {self.host(number)}/24 dev nic")
            self._ip(node, "link set nic up")
            for place, device in (("f", f"port{number}"), (node, "nic")):
                _run(f"tc -n {self._name}{place} qdisc add dev {device} root tbf rate {rate} burst 256kb latency 400ms")

    def host(self, number: int) -> str:
        """A node's address."""
        return f"10.77.0.{2 + number}"

    def inside(self, number: int | None = None) -> tuple[str, ...]:
        """What runs a command in a node's namespace, or in the Frontend's."""
        return ("ip", "netns", "exec", self._name + ("f" if number is None else f"n{number}"))

    def link(self, number: int, state: str) -> None:
        """Take a node's link up or down."""
        self._ip("f", f"link set port{number} {state}")

    def close(self) -> None:
        """Take all away; what still runs inside keeps its namespace without links."""
        for name in self._made:
            with contextlib.suppress(NoNamespaces):
                _run(f"ip netns del {name}")

    def _namespace(self, place: str) -> None:
        _run(f"ip netns add {self._name}{place}")
        self._made.append(self._name + place)
        self._ip(place, "link set lo up")

    def _ip(self, place: str, words: str) -> None:
        _run(f"ip -n {self._name}{place} {words}")


@contextlib.contextmanager
def fabric(*rates: str) -> Iterator[Fabric]:
    """Namespaces that end with the block; NoNamespaces names what this machine lacks."""
    if os.geteuid() != 0:
        raise NoNamespaces("network namespaces need root")
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise NoNamespaces(f"there is no program {program}")
    _sweep()
    built = Fabric()
    try:
        built.build(rates)
        yield built
    finally:
        built.close()


def _sweep() -> None:
    """Take away namespaces of test processes that were killed."""
    for path in Path("/run/netns").glob(f"{_PREFIX}*"):
        owner = re.fullmatch(rf"{_PREFIX}(\d+)-\w+", path.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            with contextlib.suppress(NoNamespaces):
                _run(f"ip netns del {path.name}")


def _run(words: str) -> None:
    done = subprocess.run(words.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"{words}: {done.stderr.strip()}")
