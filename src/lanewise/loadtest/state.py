"""What a search has done so far, so that it can go on: JSON lines of its settings and runs, and of their accounts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from lanewise.errors import Contradiction, FormatError, Location
from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
from lanewise.loadtest.peak import Done, PeakAsk
from lanewise.loadtest.system import SystemStatistics

FORMAT = 1


def head(ask: PeakAsk, called: str = "") -> str:
    """The first line: the settings; `called` says what was under test (system, engine, model, devices)."""
    return json.dumps({"lanewise": FORMAT, "search": asdict(ask), "called": called})


def line(run: Done) -> str:
    """The line of a finished run."""
    found = asdict(run.outcome)
    found["folder"] = None if run.outcome.folder is None else str(run.outcome.folder)
    return json.dumps({"kind": run.kind, "outcome": found}, default=str)


def read(text: str, file: str, ask: PeakAsk, called: str = "") -> list[Done]:
    """The runs that a search with these settings has finished; a last line that was cut off is left out.

    Contradiction if it was another search, FormatError with the line for what is no state of one.
    """
    lines = [(number, each) for number, each in enumerate(text.split("\n"), 1) if each.strip()]
    if lines and not text.endswith("\n"):
        lines.pop()
    if not lines:
        return []
    _check(_object(lines[0][1], file, lines[0][0]), file, ask, called)
    return [_done(_object(each, file, number), file, number) for number, each in lines[1:]]


def _check(found: dict[str, Any], file: str, ask: PeakAsk, called: str) -> None:
    asked, before = asdict(ask), found.get("search")
    if found.get("lanewise") != FORMAT or not isinstance(before, dict):
        raise FormatError(
            "does not hold a search", location=Location(file, 1), hint="choose another folder for this search"
        )
    other = [f"{name} was {before.get(name)}, is {value}" for name, value in asked.items() if before.get(name) != value]
    if found.get("called", "") != called:
        other.insert(0, f"it was of '{found.get('called', '')}', is of '{called}'")
    if other:
        raise Contradiction(
            f"holds a search with other settings: {'; '.join(other)}", location=Location(file, 1),
            hint="ask as before to go on with it, or choose another folder",
        )  # fmt: skip


def _object(text: str, file: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise FormatError(
            "not a line of a search", location=Location(file, number), hint="delete the file to start anew"
        )
    return found


def _done(found: dict[str, Any], file: str, number: int) -> Done:
    try:
        told = dict(found["outcome"])
        told["load"] = LoadSpec(**told["load"])
        told["folder"] = None if told.get("folder") is None else Path(told["folder"])
        for name in ("reasons", "notes"):
            told[name] = tuple(told.get(name, ()))
        known = {each.name for each in fields(LoadGenResult)}
        return Done(str(found["kind"]), LoadGenResult(**{name: value for name, value in told.items() if name in known}))
    except (KeyError, TypeError, ValueError):
        hint = "delete the file to start anew"
        raise FormatError("not a run of a search", location=Location(file, number), hint=hint) from None


def text_of(ask: PeakAsk, runs: Sequence[Done], called: str = "") -> str:
    """All lines of a search so far."""
    return "".join(f"{each}\n" for each in (head(ask, called), *(line(run) for run in runs)))


def account_line(run: Done, account: SystemStatistics) -> str:
    """Where that run's time went, as a line."""
    return json.dumps({"kind": run.kind, "seed": run.outcome.load.seed, "account": asdict(account)})


def accounts(text: str) -> dict[tuple[str, int], SystemStatistics]:
    """The accounts of runs by their kind and seed; lines that are none are left out, as the answer does without."""
    found = {}
    for each in text.splitlines():
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            line = json.loads(each)
            told = line["account"]
            told["sizes"] = {int(size): int(count) for size, count in told["sizes"].items()}
            told["stages"] = {name: dict(values) for name, values in told["stages"].items()}
            told["copies"] = tuple((str(way), dict(tried)) for way, tried in told["copies"])
            found[str(line["kind"]), int(line["seed"])] = SystemStatistics(**told)
    return found
