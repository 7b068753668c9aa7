"""Every probe is one: it carries out its plan and yields values, measured or predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.options.measure_host import MeasureHostOptions
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.options.sampling import SamplingRule
from lanewise.probes.gpu.probe import GpuProbe
from lanewise.probes.host.probe import HostProbe
from lanewise.probes.model import ModelProbe
from lanewise.probes.network.probe import NetworkProbe
from lanewise.probes.sampling import sample_until
from lanewise.probes.storage.probe import StorageProbe
from lanewise.results.plan import Probe, StudyProbe
from lanewise.results.sample import Sample

# mypy holds each of these to the protocol.
MODEL: Callable[[], StudyProbe] = ModelProbe
HOST: Callable[[], Probe[MeasureHostOptions, Sample]] = HostProbe
STORAGE: Callable[[], Probe[MeasureStorageOptions, Sample]] = StorageProbe
NETWORK: Callable[[], Probe[MeasureNetworkOptions, Sample]] = NetworkProbe
GPU: Callable[[Any], Probe[MeasureGpuOptions, Sample]] = GpuProbe


def sample(metric: str, value: float | None, flow: str = "a->b") -> Sample:
    return Sample("s", flow, metric, value, "GB/s")


def test_the_loop_goes_on_until_every_row_of_the_metric_has_enough() -> None:
    steady, scattered = iter([1.0] * 9), iter([1.0, 2.0, 3.0, 4.0] * 3)
    rule = SamplingRule(least=2, most=4, width=0.01)
    measured = list(
        sample_until(
            rule, "goodput", lambda: [sample("goodput", next(steady)), sample("goodput", next(scattered), "c->d")]
        )
    )
    assert [row.flow for row in measured] == ["a->b", "c->d"] * 4


@pytest.mark.parametrize(
    ("rows", "count"), [([sample("goodput", None)], 1), ([sample("iops", 1.0)], 1), ([sample("goodput", 2.0)], 2)]
)
def test_a_row_without_a_value_or_of_another_metric_ends_the_loop(rows: list[Sample], count: int) -> None:
    assert len(list(sample_until(SamplingRule(least=2), "goodput", lambda: rows))) == count
