"""The named cases of GPU copies as one table: which flows run together, for which GPUs, and what that shows.

Names and meaning of the first 35 are nvbandwidth 0.8's (testcase.h, testcases_ce.cpp, testcases_sm.cpp), so that its
users find theirs again and rows can be laid side by side. Unlike there every flow that runs has a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from lanewise.errors import unknown_name
from lanewise.perf.flow import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Over(StrEnum):
    """What a case goes over: for each of these there is one cell, a set of flows that run together."""

    GPU = "each GPU"
    PAIR = "each pair of GPUs"
    ORDERED = "each ordered pair of GPUs"
    ONE = "each GPU with all others"
    ALL = "all GPUs at once"


class Kind(StrEnum):
    """How a cell is measured."""

    COPIES = "copies"
    CHASE = "pointer chase"
    LAUNCH = "stream launch"
    QUERIES = "queries"


@dataclass(frozen=True, slots=True)
class Case:
    """`flows` names the ends: {a} a GPU, {b} the other one of a pair, or each of the others in turn (Over.ONE).

    `like` is the tool whose case it is. `method` and `batch` are for queries.
    """

    name: str
    over: Over
    flows: tuple[str, ...]
    says: str
    kind: Kind = Kind.COPIES
    like: str = ""
    sm: bool = False
    p2p: bool = True
    method: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Flows measured together, for every case that asks for just them; `batch` queries a time where it is queries."""

    scenarios: tuple[str, ...]
    flows: tuple[Flow, ...]
    kind: Kind = Kind.COPIES
    method: str = ""
    batch: int = 0
    makespan: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What two cells share that measure the same."""
        return (self.kind, frozenset(self.flows), self.method, self.batch)


NVBANDWIDTH = "nvbandwidth"
P2P_TEST = "p2pBandwidthLatencyTest"
QUERY = 150_528  # bytes of one image of 224 x 224 pixels, three bytes each, as resnet50 takes them
BATCHES = (1, 8, 32, 128)

_IN, _OUT = "host0->{a}", "{a}->host0"
_PUSH, _PULL = "{a}->{b}", "{b}->{a} read"
# Name before the engine's, what it goes over, its flows, what it shows. Each there is twice: by copy engine and by SM.
_COPIES: tuple[tuple[str, Over, tuple[str, ...], str], ...] = (
    ("host_to_device_memcpy", Over.GPU, (_IN,), "host memory to one GPU"),
    ("device_to_host_memcpy", Over.GPU, (_OUT,), "one GPU to host memory"),
    ("host_to_device_bidirectional_memcpy", Over.GPU, (_IN, _OUT), "host to GPU while the GPU copies to the host"),
    ("device_to_host_bidirectional_memcpy", Over.GPU, (_IN, _OUT), "GPU to host while the host copies to the GPU"),
    ("device_to_device_memcpy_read", Over.ORDERED, (_PULL,), "one GPU pulls from another"),
    ("device_to_device_memcpy_write", Over.ORDERED, (_PUSH,), "one GPU pushes to another"),
    ("device_to_device_bidirectional_memcpy_read", Over.PAIR, (_PULL, "{a}->{b} read"), "two GPUs pull at once"),
    ("device_to_device_bidirectional_memcpy_write", Over.PAIR, (_PUSH, "{b}->{a}"), "two GPUs push at once"),
    ("all_to_host_memcpy", Over.ALL, (_OUT,), "every GPU to host memory at once"),
    ("all_to_host_bidirectional_memcpy", Over.ALL, (_OUT, _IN), "every GPU to and from host memory at once"),
    ("host_to_all_memcpy", Over.ALL, (_IN,), "host memory to every GPU at once"),
    ("host_to_all_bidirectional_memcpy", Over.ALL, (_OUT, _IN), "host memory to and from every GPU at once"),
    ("all_to_one_write", Over.ONE, ("{b}->{a}",), "all other GPUs push to one"),
    ("all_to_one_read", Over.ONE, ("{a}->{b} read",), "all other GPUs pull from one"),
    ("one_to_all_write", Over.ONE, (_PUSH,), "one GPU pushes to all others"),
    ("one_to_all_read", Over.ONE, (_PULL,), "one GPU pulls from all others"),
)
_SINGLE = (
    Case("host_device_latency_sm", Over.GPU, (_IN,), "a GPU follows pointers through host memory", Kind.CHASE,
         NVBANDWIDTH, sm=True),
    Case("device_to_device_latency_sm", Over.ORDERED, (_PULL,), "a GPU follows pointers through another's memory",
         Kind.CHASE, NVBANDWIDTH, sm=True),
    Case("device_local_copy", Over.GPU, ("{a}->{a}",), "within the memory of one GPU, each byte counted once",
         like=NVBANDWIDTH),
    Case("device_to_device_memcpy_no_p2p", Over.ORDERED, (_PUSH,), "GPU to GPU without peer access: the driver stages",
         like=P2P_TEST, p2p=False),
    Case("device_to_device_bidirectional_memcpy_no_p2p", Over.PAIR, (_PUSH, "{b}->{a}"),
         "both ways at once without peer access", like=P2P_TEST, p2p=False),
    Case("device_to_device_launch_latency", Over.ORDERED, (_PUSH,), "a small peer copy, launched on a stream",
         Kind.LAUNCH, P2P_TEST),
    Case("device_to_device_launch_latency_no_p2p", Over.ORDERED, (_PUSH,), "the same without peer access", Kind.LAUNCH,
         P2P_TEST, p2p=False),
    Case("host_to_device_launch_latency", Over.GPU, (_IN,), "a small copy to a GPU, launched on a stream", Kind.LAUNCH),
    Case("device_to_host_launch_latency", Over.GPU, (_OUT,), "a small copy from a GPU, launched on a stream",
         Kind.LAUNCH),
    Case("queries_one_by_one", Over.GPU, (_IN,), "scattered queries of 150,528 B, one copy call each", Kind.QUERIES,
         method="calls"),
    Case("queries_in_one_call", Over.GPU, (_IN,), "scattered queries, one call for a batch (cuMemcpyBatchAsync)",
         Kind.QUERIES, method="batch"),
    Case("queries_by_kernel", Over.GPU, (_IN,), "scattered queries, gathered by a kernel", Kind.QUERIES, sm=True,
         method="kernel"),
    Case("queries_staged", Over.GPU, (_IN,), "scattered queries, gathered by the CPU, then one copy", Kind.QUERIES,
         method="staged"),
)  # fmt: skip


def _table() -> Iterator[Case]:
    for engine in ("ce", "sm"):
        for name, over, flows, says in _COPIES:
            yield Case(f"{name}_{engine}", over, flows, says, like=NVBANDWIDTH, sm=engine == "sm")
    yield from _SINGLE


CASES = {case.name: case for case in _table()}
DEFAULT = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
    "device_to_device_memcpy_write_ce", "device_to_device_bidirectional_memcpy_write_ce",
    "device_to_device_memcpy_no_p2p", "device_to_device_bidirectional_memcpy_no_p2p", "host_device_latency_sm",
    "device_to_device_latency_sm", "device_to_device_launch_latency", "device_to_device_launch_latency_no_p2p",
)  # fmt: skip
SETS = {
    "default": DEFAULT,
    "nvbandwidth": tuple(name for name, case in CASES.items() if case.like == NVBANDWIDTH),
    "all": tuple(CASES),
}


def pick(names: Iterable[str]) -> list[Case]:
    """Cases by name, set (default, nvbandwidth, all) or pattern such as 'host_*', in the table's order; UnknownName."""
    wanted: set[str] = set()
    for name in names:
        found = SETS.get(name) or [known for known in CASES if fnmatchcase(known, name)]
        if not found:
            raise unknown_name("case", name, [*CASES, *SETS])
        wanted.update(found)
    return [case for name, case in CASES.items() if name in wanted]


