"""Checks of the loads of a model: each is judged by what it reads from, never by another loader or the page cache."""

from __future__ import annotations

import pytest

from lanewise import api
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation, Source


def load_row(state: str, rate: float) -> Observation:
    """A row of `measure load` by safetensors."""
    how = {"flows": "m.safetensors->host0", "mode": f"safetensors {state}", "data size": "15 GB"}
    return Observation(
        f"load safetensors {state}", "m.safetensors->host0", "total", rate, "GB/s", Source.MEASURED, path="load",
        how=how,
    )  # fmt: skip


def loads_checked(cold: float, devices: dict[str, str] | None = None) -> Checkup:
    rows = [load_row("cold", cold), load_row("warm", 2.8e9)]
    return check(rows, target=api.load_system("puget-wrx90"), device_of_word=devices)


def of_cold(checkup: Checkup) -> PathResult:
    return next(result for result in checkup.results if result.row.scenario.endswith("cold"))


def test_a_cold_load_is_not_compared_with_the_page_cache():
    checkup = loads_checked(1.045e9)
    assert of_cold(checkup).verdict is Verdict.UNKNOWN
    assert "--as WORD=DEVICE" in checkup.findings[0].step


@pytest.mark.parametrize(("rate", "verdict"), [(1.6e9, Verdict.OK), (0.3e9, Verdict.SLOW)])
def test_a_cold_load_is_judged_by_the_drive_and_its_loader(rate: float, verdict: Verdict):
    cold = of_cold(loads_checked(rate, {"m.safetensors": "vol0"}))
    assert (cold.verdict, cold.expected.limit) == (verdict, "read latency")
