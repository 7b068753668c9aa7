"""A load to answer: which workload, at which rate, on which GPUs, batched and copied how."""

from __future__ import annotations

import math
import numbers
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lanewise import units
from lanewise.errors import Contradiction, FormatError, InputError, unknown_name
from lanewise.perf.flow import pieces_of
from lanewise.serving.workload import MAX_BATCH, Workload, workload
from lanewise.topology.model import Kind, System
from lanewise.topology.ranges import expand

SCENARIOS = ("server", "offline", "single-stream", "multi-stream")
COPIES = ("gathered", "each", "per-query")
DISPATCHES = ("least", "round-robin", "random")
ONE_BY_ONE = ("single-stream", "multi-stream")
MAX_QPS = 1e12
MAX_SECONDS = 1e9  # 31 years
MAX_SEED = 2**64 - 1
MOST_STREAMS = 1000


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a harness hands batches to a GPU, as its settings say.

    Up to `in_flight` batches are copied to a GPU, wait for it or run (LWIS: copy streams), up to `streams` of them run
    at once (inference streams). A `whole` batch takes as long as a full one however few queries are in it, as a CUDA
    graph captured at that size does. GPUs take batches in turn. The time-out counts from the arrival of the oldest
    query; with `own_batcher` from when the batcher of the GPU was free to take a batch, and whichever GPU's batcher is
    first gets the queries. The GPU's Offline rate was measured with batches of `offline_batch`, the workload's usual
    ones unless given.
    """

    in_flight: int = 4
    streams: int = 1
    whole: bool = False
    own_batcher: bool = False
    offline_batch: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """A service under load, in MLPerf's scenarios: queries at `qps` (1/s), all `samples` at once, or one by one.

    `gpus` may also name one host; none means all GPUs of `host`, or of the first host that has any. With a `frontend`
    queries come from that host over the network, else from the memory of each GPU's own host. `batch` and `timeout`
    (s) are the workload's unless given. `copies`: the queries of a batch are gathered and copied in one call, or with a
    call each; per-query: each as it comes. `slots` copies to a GPU run at once, and up to `buffers` batches are on
    their way to or on it. `variation` is the coefficient of variation of a batch's time, the workload's unless given.
    With a `policy` batches are formed and run as it says (for `slots` and `buffers`), in times that follow from the
    GPU's Offline rate.
    """

    workload: Workload
    qps: float = 0.0
    scenario: str = "server"
    gpus: tuple[str, ...] = ()
    host: str | None = None
    frontend: str | None = None
    batch: int | None = None
    timeout: float | None = None
    copies: str = "gathered"
    dispatch: str = "least"
    slots: int = 2
    buffers: int = 4
    samples: int = 24_576
    variation: float | None = None
    policy: BatchPolicy | None = None

    @property
    def networked(self) -> bool:
        """Whether queries come from another host."""
        return self.frontend is not None

    @property
    def one_by_one(self) -> bool:
        """Whether queries reach their GPU one by one and are batched there: messages, or copies query by query."""
        return self.networked or self.copies == "per-query"

    @property
    def copied_on_device(self) -> bool:
        """Whether queries lie in the GPU's memory and are copied there, with a call each, into a batch."""
        return self.copies == "each" and self.workload.bytes_in == 0.0

    @property
    def largest(self) -> int:
        """The largest batch in samples."""
        return self.batch if self.batch is not None else self.workload.batch

    @property
    def wait(self) -> float:
        """How long a sample waits for its batch to fill, in s; with one query at a time nothing can fill it."""
        if self.scenario in ONE_BY_ONE:
            return 0.0
        return self.timeout if self.timeout is not None else self.workload.timeout

    @property
    def in_flight(self) -> int:
        """Batches of one GPU between the start of their copy and their end on it."""
        return self.policy.in_flight if self.policy is not None else self.buffers

    @property
    def copies_at_once(self) -> int:
        """Copies to one GPU that run at once."""
        return self.policy.in_flight if self.policy is not None else self.slots

    @property
    def time_variation(self) -> float:
        """The coefficient of variation of a batch's time, of equal samples."""
        return self.variation if self.variation is not None else self.workload.variation

    @property
    def mode(self) -> str:
        """Which of a GPU's scores is its rate: server or offline."""
        return "server" if self.scenario == "server" else "offline"


