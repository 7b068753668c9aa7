"""How long a GPU takes for a batch of queries: from times that are stated, from a rate, or from both.

A rate fixes the time of a full batch, so that the peak of a GPU stays the stated one; times fix the small batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from lanewise.catalog import Part
from lanewise.errors import InputError
from lanewise.perf.resources import cite, weakest
from lanewise.serving.power import at_power_limit
from lanewise.serving.queues import md1_service
from lanewise.serving.server_share import server_share
from lanewise.serving.workload import Workload
from lanewise.topology.model import System
from lanewise.units import readable

RATE_ONLY = (
    "only a rate is known, so a small batch is taken to be as efficient as a large one: "
    "latency at low load is optimistic"
)
TIMES_ONLY = "no rate is known, so a full batch is taken to lie on the slope of the stated times: the peak is uncertain"
# Seconds of a batch however few queries are in it: what a lone query takes (SingleStream) beyond the seconds of a query
# in Offline, for GPUs without a SingleStream result. It is mostly starts of kernels, alike on all GPUs: medians of
# eight in data/parts (T4 to H100 PCIe), 0.28 to 0.65 ms (ResNet-50), 0.5 to 1.4 (RetinaNet), 0.8 to 2.5 (BERT), and for
# SSD-ResNet34 of the A2, A30 and A100 in Inference v2.0, 0.6 to 1.1 (benchmarks/runs/2026-11-23-service-p99.md).
FIXED_TIME = {"resnet50": 0.40e-3, "retinanet": 1.1e-3, "bert-99": 1.2e-3, "bert-99.9": 1.2e-3,
              "ssd-resnet34": 0.75e-3}  # fmt: skip
# The share of that fixed time which batches of other streams do not hide: the median of what two streams leave of it on
# an H200 (benchmarks/runs/2026-11-26-streams.md: 0.17 to 0.49; four streams 0.30 to 0.49).
KEPT_SHARE = 0.28
# The share of it for which a GPU with one stream is busy where the next batch is queued before one is answered: that a
# batch is issued and its end noticed takes the host, while the GPU runs the other. The median of one stream in the same
# run (0.47 to 0.90), of a convolutional network in CUDA graphs; in others the GPU counts as busy for all of it.
QUEUED_SHARE = 0.67
CONVOLUTIONAL = ("resnet50", "retinanet", "ssd-resnet34")
# Batches with which Offline was measured, so that its rate holds their share of it: gpu_batch_size of
# configs/WORKLOAD/Offline in closed/NVIDIA of inference_results_v2.0 to v3.0. Unknown ones count as very large.
OFFLINE_BATCH = {"resnet50": 2048, "retinanet": 16, "ssd-resnet34": 64}
# Seconds that a GPU is busy with each query that it copies within its memory by a call of its own (same run, two
# streams: 0.31 to 1.72 us); copies from the host cost it hardly any (median 0.1 us).
DEVICE_COPY = 0.76e-6
# Workloads of one network in two precisions, of which MLPerf has SingleStream results of the first only.
SAME_NETWORK = {"bert-99.9": "bert-99"}
# Largest share that a batch may take of a Server bound less the wait for it to fill: a query may find one running
# and another queued. Published batches of slow GPUs (L4: RetinaNet 2, A30: ResNet-50 64) come out near this.
BATCH_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Seconds that a GPU takes for a batch, at points of ascending batch that begin at 1 and never get shorter.

    `batch` is the largest that this GPU should take: the workload's, or fewer where that many would break the bound.
    No batch, however large, is served at more than `peak` queries a second. Of a batch's time `kept` s cannot be hidden
    behind other batches; the peak holds those of a batch of `peak_batch`. Answers come `answer_delay` s after the
    time on the GPU, which may run the next batch meanwhile.
    """

    batch: int
    points: tuple[tuple[int, float], ...]
    basis: str
    rests_on: tuple[str, ...]
    doubt: str = ""
    peak: float = inf
    kept: float = 0.0
    peak_batch: float = inf
    answer_delay: float = 0.0

    def at(self, batch: int) -> float:
        """Seconds of the GPU for that batch: on lines between the points, beyond the last by its slope and the peak."""
        if batch < 1:
            raise InputError(f"there is no batch of {batch} queries", hint="ask for 1 or more")
        return max(_interpolated(self.points, batch), batch / self.peak)

    def rate(self, batch: int) -> float:
        """Queries a second of a GPU that is never without a batch of that size."""
        return batch / self.at(batch)

    def share(self, batch: int) -> float:
        """What a batch of that size uses of the GPU while it runs alone, 0 to 1; 1 where there is no peak."""
        if self.peak == inf:
            return 1.0
        kept = self.kept * max(0.0, 1.0 - batch / self.peak_batch)
        return min(1.0, (batch / self.peak + kept) / self.at(batch))


