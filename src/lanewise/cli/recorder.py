"""Records the samples of every measuring verb: shows progress, writes sample and run files, prints a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.errors import CannotMeasure, LanewiseError
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lanewise.options.sampling import RecordOptions
    from lanewise.report.screen import Screen
    from lanewise.results.observation import Observation
    from lanewise.results.sample import Sample


def record(
    samples: Iterator[Sample], options: RecordOptions, json_target: str | None,
    machine_facts: Mapping[str, str] | None = None,
    render: Callable[[Sequence[Observation], Screen], str] | None = None,
) -> None:  # fmt: skip
    """Take all samples, write each with --samples, then write the run with -o and print its rows, by `render` if given.

    A Ctrl-C, or an error of the probe or of a file, does the same with the samples up to then and is raised afterwards;
    signals wait while the run is written. CannotMeasure where no row at all has a value.
    """
    from lanewise import api
    from lanewise.report import json as json_forms
    from lanewise.report.text.run import render_measured
    from lanewise.report.words import plural

    recorded: list[Sample] = []
    failure: BaseException | None = None
    interrupt: KeyboardInterrupt | None = None
    try:
        with SignalDeferral() as deferral:
            failure = _collect(samples, recorded, options, deferral)
            run = api.as_measured_run(recorded, machine_facts)
            if recorded and options.output is not None:
                try:
                    api.save_run(run, options.output)
                    terminal.note(f"wrote {options.output}")
                except LanewiseError as error:
                    failure = error
            if recorded:
                terminal.save(json_target, json_forms.measured_rows, run.rows)
    except KeyboardInterrupt as error:  # it has waited until the run was written
        interrupt = error
    if recorded:
        show_rows = render or render_measured
        terminal.show("-" if json_target == "-" else None, json_forms.measured_rows, show_rows, run.rows)
    if failure is not None:
        if recorded:
            terminal.note(f"not finished: {plural(len(recorded), 'sample')} of {plural(len(run.rows), 'row')} kept")
        raise failure
    if interrupt is not None:
        raise interrupt
    if run.rows and all(row.value is None for row in run.rows):
        raise CannotMeasure(f"nothing could be measured: {run.rows[0].note}", hint="see what is here: lanewise doctor")


def _collect(
    samples: Iterator[Sample], recorded: list[Sample], options: RecordOptions, deferral: SignalDeferral
) -> BaseException | None:
    """Append each sample to `recorded`, and to the file of --samples; the error or Ctrl-C that ended it, if any.

    A signal acts while the probe measures; a sample that it has yielded is kept.
    """
    import json

    if options.output is not None:
        files.check_writable(options.output)
    lines = files.Lines(options.samples_file) if options.samples_file is not None else None
    if terminal.overwrites():
        terminal.status("preparing")
    failure: BaseException | None = None
    try:
        for sample in deferral.collect(samples, recorded):
            if lines is not None:
                lines.write(json.dumps(sample.as_record(), ensure_ascii=False, allow_nan=False))
            progress(recorded)
    except (Exception, KeyboardInterrupt) as error:
        failure = error
    terminal.done()
    if lines is not None:
        lines.close()
    close = getattr(samples, "close", None)
    if close is not None:
        try:
            deferral.interruptible(close)
        except KeyboardInterrupt as error:
            failure = failure or error
    return failure


def progress(recorded: Sequence[Sample]) -> None:
    """Show the number of samples and the current row: always on a terminal; in a log once for each scenario."""
    from lanewise.report.words import plural

    last = recorded[-1]
    if terminal.overwrites() or all(sample.scenario != last.scenario for sample in recorded[:-1]):
        terminal.status(f"{plural(len(recorded), 'sample')}, now {last.scenario} {last.flow}")
