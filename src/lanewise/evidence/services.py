"""Published services as evidence: what predictions say of their Server scores and latencies, and how far off it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from lanewise import package_data
from lanewise.catalog import Catalog, Figure
from lanewise.errors import InputError
from lanewise.evidence.score import quantile
from lanewise.serving.host_stalls import STALLING, stalls, with_stalls
from lanewise.serving.load import COPIES, MOST_STREAMS, BatchPolicy, ServiceLoad
from lanewise.serving.power import rate_ratio
from lanewise.serving.simulation import Simulation, SimulationInput
from lanewise.serving.steady import MODES
from lanewise.serving.times import gpu_part, server_from_offline, time_key
from lanewise.serving.workload import MAX_BATCH, workload
from lanewise.topology.model import System
from lanewise.topology.read import read_system
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

VERSION = 1
_TOP = ("lanewise-services", "source", "round", "held_out", "systems")
_HARNESS = ("streams", "in_flight", "whole", "own_batcher", "on_device", "copies", "offline_batch")
_SYSTEM = ("system", "gpu", "gpus", "slot", "cpu", "rows")
_ROW = ("workload", "batch", "timeout", "offline", "server", "lower")
# By so much a GPU may be slower or faster than its Offline rate, of other batches and another run, tells: with it the
# intervals hold 86 % of round v3.0 (80 to 95 % wanted). Of published Offline rates of one GPU, workload and round 70 %
# are as near to their median (benchmarks/runs/2026-11-23-service-p99.md).
SLOW, FAST = 0.95, 1.05
# Without a time-out batches stay small, and the p99 is proportional to their fixed time: what it is on the GPUs of the
# catalogue (BERT; same run), as it is published of runs with CUDA graphs and many harnesses work without.
FIXED_LEAST, FIXED_MOST = 0.75e-3, 2.5e-3
SIMULATED = 200_000.0  # queries


@dataclass(frozen=True, slots=True)
class ServedRate:
    """A rate in queries/s with the p99 in s that was measured at it."""

    qps: float
    p99: float


@dataclass(frozen=True, slots=True)
class PublishedHarness:
    """The settings with which a published service was run: how batches reach a GPU, and whether queries lie there.

    `copies` says whether the queries of a batch are copied in one call (gathered) or with a call each.
    """

    policy: BatchPolicy
    on_device: bool
    copies: str = "gathered"


@dataclass(frozen=True, slots=True)
class PublishedService:
    """A published Server score with its p99, the Offline rate (queries/s), and the p99 at `lower` rates.

    `gpus` of the part `gpu` are in a `slot` ("gen4 x16") each, of a `cpu` (None: not known). Batches hold up to `batch`
    queries, for which they wait `timeout` s (0: they take what is there). `powers` are a GPU's limits (W) in Server and
    in Offline where they differ; the Offline rate is scaled to that of Server. No figure rests on a `held_out` service.
    """

    round: str
    system: str
    gpu: str
    gpus: int
    slot: str
    cpu: str | None
    workload: str
    batch: int
    timeout: float
    offline: float
    server: ServedRate
    lower: tuple[ServedRate, ...]
    harness: PublishedHarness | None = None
    powers: tuple[float, float] | None = None
    held_out: bool = False

    def described(self, catalog: Catalog, mode: str, speed: float = 1.0, fixed: float | None = None) -> System:
        """The system, of whose GPUs only the published score of that mode (server, offline) is known, times `speed`.

        `fixed` is the fixed time of a batch in s, where it is not what follows from the part.
        """
        score = speed * {"server": self.server.qps, "offline": self.offline}[mode] / self.gpus
        if self.powers is not None and mode == "offline":
            score *= rate_ratio(self.workload, *self.powers)
        part = catalog.get(self.gpu)
        for other in MODES:
            part = part.with_figure(f"service.{self.workload}.{other}", Figure(None, "1/s", "left out"))
        stated = Figure(score, "1/s", f"published {mode} score of {self.system}", basis="calibrated")
        part = part.with_figure(f"service.{self.workload}.{mode}", stated)
        if fixed is not None:
            lone = Figure(fixed + 1.0 / score, "s", f"a fixed time of {fixed} s", basis="typical")
            part = part.with_figure(time_key(self.workload, 1), lone)
        text = (
            f"lanewise: 1\nsystem: {self.system}\ndevices:\n  cpu0: {{cpu: {self.cpu or 'null'}}}\n"
            f'  "gpu[0-{self.gpus - 1}]": {{gpu: {part.name}}}\n'
            f'links:\n  - {{from: cpu0, to: "gpu[0-{self.gpus - 1}]", pcie: {self.slot}}}\n'
        )
        return read_system(text, self.system, catalog=catalog.merge(Catalog({part.name: part})))


@dataclass(frozen=True, slots=True)
class PredictedService:
    """A published service as predicted: its Server `score` (queries/s) from the Offline rate, and where it may lie; its
    `p99` (s) at the published rate, and where that may lie.

    The p99 is simulated with the GPU's Offline rate where the harness is known, else with the Server score as its peak.
    """

    service: PublishedService
    score: float
    interval: tuple[float, float]
    p99: float
    p99_interval: tuple[float, float]

    @property
    def score_error(self) -> float:
        """(predicted - published) / published of the Server score."""
        return self.score / self.service.server.qps - 1.0

    @property
    def covered(self) -> bool:
        """Whether the interval holds the published Server score."""
        return self.interval[0] <= self.service.server.qps <= self.interval[1]

    @property
    def p99_covered(self) -> bool:
        """Whether the interval holds the published p99."""
        return self.p99_interval[0] <= self.service.server.p99 <= self.p99_interval[1]

    @property
    def p99_error(self) -> float:
        """(predicted - published) / published of the p99."""
        return self.p99 / self.service.server.p99 - 1.0


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Of errors as shares: how many, the median and 90th percentile without sign, the share of at most `limit`."""

    rows: int
    median: float
    p90: float
    limit: float
    within: float


