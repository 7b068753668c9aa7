"""The named cases of GPU copies as one table: which flows run together, for which GPUs, and what that shows.

Names and meaning of the first 35 are those of nvbandwidth 0.8 (testcase.h, testcases_ce.cpp, testcases_sm.cpp), so that
its rows can be compared with these. nvbandwidth reports one figure a case; here every flow has a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations, permutations

from lanewise.errors import unknown_name
from lanewise.perf.flow import Flow
from lanewise.probes.gpu.flows import how_of_flows, path_kind
from lanewise.results.sample import Sample

_GPU, _PAIR, _ORDERED = "each GPU", "each pair of GPUs", "each ordered pair of GPUs"
_REST, _ALL = "each GPU with all others", "all GPUs at once"
COPIES, CHASE, LAUNCH, QUERIES = "copies", "pointer chase", "stream launch", "queries"


@dataclass(frozen=True, slots=True)
class GpuCase:
    """A named case, measured once for "each GPU", "each pair of GPUs" or whatever else `scope` says.

    Its `flows` are between {a}, a GPU, and {b}, its peer (with all others: every other GPU in turn). `technique` is
    copies, pointer chase, stream launch or queries. `tool` is the tool that has the same case, `method` how queries are
    gathered.
    """

    name: str
    scope: str
    flows: tuple[str, ...]
    shows: str
    technique: str = COPIES
    tool: str = ""
    sm: bool = False
    p2p: bool = True
    method: str = ""


@dataclass(frozen=True, slots=True)
class GpuTest:
    """Flows to measure together; `batch` is the queries of a batch.

    `scenarios` are the names of all cases that have exactly these flows, which are measured once and give a row for
    each, or the text of the flows that a user typed.
    """

    scenarios: tuple[str, ...]
    flows: tuple[Flow, ...]
    technique: str = COPIES
    method: str = ""
    batch: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two tests of the same thing."""
        return (self.technique, frozenset(self.flows), self.method, self.batch)

    def sample(
        self, metric: str, value: float | None, *, display_unit: str, how: Mapping[str, str], note: str = "",
        settings: Mapping[str, int] | None = None, flow: Flow | None = None,
    ) -> Sample:  # fmt: skip
        """A sample (`value` in SI) of one flow, or of all together, in the first scenario."""
        flows = self.flows if flow is None else (flow,)
        return Sample(
            scenario=self.scenarios[0], flow=", ".join(flow.name for flow in flows), metric=metric, value=value,
            display_unit=display_unit, settings=settings or {}, how={**how_of_flows(self.flows), **how},
            path=", ".join(dict.fromkeys(map(path_kind, flows))), note=note,
        )  # fmt: skip

    def in_every_scenario(self, samples: Sequence[Sample]) -> Iterator[Sample]:
        """The samples once for each scenario."""
        return (replace(sample, scenario=name) for name in self.scenarios for sample in samples)


NVBANDWIDTH = "nvbandwidth"
P2P_TEST = "p2pBandwidthLatencyTest"
QUERY = 150_528  # bytes of one image of 224 x 224 pixels, three bytes each, as resnet50 takes them
BATCHES = (1, 8, 32, 128)

