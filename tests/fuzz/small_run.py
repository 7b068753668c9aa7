"""A small run with rows of every kind, for inputs of the readers of run files."""

from __future__ import annotations

from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run


def small_run() -> Run:
    """Measured and predicted rows."""
    rows = (
        Observation(
            "copy", "gpu0->gpu1", "goodput", 2e10, "GB/s", Source.MEASURED, settings={"bytes": 4096}, path="peer",
            how={"engine": "copy engine", "flows": "gpu0->gpu1"}, low=1.9e10, high=2.1e10, samples=(1.9e10, 2.1e10),
        ),
        Observation("copy", "host0->gpu0", "latency_p50", None, "us", Source.PREDICTED, note="not known"),
    )  # fmt: skip
    return Run((), "2024-01-01T00:00:00+00:00", "0.2.0", "measure gpu", {"kernel": "6.1"}, (), rows)