def summary(errors: Iterable[float | None], limit: float) -> ErrorSummary:
    """The summary of errors; InputError without any."""
    known = [abs(error) for error in errors if error is not None]
    if not known:
        raise InputError("no error to summarise", hint="name services that can be predicted")
    within = sum(error <= limit for error in known) / len(known)
    return ErrorSummary(len(known), quantile(known, 0.5), quantile(known, 0.9), limit, within)


@lru_cache(maxsize=1)
def published_services() -> tuple[PublishedService, ...]:
    """The services that come with Lanewise."""
    files = [package_data.text("services", name, "list of services") for name in package_data.names("services")]
    return tuple(service for file in files for service in read_services(*file))


def read_services(text: str, file: str) -> tuple[PublishedService, ...]:
    """The services of a file; InputError with file, line and hint for anything that cannot be used."""
    top = load(text, file).root
    top.check_fields(_TOP, "the file", needed=("lanewise-services", "source", "systems"))
    if top["lanewise-services"].value != VERSION:
        raise top["lanewise-services"].error(f"this is no list of services of format {VERSION}", "begin with that line")
    series, held_out = top["round"].line(), top["held_out"].flag(False)
    return tuple(service for node in top["systems"].items() for service in _services(node, series, held_out))


def predict_service(service: PublishedService, catalog: Catalog) -> PredictedService:
    """A service as predicted, on the parts of `catalog`; InputError where the GPU or the workload is not known."""
    # A score is that of the batches that it was reached with.
    work = replace(workload(service.workload), batch=service.batch, timeout=service.timeout)
    offline = service.described(catalog, "offline")
    derived = server_from_offline(gpu_part(offline, "gpu0"), work)
    if derived is None:
        raise InputError(f"{service.system} has no Offline rate", hint="state one")
    gpus = service.gpus
    interval = derived.interval[0] * gpus, derived.interval[1] * gpus
    p99 = served_p99(service, catalog)
    least, most = (FIXED_LEAST, FIXED_MOST) if service.harness and not service.timeout else (None, None)
    # Some hosts have no stalls, others longer ones.
    fast = served_p99(service, catalog, FAST, least, stalling=False)
    slow = served_p99(service, catalog, SLOW, most)
    low, high = min(fast, p99, slow), work.bound
    if service.server.qps < STALLING:
        high = max(fast, p99, slow)
    # A score is VALID, so that its p99 keeps the bound whatever was simulated.
    p99_interval = min(low, work.bound), min(high, work.bound)
    return PredictedService(service, derived.qps * gpus, interval, p99, p99_interval)