def cells(cases: Iterable[Case], gpus: Sequence[str], p2p: bool = True) -> list[Cell]:
    """What is to be measured for these GPUs; a set of flows that several cases ask for is measured once."""
    found: dict[object, Cell] = {}
    for case in cases:
        for cell in _cells_of(case, gpus, p2p):
            same = found.get(cell.key)
            found[cell.key] = cell if same is None else replace(same, scenarios=same.scenarios + cell.scenarios)
    return list(found.values())


def _cells_of(case: Case, gpus: Sequence[str], p2p: bool) -> Iterator[Cell]:
    for ends in _choices(case.over, gpus):
        made = tuple(_flow(text.format(a=a, b=b), case, p2p) for a, b in ends for text in case.flows)
        for batch in BATCHES if case.kind is Kind.QUERIES else (0,):
            yield Cell((case.name,), made, case.kind, case.method, batch)


def _choices(over: Over, gpus: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """For each cell the GPUs that its flows name, as (a, b); the flows are made once for each entry."""
    if over is Over.GPU:
        yield from ([(gpu, "")] for gpu in gpus)
    elif over is Over.ALL:
        yield [(gpu, "") for gpu in gpus]
    elif over is Over.ONE:
        yield from ([(one, other) for other in gpus if other != one] for one in gpus if len(gpus) > 1)
    else:
        pairs = combinations(gpus, 2) if over is Over.PAIR else permutations(gpus, 2)
        yield from ([pair] for pair in pairs)


def _flow(text: str, case: Case, p2p: bool) -> Flow:
    way, _, word = text.partition(" ")
    src, _, dst = way.partition("->")
    return Flow(src, dst, read=word == "read", sm=case.sm, p2p=case.p2p and p2p)


__all__ = ["BATCHES", "CASES", "DEFAULT", "QUERY", "SETS", "Case", "Cell", "Kind", "Over", "cells", "pick"]
