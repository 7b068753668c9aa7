"""The rows of measured machines predicted on an engine: one machine is one scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import overriding_parts
from lanewise.api.scenarios import Scenario, ScenarioProgress, run_scenarios, scenario_key
from lanewise.catalog import Catalog, builtin
from lanewise.engines.choice import open_engine
from lanewise.errors import LanewiseError
from lanewise.evidence.prediction import PredictedRow, predict_machine
from lanewise.evidence.reading import read_machine
from lanewise.results.observation import Observation

if TYPE_CHECKING:
    from lanewise.evidence.model import EvidenceMachine
    from lanewise.options.workers import WorkerOptions


@dataclass(frozen=True, slots=True)
class MachineQuestion:
    """An evidence file, and the parts that its rows are predicted on: those of `parts` override built-in ones."""

    text: str
    file: str
    parts: Catalog
    fitted: bool


@dataclass(frozen=True, slots=True)
class MachineAnswer:
    """A machine's rows as predicted, in the order of its file, each with its set of flows and its algorithm."""

    rows: tuple[Observation, ...]
    words: tuple[tuple[str, str], ...]


def answer_machine(question: MachineQuestion) -> MachineAnswer:
    """What the model predicts of a machine; called in workers."""
    machine = read_machine(question.text, question.file)
    catalog = builtin().merge(question.parts) if question.parts.parts else builtin()
    left = catalog if question.fitted else machine.left_out_of(catalog)
    rows = predict_machine(machine, left, question.fitted)
    return MachineAnswer(
        tuple(row.observation for row in rows), tuple((row.flow_set, row.algorithm) for row in rows)
    )  # fmt: skip


def predict_machines(
    machines: Sequence[EvidenceMachine], files: Sequence[tuple[str, str]], catalog: Catalog, fitted: bool,
    workers: WorkerOptions, progress: Callable[[ScenarioProgress], None],
) -> tuple[PredictedRow, ...]:  # fmt: skip
    """Every row of the machines, whose files are `files`, in their order; raises what predict_machine raises."""
    parts = overriding_parts(catalog)
    questions = [MachineQuestion(*file, parts, fitted) for file in files]
    described = [repr(part) for part in parts.parts.values()]
    scenarios = [Scenario(each, scenario_key(each.text, described, fitted)) for each in questions]
    answers: dict[int, MachineAnswer] = {}
    with _open_store(workers.results) as store, open_engine(workers.on) as engine:
        for place, answer in run_scenarios(scenarios, answer_machine, engine, store, progress):
            if isinstance(answer, LanewiseError):
                raise answer
            answers[place] = answer
    return tuple(
        PredictedRow(machine.name, row, observation, *words)
        for place, machine in enumerate(machines)
        for row, observation, words in zip(machine.rows, answers[place].rows, answers[place].words, strict=True)
    )


def _open_store(folder: Path | None) -> AbstractContextManager[Any]:
    if folder is None:
        return nullcontext()
    from lanewise.api.scenario_store import OBSERVATION_COLUMNS, ScenarioStore, row_columns

    columns = {**OBSERVATION_COLUMNS, "published": "double"}

    def rows(answer: MachineAnswer) -> list[dict[str, Any]]:
        return [{**row_columns(row), "published": row.published} for row in answer.rows]

    return ScenarioStore(folder, MachineAnswer, columns, rows)
