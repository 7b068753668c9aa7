"""Random weights: each array depends on the seed and its own name alone, so every back end gets the same."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lanewise.loadtest.models.ops import DEVIATION, MEAN, Conv, Dense

Floats = NDArray[np.float32]
EMBEDDED = 0.02  # BERT's own standard deviation


class Weights:
    """Makes the weights of a network."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def normal(self, name: str, shape: tuple[int, ...], deviation: float) -> Floats:
        """Normal values around 0."""
        drawn = np.random.default_rng([self.seed, crc32(name.encode())])
        return drawn.standard_normal(shape, np.float32) * np.float32(deviation)

    def conv(self, name: str, conv: Conv) -> tuple[Floats, Floats]:
        """Kernel (outside, inside, k, k) and bias, batch norm folded in: He's initialisation, scales of about 1."""
        shape = (conv.outside, conv.inside, conv.kernel, conv.kernel)
        kernel = self.normal(f"{name}.kernel", shape, conv.gain * (2 / (conv.inside * conv.kernel**2)) ** 0.5)
        scale = 1 + self.normal(f"{name}.scale", (conv.outside,), 0.1)
        return kernel * scale[:, None, None, None], self.normal(f"{name}.shift", (conv.outside,), 0.1)

    def dense(self, name: str, dense: Dense) -> tuple[Floats, Floats]:
        """Matrix (inside, outside) and bias."""
        matrix = self.normal(f"{name}.matrix", (dense.inside, dense.outside), dense.inside**-0.5)
        return matrix, self.normal(f"{name}.bias", (dense.outside,), 0.02)

    def norm(self, name: str, width: int) -> tuple[Floats, Floats]:
        """Scale and shift of a layer norm."""
        return 1 + self.normal(f"{name}.scale", (width,), 0.02), self.normal(f"{name}.shift", (width,), 0.02)

    def table(self, name: str, rows: int, width: int) -> Floats:
        """An embedding."""
        return self.normal(f"{name}.table", (rows, width), EMBEDDED)


def pixel_scale() -> tuple[Floats, Floats]:
    """Factor and shift (3, 1, 1) that normalise pixels: (x - mean) / deviation = x * factor + shift."""
    factor = 1 / np.array(DEVIATION, np.float64)
    shift = -np.array(MEAN, np.float64) * factor
    return factor.astype(np.float32).reshape(3, 1, 1), shift.astype(np.float32).reshape(3, 1, 1)
