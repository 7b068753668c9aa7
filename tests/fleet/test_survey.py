"""A survey over simulated nodes: phases in their order, faults named, lost nodes, a second look, the stated bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import lanewise
from lanewise.fleet.node import ALONE, NodeReport, NodeState
from lanewise.fleet.rounds import MOST_ALL_PAIRS
from lanewise.fleet.schedule import most_seconds, survey_phases
from lanewise.fleet.simulation import KINDS, PlantedFault, SimulatedFleet, planted_fleet, undetected
from lanewise.fleet.survey import NodeJob, Survey, SurveyRequest
from lanewise.topology.model import System

REQUEST = SurveyRequest(drive="/drive", shared="/shared")


class SimulatedConnections:
    """The nodes of a simulated fleet in this process; `steps` are the phases that were called for."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self.fleet = fleet
        self.steps: list[tuple[str, list[str], float]] = []

    @property
    def addresses(self) -> Mapping[str, str]:
        """Each node by its name."""
        return {name: name for name in self.fleet.names}

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """The answers one by one."""
        self.steps.append((next(iter(jobs.values())).do, list(jobs), limit))
        for name, job in jobs.items():
            yield self.fleet.answer(name, job)


@cache
def system() -> System:
    """The servers of the fleet."""
    return lanewise.load_system("h200-pair")


def test_planted_faults_of_all_kinds_are_named_and_no_healthy_node_is_accused() -> None:
    fleet = planted_fleet(system(), 40, 8, seed=3)
    assert {fault.kind for fault in fleet.faults.values()} == set(KINDS)
    connections = SimulatedConnections(fleet)
    survey = Survey(connections, REQUEST)
    lines = list(survey.run())
    verdicts = survey.verdicts()
    named = {verdict.name: verdict.cause.cause for verdict in verdicts.nodes if verdict.cause}
    assert undetected(fleet, named) == ([], [])
    assert verdicts.nodes[0].state is NodeState.LOST
    assert lines[0] == "facts: 39 of 40 nodes answered"
    bound = most_seconds(survey_phases(40, drive=True, shared=True))
    assert sum(limit for *_, limit in connections.steps) <= bound


def test_undetected_names_what_was_missed_and_who_was_accused() -> None:
    fleet = SimulatedFleet(system(), 3, faults={"node0000": PlantedFault("drive")})
    missed, accused = undetected(fleet, {"node0002": "memory"})
    assert missed == ["node0000: drive, named none"]
    assert accused == ["node0002: memory"]


def test_every_pair_is_measured_once_up_to_32_nodes() -> None:
    fleet = SimulatedFleet(system(), 5)
    connections = SimulatedConnections(fleet)
    survey = Survey(connections, SurveyRequest())
    list(survey.run())
    assert survey.rounds == 5
    assert len(survey.tests) == 5 * 4
    assert survey.bisection is None
    assert MOST_ALL_PAIRS >= 5


class DisturbedTests(SimulatedConnections):
    """The first `count` network tests between node0000 and node0001 are at half the rate."""

    def __init__(self, fleet: SimulatedFleet, count: int) -> None:
        super().__init__(fleet)
        self.count = count

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """As simulated, but for these."""
        for answer in super().do(jobs, limit):
            ends = {answer.name, jobs[answer.name].values.get("address", "").partition(":")[0]}
            if jobs[answer.name].do == "network" and ends == {"node0000", "node0001"} and self.count:
                self.count -= 1
                rows = [replace(row, value=(row.value or 0) / 2) for row in answer.rows]
                yield replace(answer, rows=tuple(rows))
            else:
                yield answer


def test_a_slow_pair_is_measured_again_and_is_a_slow_path_if_it_stays_slow() -> None:
    for disturbed, slow in ((1, 0), (2, 2)):
        survey = Survey(DisturbedTests(SimulatedFleet(system(), 6), disturbed), SurveyRequest())
        lines = list(survey.run())
        assert lines[-1] == "again, network round 6: 1 of 1 pairs measured"
        verdicts = survey.verdicts()
        assert len(verdicts.slow_paths) == slow
        assert verdicts.notes == ()
        assert verdicts.exit_code == 0  # it accuses no node


class Flaky(SimulatedConnections):
    """The first time it is asked, node0001 is disturbed while it copies; node0002 leaves in the network phase."""

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """As simulated, but for these two."""
        for answer in super().do(jobs, limit):
            job = jobs[answer.name]
            if answer.name == "node0001" and job.do == ALONE and "attempt" not in job.values:
                slower = SimulatedFleet(system(), 3, faults={"node0001": PlantedFault("memory", 0.5)})
                yield slower.answer(answer.name, job)
            elif answer.name == "node0002" and job.do == "network":
                yield NodeReport(answer.name, failure="its connection ended")
            else:
                yield answer


def test_a_disturbance_is_gone_in_a_second_look_and_a_lost_node_costs_only_itself() -> None:
    connections = Flaky(SimulatedFleet(system(), 6))
    survey = Survey(connections, REQUEST)
    lines = list(survey.run())
    assert "again, alone: 1 of 1 nodes answered" in lines
    states = {verdict.name: verdict.state for verdict in survey.verdicts().nodes}
    assert states.pop("node0002") is NodeState.LOST
    assert set(states.values()) == {NodeState.OK}
    assert "lost in phase network: its connection ended" in survey.reports["node0002"].failure


def test_what_a_node_did_before_has_it_measured_a_second_time_too() -> None:
    fleet = SimulatedFleet(system(), 2)
    first = Survey(SimulatedConnections(fleet), SurveyRequest(network=False))
    list(first.run())
    past = {"node0001": [(str(day), first.reports["node0001"].rows) for day in range(3)]}
    slower = SimulatedFleet(system(), 2, faults={"node0001": PlantedFault("memory", 0.6)})
    for now, cause in ((fleet, None), (slower, "memory")):
        connections = SimulatedConnections(now)
        survey = Survey(connections, SurveyRequest(network=False), past)
        list(survey.run())
        verdict = next(node for node in survey.verdicts().nodes if node.name == "node0001")
        assert (verdict.cause and verdict.cause.cause) == cause
        assert [names for do, names, _ in connections.steps if do == ALONE][1:] == ([["node0001"]] if cause else [])


def test_an_interrupted_survey_can_be_judged() -> None:
    survey = Survey(SimulatedConnections(planted_fleet(system(), 8, 8, seed=1)), REQUEST)
    steps = survey.run()
    next(steps), next(steps)  # facts, alone
    causes = {verdict.cause.cause for verdict in survey.verdicts().nodes if verdict.cause}
    assert {"lost", "gpus", "link", "memory"} <= causes
    assert survey.phases == ["facts", "alone"]


def test_the_bound_is_the_sum_of_steps_and_limits() -> None:
    phases = survey_phases(4, drive=True, shared=True)
    assert [(phase.name, phase.steps) for phase in phases] == [
        ("facts", 1), ("alone", 2), ("together", 2), ("network", 6), ("drive", 2), ("shared alone", 4),
        ("shared together", 2),
    ]  # fmt: skip
    assert most_seconds(phases) == sum(phase.steps * phase.limit for phase in phases)
    assert most_seconds(survey_phases(4, drive=True, shared=True, patience=2)) == 2 * most_seconds(phases)
    assert [phase.name for phase in survey_phases(1)] == ["facts", "alone", "together"]