_IN, _OUT = "host0->{a}", "{a}->host0"
_PUSH, _PULL = "{a}->{b}", "{b}->{a} read"
# Name without the engine's suffix, scope, flows, what it shows. There is one by copy engine (_ce) and one by SM (_sm).
_COPIES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("host_to_device_memcpy", _GPU, (_IN,), "host memory to one GPU"),
    ("device_to_host_memcpy", _GPU, (_OUT,), "one GPU to host memory"),
    ("host_to_device_bidirectional_memcpy", _GPU, (_IN, _OUT), "host to GPU while the GPU copies to the host"),
    ("device_to_host_bidirectional_memcpy", _GPU, (_IN, _OUT), "GPU to host while the host copies to the GPU"),
    ("device_to_device_memcpy_read", _ORDERED, (_PULL,), "one GPU pulls from another"),
    ("device_to_device_memcpy_write", _ORDERED, (_PUSH,), "one GPU pushes to another"),
    ("device_to_device_bidirectional_memcpy_read", _PAIR, (_PULL, "{a}->{b} read"), "two GPUs pull at once"),
    ("device_to_device_bidirectional_memcpy_write", _PAIR, (_PUSH, "{b}->{a}"), "two GPUs push at once"),
    ("all_to_host_memcpy", _ALL, (_OUT,), "every GPU to host memory at once"),
    ("all_to_host_bidirectional_memcpy", _ALL, (_OUT, _IN), "every GPU to and from host memory at once"),
    ("host_to_all_memcpy", _ALL, (_IN,), "host memory to every GPU at once"),
    ("host_to_all_bidirectional_memcpy", _ALL, (_OUT, _IN), "host memory to and from every GPU at once"),
    ("all_to_one_write", _REST, ("{b}->{a}",), "all other GPUs push to one"),
    ("all_to_one_read", _REST, ("{a}->{b} read",), "all other GPUs pull from one"),
    ("one_to_all_write", _REST, (_PUSH,), "one GPU pushes to all others"),
    ("one_to_all_read", _REST, (_PULL,), "one GPU pulls from all others"),
)
_SINGLE = (
    GpuCase("host_device_latency_sm", _GPU, (_IN,), "a GPU follows pointers through host memory",
            CHASE, NVBANDWIDTH, sm=True),
    GpuCase("device_to_device_latency_sm", _ORDERED, (_PULL,), "a GPU follows pointers through another's memory",
            CHASE, NVBANDWIDTH, sm=True),
    GpuCase("device_local_copy", _GPU, ("{a}->{a}",), "within the memory of one GPU, each byte counted once",
            tool=NVBANDWIDTH),
    GpuCase("device_to_device_memcpy_no_p2p", _ORDERED, (_PUSH,),
            "GPU to GPU without peer access: the driver stages", tool=P2P_TEST, p2p=False),
    GpuCase("device_to_device_bidirectional_memcpy_no_p2p", _PAIR, (_PUSH, "{b}->{a}"),
            "both directions at once without peer access", tool=P2P_TEST, p2p=False),
    GpuCase("device_to_device_launch_latency", _ORDERED, (_PUSH,), "a small peer copy, launched on a stream",
            LAUNCH, P2P_TEST),
    GpuCase("device_to_device_launch_latency_no_p2p", _ORDERED, (_PUSH,), "the same without peer access",
            LAUNCH, P2P_TEST, p2p=False),
    GpuCase("host_to_device_launch_latency", _GPU, (_IN,), "a small copy to a GPU, launched on a stream",
            LAUNCH),
    GpuCase("device_to_host_launch_latency", _GPU, (_OUT,), "a small copy from a GPU, launched on a stream",
            LAUNCH),
    GpuCase("queries_one_by_one", _GPU, (_IN,), "scattered queries of 150,528 B, one copy call each",
            QUERIES, method="calls"),
    GpuCase("queries_in_one_call", _GPU, (_IN,), "scattered queries, one call for a batch (cuMemcpyBatchAsync)",
            QUERIES, method="batch"),
    GpuCase("queries_by_kernel", _GPU, (_IN,), "scattered queries, gathered by a kernel", QUERIES, sm=True,
            method="kernel"),
    GpuCase("queries_staged", _GPU, (_IN,), "scattered queries, gathered by the CPU, then one copy",
            QUERIES, method="staged"),
)  # fmt: skip


def _table() -> Iterator[GpuCase]:
    for engine in ("ce", "sm"):
        for name, scope, flows, shows in _COPIES:
            yield GpuCase(f"{name}_{engine}", scope, flows, shows, tool=NVBANDWIDTH, sm=engine == "sm")
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
    "nvbandwidth": tuple(name for name, case in CASES.items() if case.tool == NVBANDWIDTH),
    "all": tuple(CASES),
}


def select_cases(names: Iterable[str]) -> list[GpuCase]:
    """Cases by name, set (default, nvbandwidth, all) or pattern such as 'host_*', in the table's order; UnknownName."""
    selected: set[str] = set()
    for name in names:
        matches = SETS.get(name) or [case for case in CASES if fnmatchcase(case, name)]
        if not matches:
            raise unknown_name("case", name, [*CASES, *SETS])
        selected.update(matches)
    return [case for name, case in CASES.items() if name in selected]


def gpu_tests(cases: Iterable[GpuCase], gpus: Sequence[str], p2p: bool = True) -> list[GpuTest]:
    """The tests of the cases on these GPUs; flows that several cases have in common are measured once."""
    by_key: dict[object, GpuTest] = {}
    for case in cases:
        for test in _tests_of(case, gpus, p2p):
            same = by_key.get(test.key)
            scenarios = (*same.scenarios, case.name) if same else (case.name,)
            by_key[test.key] = replace(same or test, scenarios=scenarios)
    return list(by_key.values())


def _tests_of(case: GpuCase, gpus: Sequence[str], p2p: bool) -> Iterator[GpuTest]:
    for pairs in _gpu_pairs(case.scope, gpus):
        flows = tuple(_flow(text.format(a=a, b=b), case, p2p) for a, b in pairs for text in case.flows)
        for batch in BATCHES if case.technique == QUERIES else (0,):
            yield GpuTest((case.name,), flows, case.technique, case.method, batch)


def _gpu_pairs(scope: str, gpus: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """The (a, b) of each test; a case's flows are repeated for each pair of one list."""
    if scope == _GPU:
        yield from ([(gpu, "")] for gpu in gpus)
    elif scope == _ALL:
        yield [(gpu, "") for gpu in gpus]
    elif scope == _REST:
        yield from ([(gpu, peer) for peer in gpus if peer != gpu] for gpu in gpus if len(gpus) > 1)
    else:
        pairs = combinations(gpus, 2) if scope == _PAIR else permutations(gpus, 2)
        yield from ([pair] for pair in pairs)


def _flow(text: str, case: GpuCase, p2p: bool) -> Flow:
    route, _, option = text.partition(" ")
    src, _, dst = route.partition("->")
    return Flow(src, dst, read=option == "read", sm=case.sm, p2p=case.p2p and p2p)
