"""Causes of single rows: modes, noise, units, outliers, throttling, packets; and when nothing explains a value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from checking import made_machines as made
from checking.made_machines import HOST_COPIES
from in_display_units import observation

from lanewise import api
from lanewise.checking import changes
from lanewise.checking.causes.machine import MachineState
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.expectation import covers
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import Verdict
from lanewise.results.conditions import MachineConditions, Throttle
from lanewise.results.observation import Observation, Source
from lanewise.topology.model import System
from lanewise.topology.read import read_system


@pytest.fixture
def system() -> System:
    return api.load_system("dgx-a100")


def checked(system: System, rows: list[Observation], machine: MachineState | None = None) -> Checkup:
    return check(rows, machine, system)


def scaled(row: Observation, share: float, **how: str) -> Observation:
    value = (row.value or 0.0) * share
    return replace(row, value=value, how={**row.how, **how}, low=value, high=value)


def sizes(payload: int, most: int, read_request: int) -> dict[str, int]:
    return {"payload": payload, "payload_max": most, "read_request": read_request}


def first_cause(found: Checkup) -> tuple[str, ...]:
    (finding,) = found.findings
    return finding.causes[0].key if finding.causes else ()


def test_throttling_is_named_where_the_driver_says_so(system: System):
    rows = made.rows(system, HOST_COPIES)
    states = MachineConditions(
        throttles=(Throttle("gpu0", ("hw_thermal_slowdown",), "nvml"), Throttle("gpu1", ("idle",), ""))
    )
    found = checked(system, [scaled(rows[0], 0.75), *rows[1:]], MachineState(conditions=states))
    assert first_cause(found) == ("throttling", "gpu0")
    assert found.findings[0].step.startswith("nvidia-smi -q -d PERFORMANCE")


def test_clocks_held_down_on_a_fine_machine_are_no_finding(system: System):
    states = MachineConditions(throttles=(Throttle("gpu0", ("sw_power_cap",), "nvml"),))
    assert checked(system, made.rows(system, HOST_COPIES), MachineState(conditions=states)).findings == ()


def test_one_slow_gpu_among_equals_is_named(system: System):
    rows = made.rows(system, [f"host0->gpu{n}" for n in range(8)] + ["gpu5->host0"])
    found = checked(system, [scaled(row, 0.65) if row.flow == "host0->gpu5" else row for row in rows])
    assert first_cause(found) == ("alone", "gpu5")
    assert "among 8 of its kind" in found.findings[0].title


def test_all_gpus_equally_slow_are_no_outliers(system: System):
    rows = [scaled(row, 0.8) for row in made.rows(system, HOST_COPIES)]
    found = checked(system, rows)
    assert found.count(Verdict.SLOW) == len(rows)
    assert all(cause.key[0] != "alone" for finding in found.findings for cause in finding.causes)


def test_samples_far_apart_are_told(system: System):
    row = scaled(made.rows(system, ["host0->gpu0"])[0], 0.65)
    value = row.value or 0.0
    noisy = replace(row, samples=(0.9 * value, value, 1.16 * value), low=0.9 * value, high=1.16 * value)
    assert first_cause(checked(system, [noisy])) == ("noise",)


def test_bits_taken_for_bytes_and_sums_taken_for_one_are_suspected(system: System):
    row = made.rows(system, ["host0->gpu0"])[0]
    for factor, word in ((8, "bits"), (2, "sum")):
        found = checked(system, [scaled(row, factor)])
        assert found.results[0].verdict is Verdict.FAST
        assert word in found.findings[0].title
        assert found.exit_code == 3


TWO_SOCKETS = """\
lanewise: 1
system: two-sockets
devices: {"cpu[0-1]": {cpu: ice-lake-sp}, "gpu[0-1]": {gpu: a100-pcie-80gb}}
links:
  - {from: cpu0, to: gpu0, pcie: gen4 x16}
  - {from: cpu1, to: gpu1, pcie: gen4 x16}
  - {from: cpu0, to: cpu1, socket: auto}
