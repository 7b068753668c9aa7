"""`lanewise plan`: rank systems, place devices on hosts and ports, pin network cards, each with its bottleneck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from lanewise.cli import interrupts, terminal
from lanewise.cli.command import Json, option_group
from lanewise.options.option import settings
from lanewise.options.plan import PlanOptions, PlanVerbOptions
from lanewise.options.workers import EngineChoice

if TYPE_CHECKING:
    from lanewise.topology.model import System


@option_group
def plan(options: PlanVerbOptions, engine: EngineChoice, json: Json = None) -> None:
    """Rank systems for a workload, propose which devices to attach where, or which card each GPU should use.

    Exit code 1 if the best plan does not fit.
    """
    from lanewise import api
    from lanewise.report import json as report_json
    from lanewise.report import plan_json
    from lanewise.report.screen import Screen
    from lanewise.report.text.plan import render_plan

    questions = _questions(options)
    systems = _by_file([_system(name, options) for name in options.systems], options.systems)
    name, parts = _split(options.systems[0])[0], [str(path) for path in options.parts]
    answers = []
    for question in questions:
        answer = api.plan(systems, question, engine.on)
        answers.append((answer, question))
        if answer.error is not None and not (answer.interrupted or options.anyway):
            terminal.print_error(answer.error.show())
            raise typer.Exit(1)

    def data() -> Any:
        values = [plan_json.plan(answer, question, name, parts) for answer, question in answers]
        return values[0] if len(values) == 1 else report_json.document("plan", values, "answers")

    def text(screen: Screen) -> str:
        return "\n\n".join(render_plan(answer, question, name, parts, screen) for answer, question in answers)

    terminal.show(json, data, text)
    if any(answer.interrupted for answer, _ in answers):
        terminal.print_error("interrupted")
        raise typer.Exit(interrupts.exit_code())


def _questions(options: PlanVerbOptions) -> list[PlanOptions]:
    """What is planned: the plan file, or the options once for each pattern."""
    from lanewise.api.loading import load_plan

    if options.file is not None:
        return [replace(load_plan(options.file), candidates=options.candidates)]
    return [replace(options, pattern=each, p2p=not options.no_p2p) for each in options.patterns or (None,)]


def _system(name: str, options: PlanVerbOptions) -> System:
    """A system, its own settings after commas: 'composable-server-gen4,path=4'."""
    from lanewise import api

    name, own = _split(name)
    return api.load_system(name, {**options.settings, **settings(own)}, api.load_catalog(options.parts))


def _by_file(systems: Sequence[System], files: Sequence[str]) -> list[System]:
    """The systems, those of one name and settings with their files in the name: a copied description keeps its name."""
    from lanewise.planning.layouts import label

    count = Counter(map(label, systems))
    return [
        replace(system, name=f"{system.name} ({file})") if count[label(system)] > 1 else system
        for system, file in zip(systems, files, strict=True)
    ]


def _split(name: str) -> tuple[str, list[str]]:
    """A system's name and the settings after its commas."""
    name_alone, *own = name.split(",")
    return (name_alone, own) if all("=" in pair for pair in own) else (name, [])
