"""The state of a search, so that it can resume: JSON lines of its settings and runs, and of their statistics.

Keys are those of the first version, so that its files are read: `called` is the setup, `kind` a run's role, `outcome`
its result, `account` its statistics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter

from lanewise.errors import Contradiction, FormatError, Location
from lanewise.loadtest.load_run import LoadGenResult
from lanewise.loadtest.peak import LEAST_QUERIES
from lanewise.loadtest.system import SystemStatistics
from lanewise.options.loadtest import PeakOptions

FORMAT = 1
_RESULT, _STATISTICS = TypeAdapter(LoadGenResult), TypeAdapter(SystemStatistics)


def head(options: PeakOptions, prediction: float | None, setup: str = "") -> str:
    """The first line: the settings; `setup` says what was under test (system, engine, model, devices)."""
    return json.dumps({"lanewise": FORMAT, "search": _settings(options, prediction), "called": setup})


def _settings(options: PeakOptions, prediction: float | None) -> dict[str, Any]:
    """What decides a search."""
    return {
        "bound": options.bound, "percentile": options.percentile, "precision": options.within,
        "most_runs": options.most_runs, "seconds": options.seconds, "seed": options.seed, "prediction": prediction,
        "coalesce": options.coalesce, "least": LEAST_QUERIES,
    }  # fmt: skip


def line(run: LoadGenResult) -> str:
    """The line of a finished run."""
    return json.dumps({"kind": run.role, "outcome": asdict(run)}, default=str)


def text_of(options: PeakOptions, prediction: float | None, runs: Sequence[LoadGenResult], setup: str = "") -> str:
    """All lines of a search so far."""
    return "".join(f"{text}\n" for text in (head(options, prediction, setup), *map(line, runs)))


def read(text: str, file: str, options: PeakOptions, prediction: float | None, setup: str = "") -> list[LoadGenResult]:
    """The runs that a search with these settings has finished; a last line that was cut off is left out.

    Contradiction if it was another search, FormatError with the line for what is no state of one.
    """
    lines = [(number, content) for number, content in enumerate(text.split("\n"), 1) if content.strip()]
    if lines and not text.endswith("\n"):
        lines.pop()
    if not lines:
        return []
    _check(_object(lines[0][1], file, lines[0][0]), file, _settings(options, prediction), setup)
    return [_run(_object(content, file, number), file, number) for number, content in lines[1:]]


def _check(header: dict[str, Any], file: str, settings: dict[str, Any], setup: str) -> None:
    before = header.get("search")
    if header.get("lanewise") != FORMAT or not isinstance(before, dict):
        raise FormatError(
            "does not hold a search", location=Location(file, 1), hint="choose another folder for this search"
        )
    changes = [f"{name} was {before.get(name)}, is {value}" for name, value in settings.items()
               if before.get(name) != value]  # fmt: skip
    if header.get("called", "") != setup:
        changes.insert(0, f"it was of '{header.get('called', '')}', is of '{setup}'")
    if changes:
        raise Contradiction(
            f"holds a search with other settings: {'; '.join(changes)}", location=Location(file, 1),
            hint="give the same options to resume it, or choose another folder",
        )  # fmt: skip


def _object(text: str, file: str, number: int) -> dict[str, Any]:
    with suppress(ValueError):
        data = json.loads(text)
        if isinstance(data, dict):
            return data
    raise FormatError("not a line of a search", location=Location(file, number), hint="delete the file to start anew")


def _run(data: dict[str, Any], file: str, number: int) -> LoadGenResult:
    try:
        outcome = data["outcome"]
        result = _RESULT.validate_python({"interference": outcome.get("others"), **outcome})  # its name in older files
        return replace(result, role=str(data["kind"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        hint = "delete the file to start anew"
        raise FormatError("not a run of a search", location=Location(file, number), hint=hint) from None


def statistics_line(run: LoadGenResult, statistics: SystemStatistics) -> str:
    """The statistics of that run, as a line."""
    return json.dumps({"kind": run.role, "seed": run.load.seed, "account": asdict(statistics)})


def read_statistics(text: str) -> dict[tuple[str, int], SystemStatistics]:
    """The statistics of runs by their role and seed; other lines are left out, as the answer does without."""
    statistics = {}
    for content in text.splitlines():
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            data = json.loads(content)
            statistics[str(data["kind"]), int(data["seed"])] = _STATISTICS.validate_python(data["account"])
    return statistics
