"""An engine as what the native system calls for each batch: (n, bytes) of samples in, (n, bytes) of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanewise.loadtest.audits import as_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from lanewise.loadtest.engines.base import Engine
    from lanewise.loadtest.spec import Array

    Callback = Callable[[Array, Array], Array]


def answering(engine: Engine) -> Callback:
    """Answers (n, bytes) of uint8: the engine's outputs as they are, row by row."""

    def called(batch: Array, samples: Array) -> Array:
        return as_bytes(engine.infer(batch))

    return called


def as_bytes(made: Array) -> Array:
    """Outputs (n, ...) as (n, bytes) of uint8."""
    made = np.ascontiguousarray(made)
    return made.reshape(len(made), -1).view(np.uint8)


def as_classes(made: Array) -> Array:
    """Scores (n, classes) as the class of the largest, or the model's own integer, (n, 4) bytes."""
    made = made.reshape(len(made), -1)
    classes = made[:, 0] if made.shape[1] == 1 and made.dtype.kind in "iu" else made.argmax(axis=1)
    return np.ascontiguousarray(classes, "<i4").view(np.uint8).reshape(len(made), 4)


def naming_class(engine: Engine) -> Callback:
    """Answers (n, 4): the class of the largest score as int32, or the model's own where it answers one integer."""

    def called(batch: Array, samples: Array) -> Array:
        return as_classes(engine.infer(batch))

    return called


def auditing(engine: Engine) -> Callback:
    """Answers (n, 8): the checksum of each sample as it reached the engine's device, for the payload audit."""

    def called(batch: Array, samples: Array) -> Array:
        engine.infer(batch)
        return as_answers(engine.checksums(batch))

    return called


__all__ = ["answering", "as_bytes", "as_classes", "auditing", "naming_class"]
