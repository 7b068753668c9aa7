"""`lanewise fleet`: the plan, options that do not fit, the answer in each of its forms; agents through pipes."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from fleet.test_survey import SimulatedConnections

import lanewise
from lanewise.api import fleet, fleet_agent
from lanewise.api.provenance import command, version
from lanewise.cli.verbs import run
from lanewise.errors import InputError
from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.judgement import FleetVerdicts
from lanewise.fleet.node import NodeReport, NodeState, NodeVerdict
from lanewise.fleet.processes import ProcessConnections, node_command
from lanewise.fleet.simulation import planted_fleet
from lanewise.fleet.survey import NodeJob, Survey, SurveyRequest
from lanewise.report.text.fleet import render_fleet
from lanewise.results.sample import Sample


@pytest.fixture(scope="module")
def result() -> FleetCheck:
    """A survey of 62 simulated nodes with eight faults."""
    fleet = planted_fleet(lanewise.load_system("h200-pair"), 62, 8, seed=2)
    survey = Survey(SimulatedConnections(fleet), SurveyRequest(drive="/drive"))
    list(survey.run())
    return FleetCheck(survey.verdicts(), survey.reports_with_network(), tuple(survey.phases), survey.rounds, 61.5)


def test_the_plan_states_phases_and_the_bound_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "check", "--hosts", "a,b,c,d,e", "--plan"]) == 0
    out = capsys.readouterr().out
    assert "5 nodes: a, b, c, d, e" in out
    assert next(line for line in out.splitlines() if line.startswith("network")).split()[:5] == [
        "network", "8", "30", "s", "4"]  # fmt: skip
    assert "one step to listen, 5 rounds of pairs both ways" in " ".join(out.split())
    assert "2 more of slow pairs" in " ".join(out.split())
    assert run(["fleet", "check", "--hosts", "a,b", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["most_seconds"] == 90 + 2 * 180 + 2 * 120 + 2 * 30
    assert run(["fleet", "check", "--on", "ray:2", "--plan"]) == 0  # no Ray is started for it
    assert "2 nodes: ray0, ray1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "no nodes are named"),
        (["--on", "local:2", "--hosts", "a"], "--on and --hosts name the nodes twice"),
        (["--hosts", "a,a"], "a is named twice"),
        (["--hosts=-oProxyCommand=x"], "'-oProxyCommand=x' is no name of a host"),
        (["--hosts", "a", "--via", "ssh"], "--via: 'ssh' has no {host}"),
        (["--srun"], "SLURM_JOB_NODELIST is not set"),
        (["--on", "cloud"], "'cloud' is no engine"),
        (["--hosts", "a", "--system", "nosuch"], "nosuch"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "check", *words]) == 2
    error = capsys.readouterr().err
    assert "error: " in error
    assert cause in error
    assert "hint:  " in error


def test_json_has_every_node_with_its_cause(result: FleetCheck) -> None:
    data = lanewise.fleet_data(result)
    json.dumps(data, allow_nan=False)
    assert data["exit_code"] == 1
    assert data["counts"] == {"lost": 1, "fault": 1, "slow": 6, "unknown": 0, "busy": 0, "ok": 54}
    first = data["nodes"][0]
    assert (first["state"], first["findings"][0]["cause"]) == ("lost", "lost")
    assert data["nodes"][-1]["findings"] == []
    assert set(data["nodes"][-1]["shares"]) == {"alone", "together", "network", "drive"}


def test_junit_fails_a_case_for_each_node_with_a_finding(result: FleetCheck) -> None:
    suite = Xml.fromstring(lanewise.fleet_junit(result))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("62", "8", "0")
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {node.name for node in result.verdicts.nodes if node.findings}


def test_metrics_state_each_node_and_the_counts(result: FleetCheck) -> None:
    lines = lanewise.fleet_metrics(result).splitlines()
    lost = result.verdicts.nodes[0].name
    assert f'lanewise_fleet_node_state{{node="{lost}",state="lost"}} 1.0' in lines
    assert 'lanewise_fleet_nodes{state="ok"} 54' in lines
    assert "lanewise_fleet_exit_code 1" in lines


def test_the_page_has_a_tile_a_node_and_the_worst_first(result: FleetCheck) -> None:
    page = lanewise.fleet_page(result)
    assert page.count('title="node') == 62
    assert page.count('<td class="cell') == 60 * 4
    assert f"lanewise {version()} · " in page
    assert f"<code>{command()}</code>" in page
    assert "62 nodes, 8 of them with findings" in page
    assert '<span class="s4">50 to 64 %</span><span class="s5">below 50 %</span><span class="lost">lost</span>' in page
    assert "siblings differ as much" not in page
    assert page.index(f">{result.verdicts.nodes[0].name}<") < page.index(f">{result.verdicts.nodes[1].name}<")
    assert len(page) < 200_000
    assert "<script" not in page


def test_a_low_value_that_is_no_finding_and_a_slow_path_are_explained() -> None:
    why = "in memory copy host0->host0 its siblings differ as much; slow is below 55 %"
    nodes = (NodeVerdict("a", NodeState.OK, "c", (), {"alone": 0.624, "network": 0.8951}, "", {"alone": why}),
             NodeVerdict("b", NodeState.OK, "c", (), {"alone": 1.0, "network": 1.0}, "no driver"))  # fmt: skip
    verdicts = FleetVerdicts(nodes, {"c": ("a", "b")}, slow_paths=("a to b: 1 GB/s",))
    result = FleetCheck(verdicts, {name: NodeReport(name) for name in "ab"}, ("alone", "network"), 3, 9.0)
    page = lanewise.fleet_page(result)
    assert '<td class="cell tolerated">62 %</td><td class="cell s1">90 %</td>' in page
    assert f'<td class="prose"><p class="small">alone 62 %: {why}</p>'.replace(">h", "&gt;h") in page
    assert "2 nodes, none with a finding. 1 path between nodes that are fine is slow." in page
    assert "<li>a to b: 1 GB/s</li>" in page
    text = render_fleet(result)
    assert f"no finding: a: alone 62 %: {why}" in text
    assert "slow path: a to b: 1 GB/s" in text
    assert lanewise.fleet_data(result)["nodes"][0]["tolerated"] == {"alone": why}


# --- agents -----------------------------------------------------------------------------------------------------------

PYTHON = [sys.executable, "-c"]


def connections(code: str) -> ProcessConnections:
    """One node whose process runs that code."""
    return ProcessConnections({"n": [*PYTHON, code]}, {"n": "n"}, "1")


def answers(code: str, limit: float = 60) -> list[NodeReport]:
    """What it answers to one job."""
    nodes = connections(code)
    try:
        return list(nodes.do({"n": NodeJob("facts")}, limit))
    finally:
        nodes.close()


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("import sys; sys.exit('error: no such host')", "its process ended with exit code 1: error: no such host"),
        ('print(\'{"lanewise": "2"}\', flush=True); input()', "it has Lanewise 2, this is 1: install the same"),
        ("print('Welcome to node n', flush=True); input()", "its answer cannot be read: "),
        ('print(\'{"lanewise": "1"}\\n{"name": 3}\', flush=True); input()', "its answer cannot be read: "),
        ('input(); print(\'{"lanewise": "1"}\', flush=True)', "its process ended with exit code 0"),
    ],
)
def test_a_node_that_does_not_answer_as_it_should_is_lost(code: str, failure: str) -> None:
    (report,) = answers(code)
    assert report.failure.startswith(failure)


def test_a_silent_node_is_given_up_at_the_limit_and_a_missing_program_at_once() -> None:
    (report,) = answers("input(); input()", limit=0.01)
    assert report.failure == "no answer within 0 s"
    nodes = ProcessConnections({"n": ["/nosuch"]}, {"n": "n"}, "1")
    (report,) = nodes.do({"n": NodeJob("facts")}, 60)
    assert "cannot be started: No such file" in report.failure


def test_via_names_the_host_and_the_program() -> None:
    words = node_command("ip netns exec {host}", "n1", "/opt/lanewise -q")
    assert words == ["ip", "netns", "exec", "n1", "/opt/lanewise", "-q", "fleet", "agent", "n1"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements that take no time."""

    def samples(notes: list[str]) -> Iterator[Sample]:
        notes.append("copies of GPUs not measured: no driver")
        yield Sample("copy", "host0->host0", "goodput", 9e9, "GB/s", path="host memory")

    monkeypatch.setattr("lanewise.api.checking.quick_samples", samples)
    monkeypatch.setattr("lanewise.api.check_inputs._discover_this_machine", lambda catalog, notes: None)


