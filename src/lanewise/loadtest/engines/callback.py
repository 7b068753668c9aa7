"""An engine as what the native system calls for each batch: (n, bytes) of samples in, (n, bytes) of answers out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.loadtest.audits import as_answers
from lanewise.loadtest.engines.base import Engine, classes_of
from lanewise.loadtest.spec import Array

# call(batch, samples): the (n, bytes) uint8 array of a batch (on a GPU an object with __cuda_array_interface__) and the
# samples' indices; it returns None, a buffer of n equal parts, or n of bytes or None.
BatchCall = Callable[[Any, Any], Any]

# What an engine answers: its outputs, a class (Top-1), or a checksum of what reached it. BRIEF is the class of a
# classifier, which is all that its service sends back, and the outputs of other models.
BRIEF, OUTPUTS, CLASSES, CHECKSUMS = "", "outputs", "classes", "checksums"


def batch_call(engine: Engine, answer: str) -> BatchCall:
    """What the native system calls for a batch, of several threads at once.

    In host memory the batch is an array, on a GPU an object with __cuda_array_interface__, whose data the native system
    sums itself.
    """
    kind = answer or (CLASSES if engine.classifies else OUTPUTS)

    def respond(batch: Any, samples: Any) -> Array:
        interface = getattr(batch, "__cuda_array_interface__", None)
        if interface is not None:
            n, size = interface["shape"]
            stride = interface["strides"][0] if interface.get("strides") else size
            infer = engine.classes_at if kind == CLASSES else engine.infer_at
            return as_bytes(infer(interface["data"][0], n, stride))
        outputs = engine.infer(batch)
        if kind == CHECKSUMS:
            return as_answers(engine.checksums(batch))
        return as_bytes(classes_of(outputs) if kind == CLASSES else outputs)

    return respond


def as_bytes(outputs: Array) -> Array:
    """Outputs (n, ...) as (n, bytes) of uint8."""
    outputs = np.ascontiguousarray(outputs)
    return outputs.reshape(len(outputs), -1).view(np.uint8)