"""


def test_both_ways_are_too_fast_only_above_the_wires_of_both_and_no_sum_is_taken_for_one():
    two = read_system(TWO_SOCKETS, "two.yaml")
    both = {"flows": "gpu1->gpu0, gpu0->gpu1", "p2p": "on"}
    total = observation(
        "both", "gpu1->gpu0, gpu0->gpu1", "total", 36.22, "GB/s", Source.MEASURED, path="peer", how=both
    )
    result = checked(two, [total]).results[0]
    # Twice 31.5 GB/s, less the headers of packets.
    assert (result.verdict, round((result.fine_high or 0.0) / 1e9, 1)) == (Verdict.OK, 60.2)
    expected = (result.expected.value or 0.0) / 1e9
    for value in (61.0, 8 * expected):
        found = checked(two, [replace(total, value=value * 1e9)])
        assert found.results[0].verdict is Verdict.FAST
        assert all("sum of both ways" not in cause.what for cause in found.findings[0].causes)
    assert "bits" in found.findings[0].title


ONE_SWITCH = """\
lanewise: 1
system: one-switch
devices: {cpu0: {cpu: ice-lake-sp}, sw0: {switch: null}, "gpu[0-1]": {gpu: a100-pcie-80gb}}
links:
  - {from: cpu0, to: sw0, pcie: gen3 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen3 x16}