def test_an_agent_answers_each_line_with_its_report(quick: None) -> None:
    jobs = [{"do": "facts", "values": {}}, {"do": "alone", "values": {"system": "", "secret": "s"}},
            {"do": "drive", "values": {"path": "/nosuch"}}]  # fmt: skip
    out = io.StringIO()
    fleet_agent.serve_agent("n7", io.StringIO("".join(f"{json.dumps(job)}\n" for job in jobs)), out)
    greeting, facts, alone, drive = map(json.loads, out.getvalue().splitlines())
    assert greeting == {"lanewise": version()}
    assert facts["facts"]["kernel"]
    assert (alone["name"], alone["rows"][0]["value"]) == ("n7", 9e9)
    assert drive["rows"] == []
    assert "drive not measured: " in drive["notes"][0]


def test_a_listener_answers_a_network_test_both_ways_and_ends_with_its_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fleet_agent._PAIR, "seconds", 0.02)
    agent = fleet_agent.NodeAgent("n1")
    values = {"address": "127.0.0.1", "secret": "a-secret-of-a-test", "transport": "tcp"}
    try:
        port = agent.answer(NodeJob("listen", values)).facts["port"]
        report = agent.answer(NodeJob("network", {**values, "address": f"127.0.0.1:{port}"}))
    finally:
        agent.close()
        os.environ.pop("LANEWISE_SECRET", None)
    assert report.notes == ()
    assert {row.flow for row in report.rows} == {"host0->host1", "host1->host0"}