def service_times(part: Part, work: Workload, mode: str = "server", networked: bool = False) -> ServiceTimes:
    """Times of a GPU for batches of 1 to its largest; InputError if nobody has stated enough to know.

    `mode` says which of the GPU's scores is its rate. Over the network the host adds its software time to each query.
    """
    score, stated, peak = _score(part, work.name, mode), _stated(part, work.name), inf
    if score is None and mode == "offline":  # a Server score tells the GPU's own rate as well
        mode, score = "server", _score(part, work.name, "server")
    derived = server_from_offline(part, work) if score is None and mode == "server" else None
    if derived is not None:
        score = derived.qps
    if score is None:
        if len(stated) < 2 and max(stated, default=0) < work.batch:
            raise unknown_rate(part, work.name, mode)
        points, doubt = _from_times(stated, work.batch)
        batch, used = _fitting(points, work, mode), list(stated)
    else:
        peak = own_rate(score, work, mode)
        batch = max(1, int(min(work.batch, peak * _longest(work, mode))))
        points, doubt = _from_rate(stated, peak, batch)
        used = [size for size in stated if size < batch]
    keys = [f"service.{work.name}.{mode}"] * (score is not None and derived is None)
    keys += [time_key(work.name, size) for size in used]
    figures = [part.figure(key) for key in keys]
    bases = [figure.basis for figure in figures]
    sources = [cite(part, key, figure) for key, figure in zip(keys, figures, strict=True)]
    if derived is not None:
        bases, sources = ["typical", *bases], [derived.source, *sources]
        doubt = "; ".join(filter(None, (derived.doubt, doubt)))
    cost, basis, source = software_cost(part, work) if networked else (0.0, "physics", "")
    if cost:
        points, peak = [(size, time + size * cost) for size, time in points], 1.0 / (1.0 / peak + cost)
        bases.append(basis)
        sources.append(source)
    return ServiceTimes(batch, tuple(points), weakest(bases), tuple(sources), doubt, peak)


def offline_times(
    part: Part,
    work: Workload,
    in_order: bool = False,
    offline_batch: int | None = None,
    copies_each: bool = False,
    queued: bool = False,
) -> ServiceTimes:
    """Times of a GPU whose batches run as a harness starts them: T(n) = T0 + n / Offline, T0 = T(1) - 1 / Offline.

    Offline serves batches so large that T0 does not count, a lone query (SingleStream) all of it. Offline also sorts
    queries by length; with `in_order` batches hold queries as they came, which takes `service_unsorted` times as long.
    Of T0 a share stays where other batches run beside it, unless Offline's batches (of `offline_batch` queries, the
    workload's unless given) had it too; with `queued` batches behind each other on one stream another share. With
    `copies_each` the GPU copies each query within its memory by a call of its own. InputError without an Offline rate.
    """
    rate, basis, source = stated_rate(part, work.name, "offline")
    fixed, fixed_basis, fixed_source = _fixed_time(part, work.name)
    doubt = "" if fixed_source else f"a batch is taken to need {readable(fixed, 's')} however small, as on other GPUs"
    bases, sources = [basis, fixed_basis], [source, fixed_source]
    key = f"service_unsorted.{work.name}"
    unsorted = part.figure(key)
    if in_order and isinstance(unsorted.value, float):
        rate /= unsorted.value
        bases.append(unsorted.basis)
        sources.append(cite(part, key, unsorted))
    if copies_each:
        rate = 1.0 / (1.0 / rate + DEVICE_COPY)
    peak_batch = OFFLINE_BATCH.get(work.name, inf) if offline_batch is None else offline_batch
    queued = queued and work.name in CONVOLUTIONAL
    busy = {size: QUEUED_SHARE * max(0.0, 1.0 - size / peak_batch) if queued else 1.0 for size in (1, work.batch)}
    points = tuple((size, share * fixed + size / rate) for size, share in busy.items())
    return ServiceTimes(
        work.batch, points, weakest(bases), ("; ".join(filter(None, sources)),), doubt, rate, KEPT_SHARE * fixed,
        peak_batch, (1.0 - QUEUED_SHARE) * fixed if queued else 0.0,
    )  # fmt: skip


