"""An engine as what the native system calls for each batch: (n, bytes) of samples in, (n, bytes) of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.loadtest.audits import as_answers
from lanewise.loadtest.engines.base import classes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lanewise.loadtest.engines.base import Engine
    from lanewise.loadtest.spec import Array

    Callback = Callable[[Array, Array], Array]


def output_bytes(engine: Engine) -> Callback:
    """Answers (n, bytes) of uint8: the engine's outputs as they are, row by row."""

    def respond(batch: Array, samples: Array) -> Array:
        return as_bytes(engine.infer(batch))

    return respond


def as_bytes(outputs: Array) -> Array:
    """Outputs (n, ...) as (n, bytes) of uint8."""
    outputs = np.ascontiguousarray(outputs)
    return outputs.reshape(len(outputs), -1).view(np.uint8)


def at_address(answer: Callable[[int, int, int], Array]) -> Callable[[Mapping[str, Any]], Array]:
    """Answers (n, bytes) of a batch by its __cuda_array_interface__; `answer` is an engine's infer_at or classes_at."""

    def respond(interface: Mapping[str, Any]) -> Array:
        n, size = interface["shape"]
        stride = interface["strides"][0] if interface.get("strides") else size
        return as_bytes(answer(interface["data"][0], n, stride))

    return respond


def class_bytes(engine: Engine) -> Callback:
    """Answers (n, 4): the class of the largest score as int32, or the model's own where it answers one integer."""

    def respond(batch: Array, samples: Array) -> Array:
        return as_bytes(classes_of(engine.infer(batch)))

    return respond


def checksum_bytes(engine: Engine) -> Callback:
    """Answers (n, 8): the checksum of each sample as it reached the engine's device, for the payload audit."""

    def respond(batch: Array, samples: Array) -> Array:
        engine.infer(batch)
        return as_answers(engine.checksums(batch))

    return respond