def test_a_busy_node_is_left_alone_unless_told() -> None:
    class Busy(SimulatedConnections):
        """Every GPU works."""

        def do(self, jobs: object, limit: float) -> Iterator[NodeReport]:
            for answer in super().do(jobs, limit):  # type: ignore[arg-type]
                yield NodeReport(answer.name, answer.facts, answer.gpus, answer.rows, busy="gpu0 is busy: 1 process")

    fleet = planted_fleet(lanewise.load_system("h200-pair"), 4, 0, seed=2)
    for busy, state in ((False, NodeState.BUSY), (True, NodeState.OK)):
        survey = Survey(Busy(fleet), SurveyRequest(busy=busy))
        list(survey.run())
        assert {verdict.state for verdict in survey.verdicts().nodes} == {state}
        assert bool(survey.tests) is busy


def test_a_history_is_kept_by_node_and_an_unknown_one_is_told_those_that_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_1 = lanewise.as_measured_run([Sample("copy", "host0->host0", "goodput", 9e9, "GB/s", path="host memory")])
    name = lanewise.add_to_history(run_1, tmp_path, "rack 7/node")
    assert Path(name).parent == tmp_path / "rack_7_node"
    assert re.fullmatch(r"\d{8}T\d{6}Z.json", Path(name).name)
    assert list(lanewise.read_history(tmp_path)) == ["rack_7_node"]
    assert list(lanewise.read_history(tmp_path, "rack 7/node")) == ["rack_7_node"]
    assert lanewise.read_history(tmp_path, "other") == {}
    (past,) = fleet.past_of(["rack 7/node"], lanewise.read_history(tmp_path)).values()
    assert [row.value for _, rows in past for row in rows] == [9e9]
    assert run(["compare", "--history", str(tmp_path), "--machine", "rack7"]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}: holds no runs of rack7\nhint:  it holds rack_7_node; name one of them with --machine\n"
    )


def test_a_history_at_an_fsspec_address_is_read_back() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed (pip install 'lanewise[history]')")
    address = "memory://fleet-history"
    run_1 = lanewise.as_measured_run([Sample("copy", "host0->gpu0", "goodput", 5e10, "GB/s")])
    assert lanewise.add_to_history(run_1, address, "n1").startswith(f"{address}/n1/")
    assert lanewise.drift(address)["n1"][0].values == (5e10,)
    with pytest.raises(InputError, match="cannot be reached"):
        lanewise.read_history("nosuch://x/y")
