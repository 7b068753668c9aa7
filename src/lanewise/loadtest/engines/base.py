"""What an engine is: it takes a batch of samples and gives an answer for each."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from lanewise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from lanewise.loadtest.spec import Array, SampleSpec

T = TypeVar("T")

# A service time is the median of runs until there are LEAST of them that took SECONDS together, MOST at most.
LEAST, MOST, SECONDS = 7, 200, 0.5


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How an engine runs; each engine refuses what it does not know.

    `provider` is onnxruntime's (cpu, cuda, tensorrt; empty is the device's own), `threads` its threads inside an
    operator (0 is one a core), `output` which output answers (empty is the first). `mode` is torch's: eager, compiled,
    graphs, compiled-graphs; empty is eager on a CPU and graphs on a GPU. `layout` and `seed` are of models that
    Lanewise builds, kept in `folder`. `image`: a file that takes normalised float images (n, 3, height, width) is given
    uint8 pixels in `layout`, normalised inside.
    """

    provider: str = ""
    threads: int = 0
    output: str = ""
    mode: str = ""
    layout: str = "hwc"
    seed: int = 1
    image: bool = False
    folder: Path | None = None


class Engine(Protocol):
    """Runs a model on one device. Any number of threads may call it at once; batches go one after another."""

    @property
    def name(self) -> str:
        """Engine and model: `onnxruntime small-cnn`."""

    @property
    def spec(self) -> SampleSpec:
        """One sample."""

    @property
    def sizes(self) -> Sequence[int]:
        """The batch sizes that are prepared, ascending: a batch is padded to the next, and takes as long. Empty where
        every batch runs as it is."""

    @property
    def classifies(self) -> bool:
        """Whether it is known that an output is scores of classes, of which the largest says what is asked."""

    def describe(self) -> dict[str, object]:
        """What runs: engine, model, weights (random or file), precision, device, provider or mode, versions."""

    def load(self, device: str, max_batch: int) -> None:
        """Brings the model onto `cpu`, `cuda` or `cuda:N` (CUDA's own numbers), for batches up to `max_batch`."""

    def warm(self, batches: Sequence[int]) -> None:
        """Runs each batch size a few times, so that nothing is prepared in a measured run."""

    def infer(self, batch: Array) -> Array:
        """Answers (n, ...) in host memory of samples in host memory: (n, bytes) of uint8 or (n, *shape)."""

    def infer_at(self, address: int, n: int, stride: int = 0) -> Array:
        """The same of n samples `stride` bytes apart (0: in a row) in the memory of the engine's device, complete
        before the call; valid until the next call with that address.

        There is room for the largest batch: what lies behind the n samples may be read, and is not answered.
        """

    def classes_at(self, address: int, n: int, stride: int = 0) -> Array:
        """As infer_at, of each sample the class alone (n, of int32)."""

    def checksums(self, batch: Array) -> Array:
        """The checksum (uint64) of each sample, of what reached the device; see lanewise.loadtest.checksum."""

    def service_times(self, batches: Sequence[int]) -> dict[int, float]:
        """Seconds by batch size, one after another, as a device queue has it: the samples are in the memory of the
        device, and the answers, classes where `classifies`, are back in host memory at the end."""

    def close(self) -> None:
        """Lets the model and the device's memory go."""


def closed_loop(
    infer: Callable[[T], object],
    batches: Mapping[int, T],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """The median seconds of `infer` for each batch, each run as soon as the one before has ended; the first two runs
    are not counted."""
    medians = {}
    for size, batch in sorted(batches.items()):
        for _ in range(2):
            infer(batch)
        durations: list[float] = []
        while len(durations) < LEAST or (sum(durations) < SECONDS and len(durations) < MOST):
            start = clock()
            infer(batch)
            durations.append(clock() - start)
        medians[size] = statistics.median(durations)
    return medians


def checked_sizes(batches: Sequence[int], max_batch: int) -> list[int]:
    """The batch sizes in order, each once; InputError outside 1 to `max_batch`."""
    for size in batches:
        if not 1 <= size <= max_batch:
            raise InputError(
                f"a batch of {size} is outside 1 to {max_batch}", hint="load the engine for the largest batch"
            )
    return sorted(set(batches))


def random_batch(spec: SampleSpec, n: int) -> Array:
    """n samples of the synthetic dataset."""
    import numpy as np

    from lanewise.loadtest.datasets.synthetic import Synthetic

    dataset = Synthetic(spec, n)
    return np.stack([np.frombuffer(dataset.sample(index), np.uint8) for index in range(n)])


def classes_of(outputs: Array) -> Array:
    """Scores (n, classes) as the class of the largest, or the model's own integer where it answers one: (n), int32."""
    import numpy as np

    outputs = outputs.reshape(len(outputs), -1)
    own = outputs.shape[1] == 1 and outputs.dtype.kind in "iu"
    return np.ascontiguousarray(outputs[:, 0] if own else outputs.argmax(axis=1), np.int32)


def device_index(device: str) -> int | None:
    """The number of `cuda` or `cuda:N`, None for `cpu`; InputError for anything else."""
    kind, _, index = device.partition(":")
    if device == "cpu":
        return None
    if kind == "cuda" and (device == "cuda" or index.isdecimal()):
        return int(index or 0)
    raise InputError(f"there is no device '{device}' for an engine", hint="cpu, cuda or cuda:0, cuda:1, ...")