def served_p99(
    service: PublishedService,
    catalog: Catalog,
    speed: float = 1.0,
    fixed: float | None = None,
    *,
    stalling: bool = True,
) -> float:
    """The simulated p99 (s) of a service at its published rate, on GPUs of `speed` times the published rates.

    `fixed` is the fixed time of a batch in s, where it is not what follows from the part. `stalling`: on a host that
    stalls as published ones do.
    """
    percentile = served_percentile(service, catalog, speed, fixed)
    share = workload(service.workload).percentile
    if stalling and stalls(_load(service), service.server.qps):
        return with_stalls(percentile, share)
    return percentile(share)


def served_percentile(
    service: PublishedService, catalog: Catalog, speed: float = 1.0, fixed: float | None = None
) -> Callable[[float], float]:
    """Of a share of the queries the simulated latency in s that they stay below, on a host that never stalls."""
    load, mode = _load(service), "server" if service.harness is None else "offline"
    simulation = Simulation(service.described(catalog, mode, speed, fixed), [load])
    # Of so many queries the p99 is known to a few per cent, and a queue that grows has grown out of the bound.
    seconds = max(SIMULATED / load.qps, 20.0 * load.workload.bound)
    return simulation.run([load.qps], SimulationInput(seconds)).services[0].percentile


def _load(service: PublishedService) -> ServiceLoad:
    work = replace(workload(service.workload), batch=service.batch, timeout=service.timeout)
    harness = service.harness
    load = ServiceLoad(work, qps=service.server.qps, batch=service.batch)
    if harness is None:
        return load
    near = replace(work, bytes_in=0.0) if harness.on_device else work
    return replace(load, policy=harness.policy, copies=harness.copies, workload=near)


def _harness(node: YamlNode) -> PublishedHarness | None:
    if not node.present:
        return None
    node.check_fields(_HARNESS, "a harness", needed=("streams", "in_flight"))
    policy = BatchPolicy(
        in_flight=node["in_flight"].integer(1, MOST_STREAMS, 4), streams=node["streams"].integer(1, MOST_STREAMS, 2),
        whole=node["whole"].flag(False), own_batcher=node["own_batcher"].flag(False),
        offline_batch=node["offline_batch"].integer(1, MAX_BATCH, 2048) if node["offline_batch"].present else None,
    )  # fmt: skip
    copies = node["copies"].line() or "gathered"
    if copies not in COPIES:
        raise node["copies"].error(f"copies of '{copies}'", f"write {', '.join(COPIES)}")
    return PublishedHarness(policy, node["on_device"].flag(False), copies)


def _services(node: YamlNode, series: str, held_out: bool) -> Iterable[PublishedService]:
    node.check_fields(_SYSTEM, "a system", needed=("system", "gpu", "gpus", "slot", "rows"))
    for row in node["rows"].items():
        row.check_fields((*_ROW, "harness", "power", "offline_power"), "a service", needed=_ROW)
        yield PublishedService(
            round=series, system=node["system"].needed(), gpu=node["gpu"].needed(),
            gpus=node["gpus"].integer(1, 1000, 8), slot=node["slot"].needed(), cpu=node["cpu"].line() or None,
            workload=row["workload"].needed(),
            batch=row["batch"].integer(1, 999_999, 64),
            timeout=row["timeout"].quantity("s", negative=False, example="2 ms", bare=False),
            offline=_rate(row["offline"]), server=_served(row["server"]),
            lower=tuple(_served(each) for each in row["lower"].items()), harness=_harness(row["harness"]),
            powers=(_power(row["power"]), _power(row["offline_power"])) if row["power"].present else None,
            held_out=held_out,
        )  # fmt: skip


def _power(node: YamlNode) -> float:
    return node.quantity("W", 0, example="300 W", bare=False)


def _served(node: YamlNode) -> ServedRate:
    node.check_fields(("qps", "p99"), "a latency", needed=("qps", "p99"))
    return ServedRate(_rate(node["qps"]), node["p99"].quantity("s", 0, example="8 ms", bare=False))


def _rate(node: YamlNode) -> float:
    return node.quantity("1/s", 0, example="66000 QPS", bare=False)
