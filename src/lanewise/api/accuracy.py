"""How well the performance model predicts measured machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.catalog import builtin
from lanewise.errors import InputError, Location, unknown_name
from lanewise.files import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.catalog import Catalog
    from lanewise.evidence.model import EvidenceMachine
    from lanewise.evidence.score import AccuracyScore


def accuracy(
    machines: Sequence[str] = (),
    folder: str | Path | None = None,
    fitted: bool = False,
    catalog: Catalog | None = None,
) -> AccuracyScore:
    """The rows of measured machines (all if none is named) as the performance model predicts them, and their scores.

    `folder` has evidence files to take in place of those that come with Lanewise. Figures that were measured on a
    machine are left out when that machine is predicted, unless `fitted`.

    Raises UnknownName for a machine that does not exist, FormatError with file and line for a wrong evidence file, and
    InputError for a folder without any.

    >>> score = lanewise.accuracy(["rtx4090-rome"])
    >>> [row.flow_set for row in score.rows][:2]
    ['one flow', 'one flow']
    """
    from lanewise.evidence.score import accuracy_score

    known = {machine.name: machine for machine in load_machines(folder)}
    for name in machines:
        if name not in known:
            raise unknown_name("machine", name, known)
    chosen = [known[name] for name in machines or known]
    return accuracy_score(chosen, catalog if catalog is not None else builtin(), fitted)


def load_machines(folder: str | Path | None) -> tuple[EvidenceMachine, ...]:
    """The measured machines of a folder, or those that come with Lanewise."""
    from lanewise.evidence.reading import read_machine, ready_machines

    if folder is None:
        return ready_machines()
    paths = sorted(Path(folder).glob("*.yaml"))
    if not paths:
        raise InputError("no evidence file", location=Location(str(folder)), hint="name a folder with *.yaml files")
    return tuple(read_machine(read_file(path), str(path)) for path in paths)


def load_history(folder: str | Path) -> tuple[dict[str, Any], ...]:
    """The scores that benchmarks/accuracy_run.py kept in a folder; InputError for a folder without any."""
    runs = tuple(json.loads(read_file(path)) for path in sorted(Path(folder).glob("*.json")))
    if not runs:
        hint = "name a folder that benchmarks/accuracy_run.py wrote to"
        raise InputError("no kept score", location=Location(str(folder)), hint=hint)
    return runs
