"""What an Accelerator node answers queries with: engines that stay loaded, and a native system for each Frontend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lanewise import _native
from lanewise.dispatch.host import host_facts
from lanewise.dispatch.messages import MOST_SIZES, AnswerKind, ChecksumKind, NodeFacts, NodeStatistics, SampleForm
from lanewise.dispatch.node import SlotSystem
from lanewise.errors import InputError
from lanewise.loadtest.engines.base import random_batch
from lanewise.loadtest.engines.callback import BRIEF, CHECKSUMS, CLASSES, OUTPUTS, as_bytes, batch_call
from lanewise.loadtest.gpu_memory import gpu_slots
from lanewise.loadtest.session import (
    about_batches,
    about_engine,
    about_service,
    first_engine,
    open_engines,
    open_system,
    sums_natively,
)
from lanewise.loadtest.system import SystemStatistics, gpus, statistics
from lanewise.options.loadtest import SYNTHETIC, ModelOptions
from lanewise.options.serve import OFF

_LEAST_ANSWER = 8  # bytes, which a checksum has


class Accelerator:
    """The engines of a node; see lanewise.dispatch.node.AcceleratorSystems."""

    def __init__(
        self, options: ModelOptions, name: str, warn: Callable[[str], object] = lambda _: None,
        device: str | None = None, gid_index: int | None = None, gpu_memory: str = OFF,
    ) -> None:  # fmt: skip
        """Loads them; errors as of `open_engines`. `device` and `gid_index`: of RDMA, None for all."""
        self._device, self._gid_index, self.gpu_memory = device, gid_index, gpu_memory
        self.options = replace(options, engine=options.engine or first_engine(options.devices, warn))
        self.name = name
        gpus(self.options.devices)  # one that is absent is an error now, not of the first Frontend
        self.engines = open_engines(self.options, warn) if self.options.engine != SYNTHETIC else ()
        self._output_bytes = 0
        if self.engines:
            engine = self.engines[0]
            self.options = replace(self.options, sample_bytes=engine.spec.bytes)
            self._output_bytes = as_bytes(engine.infer(random_batch(engine.spec, 1))).shape[1]

    @property
    def setup(self) -> dict[str, object]:
        """What runs, with versions."""
        return {
            **about_engine(self.options, self.engines), **about_batches(self.options),
            **about_service(self.options, self.engines),
        }  # fmt: skip

    def facts(self) -> NodeFacts:
        """See AcceleratorSystems."""
        size, spec = self.options.sample_bytes, self.engines[0].spec if self.engines else None
        sample = SampleForm(shape=[size], dtype="uint8", bytes=size)
        if spec is not None:
            sample = SampleForm(shape=list(spec.shape), dtype=spec.dtype, below=list(spec.below), bytes=size)
        setup = {name[:64]: str(value)[:300] for name, value in self.setup.items()}
        return NodeFacts(
            name=self.name[:64], host=host_facts(device=self._device, gid_index=self._gid_index),
            devices=list(self.options.devices), batch=self.options.batch,
            synthetic=not self.engines, sample=sample, setup=setup,
        )  # fmt: skip

    def answer_form(self, answer: AnswerKind) -> tuple[int, ChecksumKind]:
        """See AcceleratorSystems."""
        if answer == CLASSES and not self.engines:
            raise InputError("the synthetic engine names no classes", hint="choose onnxruntime or torch for accuracy")
        outputs = answer == OUTPUTS or (answer == BRIEF and not (self.engines and self.engines[0].classifies))
        size = self._output_bytes if outputs else _LEAST_ANSWER
        checksum: ChecksumKind = "crc32" if sums_natively(self.options, self.engines) else "sum64"
        return -(-max(size, 1) // _LEAST_ANSWER) * _LEAST_ANSWER, checksum

    def gpu_slots(self, size: int) -> _native.GpuMemory:
        """See AcceleratorSystems."""
        return gpu_slots(self.options, size)

    def open(self, answer: str, slots: _native.SlotMemory, count: int) -> SlotSystem:
        """See AcceleratorSystems."""
        checksum = answer == CHECKSUMS and sums_natively(self.options, self.engines)
        calls = [batch_call(engine, answer) for engine in self.engines]
        system = open_system(self.options, calls, samples=count, checksum=checksum, slots=slots)
        return SlotSystem(system, lambda: as_message(statistics(system)))

    def close(self) -> None:
        """Let the engines go."""
        for engine in self.engines:
            engine.close()


def as_message(values: SystemStatistics) -> NodeStatistics:
    """Statistics as they travel; where batches have very many sizes, some are counted as a slightly larger one."""
    step = 1
    while len({-(-size // step) for size in values.sizes}) > MOST_SIZES:
        step *= 2
    sizes: dict[int, int] = {}
    for size, count in values.sizes.items():
        rounded = -(-size // step) * step
        sizes[rounded] = sizes.get(rounded, 0) + count
    return NodeStatistics(
        stages={name: dict(times) for name, times in values.stages.items()}, sizes=sorted(sizes.items()),
        bytes=values.bytes, answered=values.answered, failed=values.failed, stalled=values.stalled,
        copies=[(name, dict(times)) for name, times in values.copies],
    )  # fmt: skip
