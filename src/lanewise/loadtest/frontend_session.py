"""A load test over Accelerator nodes (MLPerf's Network division): the Frontend as the system under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise import _native
from lanewise.control.handshake import read_secret
from lanewise.dispatch.counters import ConnectionCounters
from lanewise.dispatch.frontend import DEPTH, Frontend, FrontendNode, connect
from lanewise.dispatch.host import boot_id
from lanewise.dispatch.messages import AnswerKind, SampleForm
from lanewise.dispatch.transport import native_failures
from lanewise.errors import CannotMeasure, Contradiction, InputError
from lanewise.loadtest.datasets import Dataset, ImageFolder, Synthetic
from lanewise.loadtest.engines.callback import CHECKSUMS
from lanewise.loadtest.frontend_statistics import merged, perfetto
from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup, Tick
from lanewise.loadtest.session import LoadTestSession
from lanewise.loadtest.spec import SampleSpec, agree
from lanewise.loadtest.system import SystemStatistics, native_part
from lanewise.options.loadtest import LoadOptions, ModelOptions
from lanewise.options.option import options_of

Say = Callable[[str], object]
# Of a node's setup, what all nodes must have in common.
SAME = ("model", "weights", "precision", "sha256")
SECONDS = 0.25  # of load that tells the Offline rate
RISE, MOST_TIMINGS = 1.02, 8  # timed again after a rise of 2 %, so many times at most


class NetworkRunner(LoadGenRunner):
    """Connects lost nodes again before a run; a run in which one is lost is not valid."""

    frontend: Frontend
    warn: Callable[[str], object]
    before: tuple[ConnectionCounters, ...] = ()

    def run(self, load: LoadSpec) -> LoadGenResult:
        """See LoadGenRunner; CannotMeasure where all nodes are lost, or one does not come back before the run."""
        self.frontend.restore()
        self.before = self.frontend.connection_counters()
        try:
            result = super().run(load)
        except CannotMeasure as error:
            if not (losses := self._losses()):
                raise
            raise CannotMeasure("; ".join(losses), hint=error.hint) from None
        if not (lost := self.frontend.losses()):
            return result
        losses = tuple(map(str, lost))
        for loss in losses:
            self.warn(loss)
        # LoadGen has an empty answer for each query that a lost node owes: those are not completed.
        queries = max(0, result.queries - sum(loss.queries for loss in lost))
        return replace(result, valid=False, reasons=(*losses, *result.reasons), losses=losses, queries=queries,
                       qps=result.qps * queries / max(1, result.queries))  # fmt: skip

    @property
    def local_nodes(self) -> tuple[int, ...]:
        """See LoadGenRunner."""
        hosts = [node.facts.host for node in self.frontend.nodes]
        return tuple(host.process for host in hosts if host.process and host.boot == boot_id())

    def _losses(self) -> tuple[str, ...]:
        return tuple(map(str, self.frontend.losses()))


@dataclass(frozen=True, slots=True)
class FrontendSession(LoadTestSession):
    """A load test of nodes."""

    system: _native.NetworkSystem
    frontend: Frontend

    def statistics(self) -> SystemStatistics:
        """See LoadTestSession."""
        assert isinstance(self.runner, NetworkRunner)
        return merged(self.system, self.frontend, self.runner.before)

    def trace(self) -> str:
        """See LoadTestSession."""
        return perfetto(self.system, self.frontend)

    def offline_rate(self) -> float:
        """See LoadTestSession."""
        resident = list(range(self.options.library))
        self.system.load(resident)
        try:
            return settled_rate(self._replay)
        finally:
            self.system.unload(resident)

    def _replay(self, count: int) -> NDArray[np.float64]:
        """When each of so many samples, sent at once, was answered: ascending, s from the first that was sent."""
        samples = np.arange(count, dtype=np.uint64) * 7919 % self.options.library
        result = _native.replay(self.system, np.zeros(count), samples, coalesce=True)
        losses = "; ".join(map(str, self.frontend.losses()))
        cause, hint = result["failure"]
        if losses or cause:
            raise CannotMeasure(losses or cause, hint=hint or "start the node again")
        times: NDArray[np.float64] = np.sort(result["answered"] - result["issued"].min()) * 1e-9
        return times

    @property
    def devices(self) -> tuple[str, ...]:
        """See LoadTestSession."""
        return device_names(self.frontend.nodes)


def settled_rate(replay: Callable[[int], NDArray[np.float64]]) -> float:
    """Answers/s at full load, timed again while it rises: a node that was just started is slow at first.

    `replay` sends so many samples at once, and returns when they were answered, in s.
    """
    count, seconds = 64, 0.0
    while seconds < SECONDS:
        count = max(2 * count, int(1.2 * SECONDS * count / seconds) if seconds > 0.1 * SECONDS else 0)
        times = replay(count)
        seconds = float(times[-1])
    rates = [0.0, steady_rate(times)]
    while rates[-1] > RISE * max(rates[:-1]) and len(rates) <= MOST_TIMINGS:
        rates.append(steady_rate(replay(max(count, int(1.2 * SECONDS * rates[-1])))))
    return max(rates)


def steady_rate(times: NDArray[np.float64]) -> float:
    """Answers/s of those after the first half: until then queues and slots of the nodes fill."""
    half = len(times) // 2
    return (len(times) - 1 - half) / float(times[-1] - times[half])


@contextmanager
def open_frontend_session(
    options: LoadOptions, folder: Path, *, answer: str, samples: int, trace: int, tick: Tick | None,
    runner_setup: RunnerSetup, say: Say, warn: Say,
) -> Iterator[FrontendSession]:  # fmt: skip
    """As lanewise.loadtest.session.open_session, with the nodes of `options`."""
    native = native_part()
    check_of_frontend(options)
    say("connecting to the nodes")
    with connect(options, read_secret(options.secret_file)) as frontend:
        form = agreed(frontend.nodes)
        dataset = _dataset(options, samples, form, frontend.nodes[0].facts.synthetic)
        count = len(dataset) if dataset is not None else samples or options.library
        size = dataset.spec.bytes if dataset is not None else form.bytes
        options = replace(options, library=min(options.library, count), sample_bytes=size)
        fill = None if dataset is None else dataset.sample
        with native_failures():
            system = native.NetworkSystem(count, options.library, size, fill, trace)
        kind: AnswerKind = answer  # type: ignore[assignment]
        frontend.attach(system, size, kind)
        _warn_of_depth(options, frontend.nodes, warn)
        runner = NetworkRunner(system, folder, replace(runner_setup, samples=count, resident=options.library), tick)
        runner.frontend, runner.warn = frontend, warn
        checksum = answer == CHECKSUMS and frontend.nodes[0].reply.checksum == "crc32"  # type: ignore[union-attr]
        setup = about(options, frontend.nodes, dataset)
        yield FrontendSession(options, runner, dataset, checksum, setup, system, frontend)


def check_of_frontend(options: LoadOptions) -> None:
    """InputError for an option that is a node's: it would have no effect here."""
    for member, entry in options_of(ModelOptions):
        if member.name != "library" and getattr(options, member.name) != member.default:
            raise InputError(f"{entry.flag} is an option of the nodes", hint=f"lanewise serve {entry.flag} ...")