def load_of(name: str | Workload, mode: str, division: str, host: str | None) -> ServiceLoad:
    """The load of a workload in MLPerf's closed division, or in the network division from the host 'frontend'."""
    frontend = "frontend" if division == "network" else None
    return ServiceLoad(workload(name), scenario=mode, host=host, frontend=frontend)


def check(load: ServiceLoad) -> None:
    """InputError or UnknownName for a load that has no meaning."""
    for kind, value, choices in (
        ("scenario", load.scenario, SCENARIOS),
        ("way to copy", load.copies, COPIES),
        ("dispatch", load.dispatch, DISPATCHES),
    ):
        if value not in choices:
            raise unknown_name(kind, value, choices)
    if load.scenario == "server":
        check_rate(load.qps)
    if not _whole(load.largest, 1, MAX_BATCH):
        hint = f"give a whole number from 1 to {MAX_BATCH:,}, such as 64"
        raise InputError(f"a batch of {load.largest!r} queries", hint=hint)
    if load.variation is not None and not (_real(load.variation) and 0.0 <= load.variation <= 1.0):
        raise InputError(f"a service time that varies by {_written(load.variation)}", hint="give 0 to 1, such as 0.05")
    if load.timeout is not None and load.scenario in ONE_BY_ONE:
        hint = "leave it out: a query that comes alone waits for no others"
        raise InputError(f"a batching time-out says nothing about the {load.scenario} scenario", hint=hint)
    if not (_real(load.wait) and 0.0 <= load.wait < math.inf):
        raise InputError(f"a batching time-out of {_written(load.wait)} s", hint="give 0 s or more")
    bound = load.workload.bound
    if load.scenario == "server" and load.largest > 1 and load.wait >= bound:
        raise InputError(
            f"a batching time-out of {units.readable(load.wait, 's')} is no shorter than the bound of "
            f"{units.readable(bound, 's')}: every query that waits for its batch to fill would be late",
            hint="give a shorter one with --timeout, or a batch of 1",
        )
    if not all(_whole(count, 1, MAX_SEED) for count in (load.slots, load.buffers, load.samples)):
        raise InputError("a load without copy slots, buffers or samples", hint="give 1 or more of each")
    policy = load.policy
    if policy is not None and load.networked:
        hint = "leave the policy out: batch and time-out hold over the network too"
        raise InputError("a batch policy says nothing about queries over the network", hint=hint)
    if policy and not all(_whole(count, 1, MOST_STREAMS) for count in (policy.in_flight, policy.streams)):
        hint = f"give 1 to {MOST_STREAMS} of each"
        raise InputError("a batch policy without streams or batches in flight", hint=hint)


def check_rate(qps: float) -> None:
    """InputError for queries a second that are no rate."""
    if not (_real(qps) and 0.0 < qps < math.inf):
        raise InputError(f"{_written(qps)} queries a second is no rate", hint="give a rate above zero, such as 150000")
    if qps > MAX_QPS:
        hint = f"give at most {MAX_QPS:g}, such as 150000"
        raise InputError(f"{qps:g} queries a second is more than any system answers", hint=hint)


def check_run(seconds: float | None, seed: int, runs: int = 1) -> None:
    """InputError for seconds or a seed with which nothing can be run; further runs take the seeds that follow."""
    if seconds is not None and not (_real(seconds) and 0.0 < seconds <= MAX_SECONDS):
        hint = f"give seconds above zero, at most {MAX_SECONDS:g}"
        raise InputError(f"a run of {_written(seconds)} s", hint=hint)
    if not _whole(seed, 0, MAX_SEED + 1 - runs):
        raise InputError(f"{seed!r} is no seed", hint=f"give a whole number from 0 to {MAX_SEED + 1 - runs}")