def _fixed_time(part: Part, name: str) -> tuple[float, str, str]:
    """T0 of a GPU with basis and source: its own, else that of the same network in other precision, else of all GPUs.

    T0 is mostly starts of kernels, of which one network has as many in every precision. No source for that of all GPUs.
    """
    for network in filter(None, (name, SAME_NETWORK.get(name))):
        key, offline = time_key(network, 1), _score(part, network, "offline")
        lone = part.figure(key)
        if isinstance(lone.value, float) and offline is not None:
            basis = lone.basis if network == name else weakest([lone.basis, "typical"])
            return max(0.0, lone.value - 1.0 / offline), basis, cite(part, key, lone)
    return FIXED_TIME.get(name, 0.0), "typical", ""


@dataclass(frozen=True, slots=True)
class DerivedScore:
    """A Server score in queries/s that follows from the Offline one, where it may lie, and why."""

    qps: float
    interval: tuple[float, float]
    source: str
    doubt: str


def server_from_offline(part: Part, work: Workload) -> DerivedScore | None:
    """The Server score of a GPU of which only the Offline rate is stated; None where that is not so."""
    offline = _score(part, work.name, "offline")
    if offline is None or _score(part, work.name, "server") is not None:
        return None
    share, key = server_share(work.name), f"service.{work.name}.offline"
    low, high = share.low * offline, offline
    doubt = (
        f"the Server rate is {100 * share.median:.0f} % of the Offline rate, the median of {share.pairs} published "
        f"pairs; a GPU of this rate may have {readable(low, '1/s')} to {readable(high, '1/s')}"
    )
    source = f"{100 * share.median:.0f} % of {cite(part, key, part.figure(key))}"
    return DerivedScore(share.median * offline, (low, high), source, doubt)


def gpu_part(system: System, gpu: str) -> Part:
    """The part that says how fast a GPU serves, at its power limit; InputError if the GPU names none."""
    part = system.part(gpu)
    if part is None:
        hint = "give it a part in the description; lanewise plan also takes a rate: '... each 40000 QPS'"
        raise InputError(f"{gpu} names no part, so its service rate is unknown", hint=hint)
    return at_power_limit(part, system.device(gpu))


def own_rate(score: float, load: Workload, mode: str = "server") -> float:
    """Queries/s that a GPU serves without a pause, if under the workload's bound its peak is `score`.

    A Server score has the queueing under the bound in it already, as an M/D/1 queue has; an Offline score has none.
    """
    return 1.0 / md1_service(score, load.bound, load.percentile) if mode == "server" else score


def time_key(name: str, batch: int) -> str:
    """The figure key of the time for a batch of a workload."""
    return f"service_time.{name}.{batch}"


def stated_rate(part: Part, name: str, mode: str) -> tuple[float, str, str]:
    """The score of a GPU as stated, with basis and source; InputError if nobody has measured it."""
    score = _score(part, name, mode)
    if score is None:
        raise unknown_rate(part, name, mode)
    key = f"service.{name}.{mode}"
    figure = part.figure(key)
    return score, figure.basis, cite(part, key, figure)


def software_cost(part: Part, work: Workload) -> tuple[float, str, str]:
    """Seconds that the host adds to a query over the network, with basis and source: the GPU's own or the workload's.

    0 and no source where neither states any.
    """
    cost = stated_software(part, work)
    if not cost:
        return 0.0, "physics", ""
    key = f"software.{work.name}"
    figure = part.figure(key)
    if figure.known:
        return cost, figure.basis, cite(part, key, figure)
    source = f"workload {work.name}: software = {readable(cost, 's')} ({work.source_of('software')})"
    return cost, "calibrated", source