def agreed(nodes: Sequence[FrontendNode]) -> SampleForm:
    """The samples that all nodes take; Contradiction names two that differ, in samples or model."""
    first = nodes[0]
    for other in nodes[1:]:
        if (first.facts.sample, first.facts.synthetic) != (other.facts.sample, other.facts.synthetic):
            mixed = first.facts.synthetic != other.facts.synthetic
            one_form, other_form = (
                f"{sample_spec(node.facts.sample)}{' (synthetic)' * (mixed and node.facts.synthetic)}"
                for node in (first, other)
            )
            same = "--sample-bytes" if first.facts.synthetic and other.facts.synthetic else "engine and model"
            raise Contradiction(
                f"node {first.address} takes samples of {one_form}, node {other.address} of {other_form}",
                hint=f"serve the same {same} at all nodes",
            )
        for key in SAME:
            one, another = first.facts.setup.get(key), other.facts.setup.get(key)
            if one != another:
                raise Contradiction(f"node {first.address} has {key} {one}, node {other.address} {another}",
                                    hint="serve the same model at all nodes")  # fmt: skip
    return first.facts.sample


def device_names(nodes: Sequence[FrontendNode]) -> tuple[str, ...]:
    """All devices, each with the name of its node."""
    return tuple(f"{node.facts.name}/{device}" for node in nodes for device in node.facts.devices)


