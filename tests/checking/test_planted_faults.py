"""Planted faults are found and explained, none is seen where there is none, and siblings raise no alarm.

The machine is a captured /sys of two sockets with two A100 on a switch each; what a tool would measure on it is what
the model predicts on the machine as it really is, 1 % beside.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from checking import made_machines as made
from checking.made_machines import EVERY_COPY, HOST_COPIES, Plan
from discovery.made_captures import FAULTS, write_capture

from lanewise import api
from lanewise.checking import changes
from lanewise.checking.causes.machine import MachineState
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.findings import Finding
from lanewise.checking.verdict import Verdict
from lanewise.probes.gpu.flows import buffer_node
from lanewise.results.conditions import LinkState, MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.run import Run
from lanewise.topology.model import System


@pytest.fixture
def healthy(tmp_path: Path) -> System:
    """The machine as it should be."""
    return api.discover([made.write_sys(tmp_path / "healthy")]).system


def judged(machine: MachineState, rows: list[Observation]) -> Checkup:
    return check(rows, machine)


def from_files(tmp_path: Path, plan: Plan, rows: list[Observation]) -> Checkup:
    """The check of a capture with that plan and of a run file with those rows."""
    files: list[str | Path] = [made.write_sys(tmp_path / "machine", plan)]
    if rows:
        api.save_run(Run((), "", "", rows=tuple(rows)), tmp_path / "run.json")
        files.append(tmp_path / "run.json")
    return api.check(files)


def slow_flows(found: Checkup) -> set[str]:
    return {each.row.flow for each in found.results if each.verdict is Verdict.SLOW}


def only(found: Checkup) -> Finding:
    assert len(found.findings) == 1, [finding.title for finding in found.findings]
    return found.findings[0]


def test_a_healthy_machine_gives_no_finding(tmp_path: Path, healthy: System):
    found = from_files(tmp_path, Plan(), made.rows(healthy, EVERY_COPY))
    assert (found.findings, found.exit_code, len(found.results)) == ((), 0, 20)


def test_a_link_at_x8_is_found_in_the_capture_alone(tmp_path: Path):
    found = from_files(tmp_path, Plan(lanes={"gpu1": 8}), [])
    finding = only(found)
    assert finding.kind == "fault"
    assert found.exit_code == 1
    assert finding.title == "gpu1's link runs at Gen4 x8 below 0000:02:01.0 (both ends support Gen4 x16)"
    assert "0000:02:01.0" in finding.step


def test_a_link_at_x8_explains_every_slow_copy_of_its_gpu_and_no_other_is_slow(tmp_path: Path, healthy: System):
    really = changes.link_speed("gpu1", 4, 8).change_system(healthy)
    found = from_files(tmp_path, Plan(lanes={"gpu1": 8}), made.rows(really, EVERY_COPY))
    finding = only(found)
    assert finding.kind == "slow"
    assert "gpu1's link runs at Gen4 x8" in finding.title
    assert finding.causes[0].explains
    assert finding.causes[0].evidence
    touched = {flow for flow in EVERY_COPY if "gpu1" in flow}
    assert slow_flows(found) <= touched
    assert {"host0->gpu1", "gpu1->host0", "gpu0->gpu1"} <= slow_flows(found)


def test_a_link_at_2_5_gt_s_under_load_is_read_from_the_row_and_explains_it(tmp_path: Path, healthy: System):
    really = changes.link_speed("gpu2", 1, 16).change_system(healthy)
    rows = [
        replace(row, how={**row.how, "link under load": "gpu2 Gen1 x16" if "gpu2" in row.flow else "Gen4 x16"})
        for row in made.rows(really, HOST_COPIES)
    ]
    finding = only(found := from_files(tmp_path, Plan(gens={"gpu2": 1}), rows))
    assert "gpu2's link runs at Gen1 x16" in finding.title
    assert finding.causes[0].explains
    assert slow_flows(found) == {"host0->gpu2", "gpu2->host0"}


def test_a_capture_under_load_shows_2_5_gt_s_as_a_fault_and_an_idle_one_does_not():
    def machine(busy: bool | None) -> MachineState:
        link = LinkState("gpu0", "0000:00:01.0", 4, 16, 1, 16, busy, "capture", "cpu0", 4, 16, 4, 16)
        return MachineState(None, MachineConditions(links=(link,), under_load=busy))

    def findings(busy: bool | None) -> tuple[Finding, ...]:
        return check([], machine(busy)).findings

    assert [each.title for each in findings(True)] == [
        "gpu0's link runs at Gen1 x16 below 0000:00:01.0 (both ends support Gen4 x16)"
    ]
    assert findings(False) == findings(None) == ()


def test_a_narrow_link_whose_port_is_unknown_may_be_the_slot_and_is_no_fault():
    link = LinkState("gpu0", "", 4, 16, 4, 8, None, "lspci.txt:7 LnkSta", device_gen=4, device_lanes=16)
    machine = MachineState(None, MachineConditions(links=(link,)))
    assert check([], machine).findings == ()


def test_an_idle_link_at_2_5_gt_s_is_no_fault_beside_good_copies(tmp_path: Path, healthy: System):
    found = from_files(tmp_path, Plan(gens={"gpu2": 1}), made.rows(healthy, HOST_COPIES))
    assert (found.findings, found.exit_code) == ((), 0)


def test_an_idle_capture_at_2_5_gt_s_is_blamed_when_the_copies_fit_it(tmp_path: Path, healthy: System):
    really = changes.link_speed("gpu2", 1, 16).change_system(healthy)
    finding = only(from_files(tmp_path, Plan(gens={"gpu2": 1}), made.rows(really, HOST_COPIES)))
    assert "gpu2's link runs at Gen1 x16" in finding.title
    assert finding.causes[0].evidence


def test_acs_below_one_switch_is_a_fault_of_the_capture_alone(tmp_path: Path):
    finding = only(from_files(tmp_path, Plan(acs=(1,)), []))
    assert finding.title == "ACS at sw1 sends traffic between gpu2 and gpu3 up to the root port and back"
    assert "setpci -s 0000:82:00.0" in finding.step


def test_acs_is_told_beside_copies_that_do_not_feel_it(tmp_path: Path, healthy: System):
    found = from_files(tmp_path, Plan(acs=(1,)), made.rows(healthy, HOST_COPIES))
    assert only(found).title.startswith("ACS at sw1")
    assert slow_flows(found) == set()
    assert found.exit_code == 1


def test_acs_that_slows_peers_explains_them_and_spares_host_copies():
    # The chassis is faster than its host, so peers feel the way over the root port.
    system = api.load_system("falcon-4010-xeon")
    really = changes.acs_redirection(frozenset({"chassis"})).change_system(system)
    flows = [f"gpu{a}->gpu{b}" for a in range(4) for b in range(4) if a != b]
    rows = [*made.rows(really, flows), *made.rows(really, HOST_COPIES)]
    finding = only(found := check(rows, MachineState(really), system))
    assert finding.title.startswith("ACS at chassis")
    assert finding.causes[0].explains
    assert slow_flows(found) == set(flows)


def test_a_switch_that_all_slow_rows_cross_is_named(healthy: System):
    rows = made.rows(healthy, HOST_COPIES)
    rows = [replace(row, value=0.4 * (row.value or 0.0)) if re.search("gpu[23]", row.flow) else row for row in rows]
    findings = judged(MachineState(healthy), rows).findings
    assert any(cause.key == ("common", "sw1") for finding in findings for cause in finding.causes)


def test_a_wrong_numa_node_in_the_capture_is_a_fault(tmp_path: Path):
    finding = only(found := from_files(tmp_path, Plan(nodes={"gpu3": 0}), []))
    assert finding.title == "gpu3 states NUMA node 0, the root port above it belongs to node 1"
    assert found.exit_code == 1
    assert "numactl" in finding.step


def test_a_buffer_on_the_wrong_numa_node_explains_slow_copies():
    system = api.load_system("cirrascale-typical")
    rows = made.rows(system, ["host0->gpu0", "host0->gpu1"])
    far = replace(rows[0], value=made.rows(system, ["host0:1->gpu0"])[0].value)
    far = replace(far, how={**far.how, "NUMA node": "1"})
    found = check([far, rows[1]], target=system)
    assert found.results[0].verdict is Verdict.SLOW, "the socket link is slower than a copy"
    assert found.findings[0].title == "the host buffer lay on NUMA node 1, gpu0 hangs at node 0"
    assert found.findings[0].causes[0].explains


@pytest.mark.parametrize(
    ("flow", "title"),
    [
        ("host0->gpu0", "the host buffer lay on NUMA node 1, gpu0 hangs at node 0"),
        ("host0:0->gpu0", "the host buffer lay on NUMA node 1, not on 0 as asked"),
    ],
)
def test_a_host_buffer_that_is_not_where_the_probe_asked_for_it_explains_slow_copies(flow: str, title: str):
    """In the probe's own words: with a NUMA node asked for, it records both."""
    system = api.load_system("cirrascale-typical")
    rows = made.rows(system, [flow, "host0->gpu1"])
    far = replace(rows[0], value=made.rows(system, ["host0:1->gpu0"])[0].value)
    text, _ = buffer_node({1: 64}, 0)
    found = check([replace(far, how={**far.how, "NUMA node": text}), rows[1]], target=system)
    assert found.results[0].verdict is Verdict.SLOW
    assert found.findings[0].title == title
    assert found.findings[0].causes[0].explains
    assert "--flows 'host0:0->gpu0'" in found.findings[0].step


