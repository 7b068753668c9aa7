"""The rows of studies predicted on an engine; rows of one service on one system are one scenario, simulated once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lanewise.api.loading import relative_ref
from lanewise.api.scenarios import Scenario, ScenarioProgress, run_scenarios, scenario_key
from lanewise.api.system_source import SystemSource, system_source
from lanewise.errors import LanewiseError, error_location
from lanewise.results.observation import Observation
from lanewise.results.plan import Copies, Plan, Service
from lanewise.results.traffic import MachineTraffic

if TYPE_CHECKING:
    from lanewise.engines.work import WorkEngine
    from lanewise.options.workers import WorkerOptions
    from lanewise.studies.context import StudyContext
    from lanewise.studies.form import RowForm
    from lanewise.studies.runner import RowPredictor

# What predicts the rows of a study, which is named; None: the study itself does.
RowsOf: TypeAlias = "Callable[[str | Path], RowPredictor | None]"
Progress: TypeAlias = Callable[[ScenarioProgress], None]


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """What is predicted of one scenario on one system: a metric and a unit for each row."""

    source: SystemSource
    settings: dict[str, int]
    scenario: Copies | Service
    names: tuple[tuple[str, str, str], ...]  # of the scenario in its row, the metric, the unit


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """The rows of a question, in the order of its names."""

    rows: tuple[Observation, ...]


def answer_question(question: StudyQuestion) -> StudyAnswer:
    """What the model predicts; called in workers."""
    from lanewise.probes.model import ModelProbe

    probe, system = ModelProbe(), question.source.system(question.settings)
    plans = [Plan(system, replace(question.scenario, name=name), *rest) for name, *rest in question.names]
    return StudyAnswer(tuple(next(probe.run(plan)) for plan in plans))


@contextmanager
def open_study_rows(workers: WorkerOptions | None, progress: Progress) -> Iterator[RowsOf]:
    """A function that gives what predicts the rows of a study on these workers; None where none are named."""
    if workers is None or (workers.on is None and workers.results is None):
        yield lambda ref: None
        return
    from lanewise.engines.choice import open_engine

    folder = workers.results
    with open_engine(workers.on) as engine:

        def rows_of(ref: str | Path) -> RowPredictor:
            own = folder / Path(ref).stem if folder is not None else None
            return lambda context: _predict(context, ref, engine, own, progress)

        yield rows_of


def _predict(
    context: StudyContext, ref: str | Path, engine: WorkEngine, folder: Path | None, progress: Progress
) -> list[Observation]:
    """Every row of the study that is not derived."""
    rows = [row for row in context.form.rows if not row.derive]
    groups: dict[Any, list[int]] = {}
    answers: dict[int, Observation] = {}
    for place, row in enumerate(rows):
        if isinstance(row.scenario, MachineTraffic):  # closed forms of a millisecond, which no worker is worth
            answers[place] = next(context.probe.run(context.plan(row)))
            continue
        key = (row.system, tuple(sorted(row.settings.items())), replace(row.scenario, name=""))
        groups.setdefault(key, []).append(place)
    sources = {name: system_source(relative_ref(ref, system.system), context.catalog)
               for name, system in context.form.systems.items() if system.machine is None}  # fmt: skip
    places = list(groups.values())
    scenarios = [_scenario(context, sources, [rows[place] for place in group]) for group in places]
    with _open_store(folder) as store:
        for number, answer in run_scenarios(scenarios, answer_question, engine, store, progress):
            with error_location(rows[places[number][0]].location):
                if isinstance(answer, LanewiseError):
                    raise answer
            answers.update(zip(places[number], answer.rows, strict=True))
    return [answers[place] for place in range(len(rows))]


def _scenario(context: StudyContext, sources: dict[str, SystemSource], rows: Sequence[RowForm]) -> Scenario:
    row = rows[0]
    assert not isinstance(row.scenario, MachineTraffic)
    settings = {**context.form.systems[row.system].settings, **row.settings}
    scenario = replace(row.scenario, name="")
    names = tuple((each.scenario.name, each.metric, each.unit) for each in rows)
    source = sources[row.system]
    key = scenario_key(source.content(), settings, repr(scenario), names)
    return Scenario(StudyQuestion(source, settings, scenario, names), key)


def _open_store(folder: Path | None) -> Any:
    if folder is None:
        return nullcontext()
    from lanewise.api.scenario_store import OBSERVATION_COLUMNS, ScenarioStore, row_columns

    def rows(answer: StudyAnswer) -> list[dict[str, Any]]:
        return [{"settings": _text(row), **row_columns(row)} for row in answer.rows]

    return ScenarioStore(folder, StudyAnswer, {"settings": "string", **OBSERVATION_COLUMNS}, rows)


def _text(row: Observation) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.settings.items())
