"""Surveys of simulated fleets with planted faults: what is found, who is accused, time and memory.

    python benchmarks/fleet_survey.py [--nodes 1000] [--faults 20] [--seeds 5] [--workers 2]

The survey, the judging and the node's own check are those of `lanewise fleet check`; a node's probe is replaced by the
model with noise (lanewise.fleet.simulation), and worker processes answer for hundreds of nodes at a time. A fault
counts as found where the decisive cause, and the GPU it is about, are the planted ones.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping

import kept

import lanewise
from lanewise.engines.choice import open_engine
from lanewise.engines.work import WorkBatch, WorkEngine, stream
from lanewise.fleet.fleet_check import FleetCheck
from lanewise.fleet.node import NodeReport
from lanewise.fleet.schedule import most_seconds, survey_phases
from lanewise.fleet.simulation import SimulatedFleet, answers, planted_fleet, undetected
from lanewise.fleet.survey import NodeJob, Survey, SurveyRequest

_AT_ONCE = 100  # nodes in a batch, so that two workers end a step of 1,000 nodes together
Batch = tuple[str, int, int, int, dict[str, NodeJob]]


def answer_batch(batch: Batch) -> list[NodeReport]:
    """In a worker: what these nodes of the fleet answer."""
    system, nodes, faults, seed, jobs = batch
    return answers(_fleet(system, nodes, faults, seed), jobs)


_FLEETS: dict[tuple[str, int, int, int], SimulatedFleet] = {}


def _fleet(system: str, nodes: int, faults: int, seed: int) -> SimulatedFleet:
    key = (system, nodes, faults, seed)
    if key not in _FLEETS:
        _FLEETS.clear()
        _FLEETS[key] = planted_fleet(lanewise.load_system(system), nodes, faults, seed)
    return _FLEETS[key]


class WorkerConnections:
    """The nodes of a simulated fleet, answered for by the workers of an engine."""

    def __init__(self, engine: WorkEngine, system: str, nodes: int, faults: int, seed: int) -> None:
        self._engine, self._key = engine, (system, nodes, faults, seed)
        self.fleet = _fleet(*self._key)

    @property
    def addresses(self) -> Mapping[str, str]:
        """Each node by its name."""
        return {name: name for name in self.fleet.names}

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """The answers, batch by batch."""
        names = list(jobs)
        parts = [names[i : i + _AT_ONCE] for i in range(0, len(names), _AT_ONCE)]
        batches = [
            WorkBatch(number, answer_batch, ((*self._key, {name: jobs[name] for name in part}),))
            for number, part in enumerate(parts)
        ]
        for result in stream(self._engine, batches):
            for reports in result.values:
                yield from reports


def survey(engine: WorkEngine, system: str, nodes: int, faults: int, seed: int) -> tuple[kept.Record, FleetCheck]:
    """One survey: its record and its result."""
    connections = WorkerConnections(engine, system, nodes, faults, seed)
    start = time.perf_counter()
    state = Survey(connections, SurveyRequest(drive="/drive", shared="/shared", seed=seed))
    steps = sum(1 for _ in state.run())
    measured = time.perf_counter() - start
    verdicts = state.verdicts()
    judged = time.perf_counter() - start - measured
    fleet = connections.fleet
    named = {node.name: node.cause.cause for node in verdicts.nodes if node.cause}
    about = {node.name: node.cause.about for node in verdicts.nodes if node.cause}
    missed, accused = undetected(fleet, named)
    missed += [f"{name}: {fault.kind} of {fault.about}, named {about.get(name)}" for name, fault in fleet.faults.items()
               if named.get(name) == fault.kind and fault.about not in ("", about.get(name))]  # fmt: skip
    record = {
        "seed": seed, "planted": len(fleet.faults), "found": len(fleet.faults) - len(missed), "missed": missed,
        "accused": accused, "rounds": state.rounds, "steps": steps, "tests": len(state.tests), "survey_s": measured,
        "judging_s": judged, "driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "rows": sum(len(report.rows) for report in state.reports.values()), "notes": verdicts.notes,
    }  # fmt: skip
    check = FleetCheck(verdicts, state.reports_with_network(), tuple(state.phases), state.rounds, measured)
    return record, check


def page(record: kept.Record) -> str:
    """A row a seed."""
    lines = ["| seed | planted | found with the right cause | healthy nodes accused | rounds | pair tests | survey | "
             "judging | driver, most |", "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    lines += [
        f"| {run['seed']} | {run['planted']} | {run['found']} | {len(run['accused'])} | {run['rounds']} | "
        f"{run['tests']:,} | {run['survey_s']:.1f} s | {run['judging_s']:.1f} s | {run['driver_mb']:.0f} MB |"
        for run in record["runs"]
    ]
    details = [f"* seed {run['seed']}: {text}" for run in record["runs"] for text in (*run["missed"], *run["accused"])]
    bound = record["bound_s"] / 60
    about = (
        f"{record['nodes']} nodes of {record['system']} with {record['faults']} faults of 8 kinds, each of which "
        f"leaves 40 to 80 % of a rate; {record['workers']} workers. On real nodes it would take at most {bound:.0f} "
        "min; simulated nodes answer at once, so the time is that of the model, the checks and the driver."
    )
    return "\n".join([*kept.heading("Surveys of simulated fleets", record), about, "", *lines, "", *details, ""])


def main() -> None:
    """Runs the seeds, and keeps the outcomes."""
    parser = kept.options(__doc__, "fleet-survey")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--system", default="dgx-a100")
    parser.add_argument("--page", help="the page of the first survey (.html)")
    words = parser.parse_args()
    record = kept.begin(words)
    record |= {name: getattr(words, name) for name in ("nodes", "faults", "workers", "system")}
    record["bound_s"], record["runs"] = most_seconds(survey_phases(words.nodes, drive=True, shared=True)), []
    with open_engine(f"local:{words.workers}") as engine:
        for seed in range(1, words.seeds + 1):
            run, check = survey(engine, words.system, words.nodes, words.faults, seed)
            record["runs"].append(run)
            if words.page and seed == 1:
                with open(words.page, "w", encoding="utf-8") as file:
                    file.write(lanewise.fleet_page(check))
            kept.keep(record, None, words.out)
    kept.keep(record, page, words.out)


if __name__ == "__main__":
    main()