def test_a_host_buffer_on_two_nodes_is_seen_though_the_model_cannot_say_what_that_costs():
    system = api.load_system("cirrascale-typical")
    rows = made.rows(system, ["host0->gpu0", "host0->gpu1"])
    text, _ = buffer_node({0: 48, 1: 16}, 0)
    split = replace(rows[0], value=0.8 * (rows[0].value or 0), how={**rows[0].how, "NUMA node": text})
    causes = check([split, rows[1]], target=system).findings[0].causes
    titles = {cause.what: cause.predicted for cause in causes}
    assert titles["the host buffer lay on NUMA node 0 (75 %), 1 (25 %), gpu0 hangs at node 0"] is None


def test_where_the_kernel_does_not_say_where_a_buffer_lay_it_is_supposed_to_be_far():
    system = api.load_system("cirrascale-typical")
    rows = made.rows(system, ["host0->gpu0", "host0->gpu1"])
    far = replace(rows[0], value=made.rows(system, ["host0:1->gpu0"])[0].value)
    text, _ = buffer_node({-1: 64}, 0)
    found = check([replace(far, how={**far.how, "NUMA node": text}), rows[1]], target=system)
    causes = [cause.what for cause in found.findings[0].causes]
    assert "the host buffer lay on NUMA node 1, away from the device" in causes