"""


def test_both_ways_of_a_staged_copy_share_the_wire_that_both_cross():
    shared = read_system(ONE_SWITCH, "shared.yaml")
    both = {"flows": "gpu1->gpu0, gpu0->gpu1", "p2p": "off"}
    row = observation("both", "gpu1->gpu0, gpu0->gpu1", "total", 17.0, "GB/s", Source.MEASURED, path="peer", how=both)
    assert checked(shared, [row]).results[0].verdict is Verdict.FAST


def test_a_link_better_than_described_is_among_the_suspects():
    better = api.load_system("h200-pair")
    described = changes.link_speed("gpu0", 4, 16).change_system(better)
    found = check(made.rows(better, ["gpu0->host0"]), target=described)
    assert found.results[0].verdict is Verdict.FAST
    # Twice the rate may be a sum of both ways as well: both are said.
    said = [cause.what for cause in found.findings[0].causes]
    assert "the link of gpu0 is Gen5 x16, not Gen4 x16 as described" in said


def test_cufile_compat_mode_is_named_for_drives_read_into_gpus():
    system = api.load_system("pax-storage-fabric")
    drive = next(name for name in system.volumes or system.devices if name.startswith(("vol", "ssd")))
    flow = f"{drive}->gpu0"
    direct = made.rows(system, [flow])[0]
    row = replace(scaled(direct, 0.4, mode="cuFile compat"), path="storage")
    causes = [cause.key for finding in checked(system, [row]).findings for cause in finding.causes]
    assert ("compat",) in causes


def test_a_bounce_buffer_asked_for_is_judged_as_such_and_the_page_cache_is_no_path():
    system = api.load_system("pax-storage-fabric", {"cross_domain": 1})
    drive = next(iter(system.volumes))
    model = ExpectationModel(system)
    direct = observation("read", f"{drive}->gpu0", "goodput", 1.0, "GB/s", Source.MEASURED, path="storage")
    ways = {mode: model.expect(replace(direct, how={"mode": mode})).tolerance for mode in ("direct", "bounce")}
    assert ways["bounce"] == TOLERANCES["staged"] != ways["direct"]
    assert not covers(replace(direct, how={"mode": "cached"}))
    assert covers(replace(direct, how={"mode": "cached", "tool": "fio"}))


def test_a_fast_read_through_the_page_cache_is_told():
    system = api.load_system("pax-storage-fabric")
    row = made.rows(system, ["ssd0->host0"])[0]
    found = checked(system, [replace(scaled(row, 3.0, mode="cached", tool="fio"), path="storage")])
    assert ("cache",) in [cause.key for cause in found.findings[0].causes]


def test_a_small_payload_is_tried_and_small_read_requests_are_mentioned(system: System):
    machine = MachineState(figures={"gpu0": sizes(128, 256, 128), "gpu1": sizes(256, 256, 512)})
    rows = [scaled(row, 0.75) for row in made.rows(system, ["host0->gpu0"])]
    causes = [cause.key for finding in checked(system, rows, machine).findings for cause in finding.causes]
    assert ("read request", "gpu0") in causes
    assert checked(system, made.rows(system, HOST_COPIES), machine).findings == ()


def test_peers_over_pcie_where_nvlinks_should_be_are_supposed_to_lack_them(system: System):
    bare = changes.fewer_nvlinks("gpu0").change_system(system)
    found = checked(system, made.rows(bare, ["gpu0->gpu1", "gpu1->gpu0"]))
    assert first_cause(found) == ("nvlink",)
    assert found.findings[0].title.startswith("these GPUs exchange data over PCIe")


def test_some_nvlinks_down_explain_a_slower_pair(system: System):
    bare = changes.fewer_nvlinks("gpu0", 6).change_system(system)
    found = checked(system, made.rows(bare, ["gpu0->gpu1"]), MachineState(figures={"gpu0": {"nvlinks_off": 6}}))
    assert first_cause(found) == ("nvlink", "gpu0")
    assert found.findings[0].causes[0].explains


def test_rows_that_nothing_limits_are_unknown_for_one_reason(tmp_path: Path):
    # A matrix of nvidia-smi names neither parts nor speeds.
    topo = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-31\t0\nGPU1\tPHB\t X \t0-31\t0\n"
    (tmp_path / "topo.txt").write_text(topo)
    (tmp_path / "p2p.txt").write_text(made.p2p_text(api.load_system("h200-pair")))
    found = api.check([tmp_path / "topo.txt", tmp_path / "p2p.txt"])
    (finding,) = found.findings
    assert (finding.kind, len(finding.results), found.exit_code) == ("unknown", 4, 3)
    assert finding.title == "nothing is known that would limit these flows"


def test_what_nothing_explains_says_so_and_how_to_measure_again(system: System):
    rows = [scaled(row, 0.3) for row in made.rows(system, ["gpu0->gpu1"])]
    finding = checked(system, rows).findings[0]
    if not finding.causes:
        assert finding.title.startswith("no evidence explains it")
    assert "lanewise" in finding.step or "nvidia-smi" in finding.step


def test_metrics_that_the_model_knows_nothing_of_are_not_judged_by_it():
    for metric, flow, path in (("launch_latency", "gpu0->gpu1", "peer"), ("goodput", "gpu0->gpu0", "GPU memory"),
                               ("goodput", "host0:0->host0:1", "host memory")):  # fmt: skip
        assert not covers(observation("x", flow, metric, 1.0, "GB/s", Source.MEASURED, path=path))
    small = observation("x", "host0->gpu0", "goodput", 1.0, "GB/s", Source.MEASURED, settings={"bytes": 4096})
    assert not covers(small)
    assert covers(replace(small, settings={"bytes": 1 << 28}))


def test_a_name_that_no_device_bears_leaves_the_row_unknown_and_a_called_name_does_not():
    system = api.load_system("pax-storage-fabric")
    row = observation("fio", "data.bin->host0", "goodput", 3.0, "GB/s", Source.MEASURED, path="storage")
    drive = next(name for name in system.devices if name.startswith("ssd"))
    assert ExpectationModel(system).expect(row).expected.value is None
    assert ExpectationModel(system, {"data.bin": drive}).expect(row).expected.value is not None


@pytest.mark.parametrize(
    ("drive", "missing"),
    [("ssd0", "no figure for the rate of the drive"), ("ssd1", "the speed of link cpu0--ssd1 is not known"),
     ("ssd2", "nothing is known that would limit")],
)  # fmt: skip
def test_a_drive_of_unknown_part_or_link_is_not_called_slow(drive: str, missing: str):
    system = read_system(
        """
lanewise: 1
system: unknown-drives
devices: {cpu0: {cpu: sapphire-rapids}, ssd0: {ssd: null}, ssd1: {ssd: samsung-990-pro}, ssd2: {ssd: null}}
links:
  - {from: cpu0, to: ssd0, pcie: gen4 x4}
  - {from: cpu0, to: "ssd[1-2]", pcie: gen? x?}
""",
        "unknown-drives.yaml",
    )
    row = observation("read", f"{drive}->host0", "goodput", 1.9, "GB/s", Source.MEASURED, path="storage")
    (result,) = (found := checked(system, [row])).results
    assert result.verdict is Verdict.UNKNOWN
    assert missing in result.note
    assert "description" in found.findings[0].step or "describe" in found.findings[0].step
    if drive != "ssd2":
        verdicts = [checked(system, [replace(row, value=rate * 1e9)]).results[0].verdict for rate in (0.3, 7, 9)]
        assert verdicts == [Verdict.SLOW, Verdict.OK, Verdict.FAST]
