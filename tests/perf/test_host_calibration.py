"""What measurements of a machine say of the paths that were not measured on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lanewise
from lanewise.api.scores import accuracy_after_measurements
from lanewise.errors import InputError
from lanewise.perf.flow import parse_flows
from lanewise.perf.host_calibration import MARGIN, HostCalibration, HostRate, calibrate_host
from lanewise.perf.uncertainty import RANGES
from lanewise.report.after_measurement import render_after
from lanewise.report.text.host_calibration import render_steps
from lanewise.topology.model import System
from lanewise.topology.read import read_system

MACHINE = """
lanewise: 1
system: m
devices:
  "cpu[0-1]": {cpu: milan}
  "gpu[0-3]": {gpu: a100-sxm-80gb}
links:
  - {from: cpu0, to: cpu1, socket: 3}
  - {from: "cpu[0-1]", to: "gpu[0-3]", pairs: true, pcie: gen4 x16}
"""


ROWS = 'lanewise-rows: 1\nrows:\n  - {flows: "%s", value: 20 GB/s}\n'


@pytest.fixture(scope="module")
def machine() -> System:
    return read_system(MACHINE, "m.yaml")


def measured(system: System, *rates: tuple[str, float]) -> HostCalibration:
    """The system after these rates (GB/s) of copies through host memory, or with the host."""
    return calibrate_host(system, [HostRate(text, parse_flows(text, False), rate * 1e9) for text, rate in rates])


def total(system: System, flows: str) -> float:
    return lanewise.predict(system, flows, p2p=False).total / 1e9


def test_one_engine_tells_of_the_engines_of_equal_gpus(machine: System) -> None:
    after = measured(machine, ("host0->gpu0", 24.0))
    assert after.steps[0].capacity is not None
    assert after.steps[0].capacity[0] == "h2d"
    for gpu in ("gpu0", "gpu3"):
        rate = lanewise.predict(after.system, f"host0->{gpu}").rates[0]
        assert rate.rate == pytest.approx(24e9, rel=0.01)
        assert (rate.low, rate.high) == pytest.approx([rate.rate * end for end in RANGES["calibrated"]])
        assert "measured on this machine: host0->gpu0, 24 GB/s" in rate.rests_on[0]
    assert total(after.system, "gpu0->host0") == total(machine, "gpu0->host0")


def test_staged_copies_both_ways_tell_of_other_pairs_of_the_same_socket_and_of_lone_copies_nothing(
    machine: System,
) -> None:
    before = {flows: total(machine, flows) for flows in ("gpu0<->gpu1", "gpu2<->gpu3", "gpu0->gpu1")}
    after = measured(machine, ("gpu0<->gpu1", 0.7 * before["gpu0<->gpu1"]))
    assert total(after.system, "gpu1<->gpu0") == pytest.approx(0.7 * before["gpu0<->gpu1"], rel=0.01)
    assert total(after.system, "gpu2<->gpu3") == before["gpu2<->gpu3"]  # its buffers may be elsewhere
    assert total(after.system, "gpu0->gpu1") == before["gpu0->gpu1"]


def test_a_rate_that_no_capacity_explains_is_left_out_and_said(machine: System) -> None:
    after = measured(machine, ("host0->gpu0", 3.1))
    assert after.steps[0].capacity is None
    assert after.system is machine
    assert list(render_steps(after)) == [
        "host0->gpu0: 3.1 GB/s measured, 25.71 GB/s predicted: no single capacity explains it; not used"
    ]
    assert RANGES["unknown"][0] / MARGIN * 25.71 > 3.1


def test_rates_that_earlier_ones_tell_say_nothing_new(machine: System) -> None:
    after = measured(machine, ("host0->gpu0", 24.0), ("host0->gpu1", 24.2))
    assert [step.measured.name for step in after.steps] == ["host0->gpu0"]


def test_a_capacity_that_does_not_limit_is_told_nothing(machine: System) -> None:
    rate = total(machine, "host0->gpu0")
    after = measured(machine, ("host0->gpu0", rate))
    told = {capacity[0] for capacity, factor in after.system.measured.items() if factor.rests_on}
    assert told == {"h2d"}  # not memory, whose range is the widest


def test_what_measured_flows_load_is_at_least_as_large(machine: System) -> None:
    # Memory of an unknown CPU may be that of any; one that was read at 25 GB/s carries 25.
    unknown = read_system(MACHINE.replace("milan", "null"), "m.yaml")
    flows = "host0->gpu[0-1], gpu[0-1]->host0"
    before = lanewise.predict(unknown, flows)
    after = lanewise.predict(measured(unknown, (flows, before.total / 1e9)).system, flows)
    assert after.total == pytest.approx(before.total, rel=0.01)
    assert before.total_low < after.total_low


def test_measured_rows_of_another_machine_are_refused(tmp_path: Path) -> None:
    results = tmp_path / "rows.txt"
    results.write_text(ROWS % "gpu70->gpu71", encoding="utf-8")
    with pytest.raises(InputError, match="no rate of copies between devices of the system"):
        lanewise.calibrate_host("rack-16gpu", results)


def test_a_score_after_measurements_is_of_the_rows_left() -> None:
    score = lanewise.accuracy(["pro6000-roots"])
    one, two = accuracy_after_measurements(score)
    assert (len(one.before), len(two.before)) == (len(score.rates) - 1, len(score.rates) - 2)
    # Measured is one of the two rows of eight GPUs at one host bridge (73 GB/s, 77 expected); the other follows.
    (left,) = ((row, now) for row, now in zip(one.before, one.after, strict=True) if "one quadrant" in row.row.path)
    assert abs(left[0].error or 0) > 0.04 > 0.01 > abs(left[1].error or 1)
    text = render_after((one, two))
    assert "two measurements" in text