def stated_software(part: Part, work: Workload) -> float | None:
    """Seconds that the host adds to a query over the network, as GPU or workload states; None where neither does."""
    value = part.figure(f"software.{work.name}").value
    return value if isinstance(value, float) else work.software


def unknown_rate(part: Part, name: str, mode: str) -> InputError:
    """The error that says how a GPU's unknown rate is made known."""
    return InputError(
        f"nobody has stated how many {name} queries {part.name} serves a second ({mode})",
        hint=f"give 'service.{name}.{mode}' in a part file (--parts FILE), or fit it with lanewise calibrate",
    )


def _score(part: Part, name: str, mode: str) -> float | None:
    value = part.figure(f"service.{name}.{mode}").value
    return value if isinstance(value, float) else None


def _stated(part: Part, name: str) -> dict[int, float]:
    """The known times of a GPU by batch, ascending; InputError for one of 0 s."""
    stem = f"service_time.{name}."
    times: dict[int, float] = {}
    for key, figure in part.figures.items():
        batch = key.removeprefix(stem)
        # bert-99 must not take what is stated for bert-99.9.
        if key.startswith(stem) and batch.isdecimal() and isinstance(figure.value, float):
            if figure.value == 0:
                raise InputError(f"'{key}' of part '{part.name}' is 0 s", hint="leave it out if it is unknown")
            times[int(batch)] = figure.value
    return dict(sorted(times.items()))


def _from_times(stated: Mapping[int, float], largest: int) -> tuple[list[tuple[int, float]], str]:
    """Points at 1, at each stated batch and at the largest, which lies on the slope of the last two."""
    batches = [1, *stated] if 1 not in stated else list(stated)
    first = next(iter(stated.values()))
    points = _rising([(batch, stated.get(batch, first)) for batch in batches])
    if batches[-1] < largest:
        points.append((largest, _interpolated(points, largest)))
    return points, "; ".join(filter(None, (_small(stated), TIMES_ONLY * (batches[-1] < largest))))


def _from_rate(stated: Mapping[int, float], rate: float, largest: int) -> tuple[list[tuple[int, float]], str]:
    """Points of which the largest batch runs at `rate`, and no smaller one runs faster or takes longer than it."""
    full = largest / rate
    times = {batch: time for batch, time in stated.items() if batch < largest}
    if not times:
        return ([(1, 1.0 / rate)] if largest == 1 else [(1, 1.0 / rate), (largest, full)]), RATE_ONLY * (largest > 1)
    doubts = [_small(times)]
    late = [batch for batch, time in times.items() if time > full]
    if late:
        doubts.append(
            f"a batch of {late[0]} is stated to take longer than {largest} at the stated rate: taken as long as those"
        )
    times = {1: next(iter(times.values()))} | times
    small = [(batch, min(max(time, batch / rate), full)) for batch, time in times.items()]
    return [*_rising(small), (largest, full)], "; ".join(filter(None, doubts))


def _small(stated: Mapping[int, float]) -> str:
    least = min(stated)
    return f"no time is stated for fewer than {least} queries: they are taken to need as long" if least > 1 else ""


def _rising(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    batches = [batch for batch, _ in points]
    return list(zip(batches, accumulate((time for _, time in points), max), strict=True))


def _interpolated(points: Sequence[tuple[int, float]], batch: int) -> float:
    """The time of a batch of 1 or more on straight lines between points; a single point gives its rate."""
    place = bisect_left(points, (batch,))
    if place < len(points) and points[place][0] == batch:
        return points[place][1]
    if len(points) == 1:
        return points[0][1] * batch / points[0][0]
    (b0, t0), (b1, t1) = points[place - 1 : place + 1] if place < len(points) else points[-2:]
    return t0 + (t1 - t0) * (batch - b0) / (b1 - b0)


def _longest(load: Workload, mode: str) -> float:
    """Seconds that a batch may take without risking the bound; there is none in Offline."""
    return BATCH_SHARE * (load.bound - load.timeout) if mode == "server" else inf


def _fitting(points: Sequence[tuple[int, float]], load: Workload, mode: str) -> int:
    """The workload's batch, or the largest smaller one that is served soon enough."""
    sizes = range(1, load.batch + 1)
    return max(1, bisect_right(sizes, _longest(load, mode), key=lambda size: _interpolated(points, size)))
