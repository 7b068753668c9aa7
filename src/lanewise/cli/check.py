"""`lanewise check`: whether each path delivers what it should, why not, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lanewise import files
from lanewise.cli import recorder, terminal
from lanewise.cli.command import Json, option_group
from lanewise.errors import InputError
from lanewise.options.check import CheckOptions
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from lanewise.checking.checkup import Checkup
    from lanewise.results.sample import Sample


@option_group
def check(options: CheckOptions, json: Json = None) -> None:
    """Judge whether each path delivers what it should, why not, and what to do next: of files, or of this machine.

    Exit codes: 0 all fine, 1 a path is slow or there is a fault, 2 bad input, 3 no path is slow, but a row is unknown,
    failed or too fast, a tool saw fewer GPUs than there are, or nothing was measured.
    """
    from lanewise import api
    from lanewise.report.text.check import render_checkup

    paths = [*options.from_, *options.more]
    _refuse(options, paths, json)
    samples: list[Sample] = []
    notes: list[str] = []

    def judge() -> Checkup:
        catalog = api.load_catalog(options.parts)
        system = None if options.system is None else api.load_system(options.system, options.settings, catalog)
        return api.check(
            paths, system, options.expect, tolerance=options.tolerance, devices=options.devices, catalog=catalog,
            samples=samples, notes=notes, nccl=options.nccl, launch=options.launch,
        )  # fmt: skip

    interrupt = None
    try:
        with SignalDeferral() as deferral:
            if not paths:
                interrupt = _measure(samples, notes, deferral)
            checkup = judge() if samples else deferral.interruptible(judge)
            if options.prometheus is not None:
                terminal.write(options.prometheus, api.check_metrics(checkup, options.name))
            if options.output is not None:
                api.save_run(api.as_checked_run(checkup), options.output)
                terminal.note(f"wrote {options.output}")
            terminal.save(json, lambda: api.check_data(checkup, options.name))
    except KeyboardInterrupt as error:  # it has waited until the files were written
        if not samples:
            raise
        interrupt = error
    target = "-" if json == "-" else None
    terminal.show(target, lambda: api.check_data(checkup, options.name), lambda screen: render_checkup(checkup, screen))
    if interrupt is not None:
        raise interrupt
    raise typer.Exit(checkup.exit_code)


def _refuse(options: CheckOptions, paths: list[Path], json: str | None) -> None:
    """InputError for an output that cannot be written, --set without --system, and results that --json overwrites."""
    for path in (options.prometheus, options.output):
        if path is not None:
            files.check_writable(path)
    if options.settings and options.system is None:
        raise InputError("--set has no effect without --system", hint="name the system that has the parameter")
    if json not in (None, "-") and Path(str(json)).exists() and not paths:
        hint = f"to check it: lanewise check {json} --json"
        raise InputError(f"--json would overwrite {json}, and no results are named", hint=hint)


def _measure(samples: list[Sample], notes: list[str], deferral: SignalDeferral) -> KeyboardInterrupt | None:
    """Measures this machine; a Ctrl-C leaves the samples up to then, to be judged before it is raised."""
    from lanewise.api import checking

    try:
        for _ in deferral.collect(checking.quick_samples(notes), samples):
            recorder.progress(samples)
    except KeyboardInterrupt as error:
        notes.append("interrupted: what was measured by then is judged")
        return error
    finally:
        terminal.done()
    return None