def check_dispatch(system: System, load: ServiceLoad, gpus: Sequence[str]) -> None:
    """InputError where a way to dispatch says nothing, as one queue feeds all these GPUs."""
    apart = load.one_by_one
    if len(gpus if apart else {system.device(gpu).host for gpu in gpus}) < 2:
        hint = "leave it out; GPUs of one host have queues of their own over the network or with --copies per-query"
        raise InputError(f"--dispatch {load.dispatch} has no effect: one queue feeds {', '.join(gpus)}", hint=hint)


def check_frontend(frontend: str | None, host: str | None) -> None:
    """InputError where the host that sends the queries is the one that serves them."""
    if frontend is not None and frontend == host:
        hint = "name another host as the frontend or to serve, or ask for the closed division, without a frontend"
        raise InputError(f"{host} sends the queries and serves them, so none crosses the network", hint=hint)


def gpus_of(system: System, load: ServiceLoad) -> tuple[str, ...]:
    """The GPUs that answer the load; InputError or UnknownName if there is none, or they cannot be meant."""
    if load.host is not None and load.host not in system.hosts:
        raise unknown_name(f"host of {system.name}", load.host, system.hosts)
    if load.frontend is not None and load.frontend not in system.hosts:
        raise InputError(
            f"{system.name} has no host '{load.frontend}' to generate the load",
            hint=f"hosts: {', '.join(system.hosts)}",
        )
    one_host = load.gpus[0] if len(load.gpus) == 1 and load.gpus[0] in system.hosts else None
    gpus = _named(system, load.gpus) if load.gpus and one_host is None else _all_of(system, load, one_host)
    for gpu in gpus:
        host = system.device(gpu).host
        if load.host not in (None, host):
            hint = f"leave out --host, or name GPUs of {load.host}"
            raise Contradiction(f"{gpu} belongs to {host}, not to {load.host}", hint=hint)
        check_frontend(load.frontend, host)
    if load.dispatch != "least":
        check_dispatch(system, load, gpus)
    return gpus


def _all_of(system: System, load: ServiceLoad, one_host: str | None) -> tuple[str, ...]:
    host = one_host or load.host or next((name for name in system.hosts if system.of_kind(Kind.GPU, host=name)), None)
    gpus = system.of_kind(Kind.GPU, host=host) if host is not None else ()
    if not gpus:
        cause = f"{host} of {system.name} has no GPU" if host is not None else f"{system.name} has no host with a GPU"
        raise InputError(cause, hint="attach one, or set the parameter that counts them")
    return tuple(gpus)


def _named(system: System, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if system.device(name).kind is not Kind.GPU:
            raise InputError(f"{name} is no GPU", hint="name GPUs, such as gpu[0-3]")
        if system.device(name).host is None:
            hint = f"attach it: lanewise system attach {system.name} {name}"
            raise InputError(f"{name} is bound to no host", hint=hint)
    if len(set(names)) != len(names):
        raise InputError("a GPU is named twice for one service", hint="name each once")
    return tuple(names)


_WORDS = "write 'bert-99 2000 QPS', then if you like: on gpu[4-7] or on HOST, from HOST"


def parse_load(text: str, find: Callable[[str], Workload] = workload) -> ServiceLoad:
    """Read 'bert-99 2000 QPS on gpu[4-7] from frontend'; FormatError or UnknownName for what it cannot read.

    `find` gives the workload of a name.
    """
    words = deque(text.split())
    if not words:
        raise FormatError("no service given", hint=_WORDS)
    load = ServiceLoad(find(words.popleft()))
    while words:
        word = words.popleft()
        if word in ("on", "from") and words:
            value = words.popleft()
            load = replace(load, frontend=value) if word == "from" else on(load, value)
            continue
        if words and words[0] == "QPS":
            word += f" {words.popleft()}"
        try:
            load = replace(load, qps=units.parse(word if "QPS" in word else f"{word} QPS", "1/s"))
        except FormatError:
            raise FormatError(f"'{text}': '{word}' is not understood", hint=_WORDS) from None
    return load


def on(load: ServiceLoad, where: str) -> ServiceLoad:
    """The load on those devices: GPUs ('gpu[0-3],gpu6') or one host."""
    return replace(load, gpus=tuple(name for piece in pieces_of(where) for name in expand(piece)))


def _real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and least <= int(value) <= most


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else repr(value)