def test_a_missing_peer_is_found_and_explains_its_copies(tmp_path: Path, healthy: System):
    apart = frozenset({frozenset({"gpu2", "gpu3"})})
    (tmp_path / "p2p.txt").write_text(made.p2p_text(healthy, apart))
    found = api.check([made.write_sys(tmp_path / "machine"), tmp_path / "p2p.txt"])
    finding = only(found)
    assert finding.title == "gpu2 and gpu3 are no peers, by the driver: not supported"
    assert slow_flows(found) == {"gpu2->gpu3", "gpu3->gpu2"}
    assert finding.causes[0].explains
    assert found.exit_code == 1


def test_a_missing_gpu_is_found_against_the_description(tmp_path: Path, healthy: System):
    found = api.check([made.write_sys(tmp_path / "machine", Plan(missing=("gpu3",)))], healthy)
    assert only(found).title == "1 GPU missing: machine has 4, found 3"
    assert found.exit_code == 1


def test_a_narrow_slot_is_found_against_the_description(tmp_path: Path, healthy: System):
    narrow = changes.link_speed("gpu0", 4, 8).change_system(healthy)
    machine = MachineState(system=narrow)
    rows = made.rows(narrow, HOST_COPIES)
    finding = only(check(rows, machine, healthy))
    assert "gpu0 can be no more than Gen4 x8" in finding.title
    assert finding.causes[0].explains


@pytest.mark.parametrize(("gen", "lanes"), [(3, 16), (2, 16), (4, 4), (4, 2)])
def test_a_slower_link_that_nobody_saw_is_supposed_where_the_model_fits_it(healthy: System, gen: int, lanes: int):
    really = changes.link_speed("gpu3", gen, lanes).change_system(healthy)
    finding = only(found := judged(MachineState(healthy), made.rows(really, HOST_COPIES)))
    assert slow_flows(found) == {"host0->gpu3", "gpu3->host0"}
    assert finding.causes[0].key == ("link", "gpu3")
    assert not finding.causes[0].evidence


def test_a_supposed_fault_of_all_is_not_blamed_where_a_fine_row_speaks_against_it(healthy: System):
    rows = made.rows(healthy, [flow for flow in HOST_COPIES if flow != "host0->gpu0"])
    half = made.rows(healthy, ["host0->gpu0"])[0]
    rows.append(replace(half, value=(half.value or 0.0) / 2))
    finding = next(each for each in judged(MachineState(healthy), rows).findings if each.kind == "slow")
    # gpu0->host0 runs at full rate, so its link cannot be the cause; that it is alone among its siblings is seen.
    assert finding.causes[0].key == ("alone", "gpu0")


CAPTURES = {
    "narrow": ("link", "gpu1's link runs at Gen4 x8"),
    "slow": ("link", "gpu2's link runs at Gen1 x16"),
    "acs": ("acs", "ACS at sw0 sends traffic between gpu0 and gpu1"),
    "numa": ("numa", "gpu3 states NUMA node 0, the root port above it belongs to node 1"),
    "no-peer": ("peers", "gpu0 and gpu1 are no peers, by the driver: not supported"),
}


def test_every_fault_that_captures_are_made_with_is_looked_for_here():
    assert set(CAPTURES) == set(FAULTS) - {"healthy"}


@pytest.mark.parametrize("fault", CAPTURES)
def test_the_fault_of_a_capture_is_the_only_finding(tmp_path: Path, fault: str):
    found = api.check([write_capture(tmp_path / "machine.tar.gz", fault)])
    finding = only(found)
    key, title = CAPTURES[fault]
    assert (finding.kind, finding.causes[0].key[0]) == ("fault", key)
    assert finding.title.startswith(title)
    assert finding.causes[0].evidence
    assert found.exit_code == 1


def test_a_healthy_capture_has_nothing_wrong_and_nothing_measured(tmp_path: Path):
    found = api.check([write_capture(tmp_path / "machine.tar.gz")])
    assert (found.findings, found.exit_code) == ((), 3)