def about(options: LoadOptions, nodes: Sequence[FrontendNode], dataset: Dataset | None) -> dict[str, object]:
    """What is tested: division, nodes, fabric, then what the nodes run; a value that differs is said of each."""
    names = ", ".join(f"{node.address} ({_host(node)})" for node in nodes)
    setup: dict[str, object] = {
        "division": "Network", "nodes": "a process of this load test's own" if options.child_node else names,
        "transport": _each(nodes, [f"{node.transport}{' (one host)' * node.within_host}" for node in nodes]),
        "connections": f"{options.connections} a node",
        "depth": _each(nodes, [f"{node.shape.slots:,}" if node.shape else "" for node in nodes]),
    }  # fmt: skip
    for kind in dict.fromkeys(kind for node in nodes for kind in node.refused):
        setup[f"why not {kind}"] = _each(nodes, [node.refused.get(kind, "") for node in nodes])
    gpu_memory = [(node.reply.gpu_memory if node.reply else None) or "off" for node in nodes]
    if set(gpu_memory) != {"off"}:
        setup["GPU memory"] = _each(nodes, gpu_memory)
    cards = [_cards(node) for node in nodes]
    if any(cards):
        setup["NICs"] = _each(nodes, cards)
    keys = dict.fromkeys(key for node in nodes for key in node.facts.setup)
    setup |= {key: _each(nodes, [node.facts.setup.get(key, "none") for node in nodes]) for key in keys}
    setup["devices"] = ", ".join(device_names(nodes))
    setup |= dataset.describe() if dataset is not None else {"dataset": "synthetic"}
    return {**setup, "library": options.library, "sample bytes": options.sample_bytes}


def _dataset(options: LoadOptions, samples: int, form: SampleForm, synthetic: bool) -> Dataset | None:
    spec = sample_spec(form)
    if options.images is not None:
        images = ImageFolder(options.images, samples, "chw" if not synthetic and spec.shape[0] == 3 else "hwc")
        if not synthetic:
            agree(images.spec, spec, "the model of the nodes")
        return images
    return None if synthetic else Synthetic(spec, samples or options.library)


def sample_spec(form: SampleForm) -> SampleSpec:
    """A node's samples; CannotMeasure where what it says of them contradicts itself."""
    spec = SampleSpec(tuple(form.shape), form.dtype, tuple(form.below))
    fits = not spec.below or (
        spec.dtype.lstrip("u").startswith("int") and len(spec.below) == spec.shape[0]
        and max(spec.below) <= np.iinfo(spec.dtype).max + 1
    )  # fmt: skip
    if spec.bytes != form.bytes or not fits:
        raise CannotMeasure(f"a node describes samples of {spec} as {form.bytes} B", hint="use the same version there")
    return spec


def _host(node: FrontendNode) -> str:
    name, host = node.facts.name, node.facts.host.name
    return name if name.startswith(host) else f"{name} on {host}"


def _cards(node: FrontendNode) -> str:
    """The interfaces of a node that have a rate."""
    rates = [(card.name, card.rate) for card in node.facts.host.cards if card.rate]
    return ", ".join(f"{name} {rate / 1e9:g} Gb/s" for name, rate in rates)


def _each(nodes: Sequence[FrontendNode], values: Sequence[str]) -> str:
    """What all have in common, else the value of each."""
    if len(set(values)) == 1:
        return values[0]
    return "; ".join(f"{node.address} {value}" for node, value in zip(nodes, values, strict=True))


def _warn_of_depth(options: LoadOptions, nodes: Sequence[FrontendNode], warn: Say) -> None:
    for node in nodes:
        if node.shape is not None and not options.depth and node.shape.slots < DEPTH:
            warn(f"note: {node.shape.slots} queries in flight on a connection of node {node.address}, whose memory "
                 f"holds no more; --depth asks for others")  # fmt: skip
