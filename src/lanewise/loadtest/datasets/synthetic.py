"""Random samples: the same for a seed and an index on every machine, made when they are asked for."""

from __future__ import annotations

import numpy as np

from lanewise.errors import InputError
from lanewise.loadtest.spec import SampleSpec


class Synthetic:
    """`count` samples of a spec: random bytes, floats uniform in [0, 1), integers below the spec's limits."""

    def __init__(self, spec: SampleSpec, count: int, seed: int = 1) -> None:
        if count < 1:
            raise InputError(f"a dataset of {count} samples holds nothing", hint="ask for 1 or more")
        self.spec = spec
        self.seed = seed
        self._count = count

    def __len__(self) -> int:
        return self._count

    def describe(self) -> dict[str, object]:
        """Which dataset."""
        return {"dataset": "synthetic", "samples": self._count, "sample": str(self.spec), "seed": self.seed}

    def sample(self, index: int) -> bytes:
        """The bytes of one sample; InputError outside 0 to the count."""
        if not 0 <= index < self._count:
            raise InputError(f"there is no sample {index} of {self._count}", hint="count from 0")
        drawn = np.random.default_rng([self.seed, index])
        spec = self.spec
        if spec.below:
            rows = [drawn.integers(0, limit, spec.shape[1:], spec.dtype) for limit in spec.below]
            return np.stack(rows).tobytes()
        if np.dtype(spec.dtype).kind == "f":
            return drawn.random(spec.shape, np.float32).astype(spec.dtype).tobytes()
        return drawn.bytes(spec.bytes)

    def label(self, index: int) -> int | None:
        """None: nobody knows what noise shows."""
        return None
