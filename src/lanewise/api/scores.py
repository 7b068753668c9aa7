"""How well the performance model predicts measured machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise import package_data
from lanewise.api.arguments import one_or_more
from lanewise.catalog import builtin
from lanewise.errors import InputError, Location, unknown_name
from lanewise.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.api.scenarios import ScenarioProgress
    from lanewise.catalog import Catalog
    from lanewise.evidence.after_measurement import AfterMeasurement
    from lanewise.evidence.model import EvidenceMachine
    from lanewise.evidence.score import AccuracyScore
    from lanewise.evidence.services import PredictedService
    from lanewise.options.workers import WorkerOptions


def accuracy(
    machines: str | Sequence[str] = (),
    folder: str | Path | None = None,
    fitted: bool = False,
    catalog: Catalog | None = None,
    workers: WorkerOptions | None = None,
    progress: Callable[[ScenarioProgress], None] = lambda _: None,
) -> AccuracyScore:
    """The rows of measured machines (all if none is named) as the performance model predicts them, and their scores.

    `folder` has evidence files (or is one) to take in place of those that come with Lanewise. Figures that were measured on a
    machine are left out when that machine is predicted, unless `fitted`. `workers` says on which engine the machines
    are predicted, and which folder keeps those that are finished; `progress` is called as they finish.

    Raises UnknownName for a machine that does not exist, FormatError with file and line for a wrong evidence file, and
    InputError for a folder without any.

    >>> score = lanewise.accuracy(["rtx4090-rome"])
    >>> [row.flow_set for row in score.rows][:2]
    ['one flow', 'one flow']
    """
    from lanewise.evidence.score import AccuracyScore, accuracy_score

    files = machine_files(folder)
    known = {machine.name: machine for machine in load_machines(folder)}
    _check_settings(known)
    names = one_or_more(machines)
    for name in names:
        if name not in known:
            raise unknown_name("machine", name, known)
    chosen = [known[name] for name in names or known]
    parts = catalog if catalog is not None else builtin()
    if workers is None or (workers.on is None and workers.results is None):
        return accuracy_score(chosen, parts, fitted)
    from lanewise.api.machine_rows import predict_machines

    texts = dict(zip(known, files, strict=True))
    rows = predict_machines(chosen, [texts[machine.name] for machine in chosen], parts, fitted, workers, progress)
    return AccuracyScore(rows, tuple(chosen), fitted)


def accuracy_after_measurements(score: AccuracyScore, catalog: Catalog | None = None) -> tuple[AfterMeasurement, ...]:
    """The rows of a score that are left after one and after two measurements of each machine; some seconds."""
    from lanewise.evidence.after_measurement import after_measurements

    return after_measurements(score.machines, score.rates, catalog if catalog is not None else builtin())


def service_accuracy(catalog: Catalog | None = None) -> tuple[PredictedService, ...]:
    """Published services as predicted: Server scores from Offline, p99 at the published rate; some seconds."""
    from lanewise.evidence.services import predict_service, published_services

    parts = catalog if catalog is not None else builtin()
    return tuple(predict_service(service, parts) for service in published_services())


def _check_settings(known: Mapping[str, EvidenceMachine]) -> None:
    """UnknownName for a machine that is to be another setting of one that nobody measured."""
    names = {*known, *package_data.names("evidence")}
    for machine in known.values():
        if machine.same_as and machine.same_as not in names:
            error = unknown_name("measured machine", machine.same_as, names, machine.same_as_location)
            error.hint = f"{error.hint}; same_as: names one that comes with Lanewise, or of the same folder"
            raise error


def load_machines(folder: str | Path | None) -> tuple[EvidenceMachine, ...]:
    """The measured machines of a folder, or those that come with Lanewise."""
    from lanewise.evidence.reading import read_machine

    return tuple(read_machine(*file) for file in machine_files(folder))


def machine_files(folder: str | Path | None) -> list[tuple[str, str]]:
    """Text and name of each evidence file of a folder (or of that file), or of those that come with Lanewise."""
    if folder is None:
        return [package_data.text("evidence", name, "machine") for name in package_data.names("evidence")]
    paths = sorted(Path(folder).glob("*.yaml")) if Path(folder).is_dir() else [Path(folder)]
    if not paths:
        raise InputError("no evidence file", location=Location(str(folder)), hint="name a folder with *.yaml files")
    return [(read_file(path), str(path)) for path in paths]


def load_history(folder: str | Path) -> tuple[dict[str, Any], ...]:
    """The scores that benchmarks/accuracy_run.py kept in a folder; InputError for a folder without any."""
    runs = tuple(json.loads(read_file(path)) for path in sorted(Path(folder).glob("*.json")))
    if not runs:
        hint = "name a folder that benchmarks/accuracy_run.py wrote to"
        raise InputError("no kept score", location=Location(str(folder)), hint=hint)
    return runs
