"""What all probes ask of this machine in one way."""

from __future__ import annotations

import pytest

from lanewise.errors import CannotMeasure, MissingDependency
from lanewise.probes import machine


@pytest.mark.parametrize(
    ("pages", "shown"),
    [
        ({0: 64}, "0"),
        ({1: 25, 0: 75}, "0 (75 %), 1 (25 %)"),
        ({1: 999, 0: 1}, "1"),
        ({0: 50, -1: 50}, "unknown (50 %), 0 (50 %)"),
        ({-1: 64}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_pages_are_on_the_nodes_that_hold_a_hundredth_or_more(pages, shown):
    assert machine.numa_nodes(pages) == shown


def test_what_the_native_core_refuses_keeps_cause_and_hint():
    native = pytest.importorskip("lanewise._native")
    with pytest.raises(CannotMeasure, match="no room") as caught, machine.native_errors():
        raise native.ProbeFailure("no room", "ask for less")
    assert caught.value.hint == "ask for less"


def test_elsewhere_than_on_linux_it_says_so(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(MissingDependency, match="storage can be measured on Linux only"):
        machine.needs_linux("storage")
