"""`lanewise check`: whether each path delivers what it should, why not, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise import files
from lanewise.cli import options, terminal
from lanewise.cli.measure import recorder
from lanewise.errors import FormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.api.checking import Found
    from lanewise.results.sample import Sample

From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Results (nvbandwidth, p2pBandwidthLatencyTest, fio, perftest, gdsio, a run) or a dump; may be repeated.",
    ),
]
SystemOf = Annotated[
    str | None, typer.Option("--system", metavar="SYSTEM", help="What the machine should be: a ready system or a file.")
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="model|RUN.json",
        help="Expected values: the model's, of an earlier run, or of a class (three runs and more; repeat it).",
    ),
]
Tolerance = Annotated[str | None, typer.Option(metavar="10%", help="One tolerance instead of each basis' own.")]
Named = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="WORD=DEVICE", help="A word of the results is that device: data.bin=vol0."),
]
Name = Annotated[str, typer.Option(help="What to call the machine in --json and --prometheus.")]
Prometheus = Annotated[
    Path | None, typer.Option(metavar="FILE.prom", help="Write metrics for node_exporter's textfile collector.")
]
RunOut = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="RUN.json", help="Write the measured rows as a run.")
]


def check(
    more: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="Further files, as --from.")] = None,
    from_: From = None,
    system: SystemOf = None,
    expect: Expect = None,
    tolerance: Tolerance = None,
    named: Named = None,
    name: Name = "",
    prometheus: Prometheus = None,
    output: RunOut = None,
    settings: options.Settings = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Say whether each path delivers what it should, why not, and what to do next: of files, or of this machine.

    Exit codes: 0 all fine, 1 something is wrong, 2 bad input, 3 nothing wrong but something could not be judged.
    """
    from lanewise import api
    from lanewise.api import checking

    for path in (prometheus, output):
        if path is not None:
            files.check_writable(path)
    if settings and system is None:
        raise InputError("--set says nothing without --system", hint="name the system that has the parameter")
    named_files = [*(from_ or ()), *(more or ())]
    stopped = None
    if named_files:
        known = checking.gather(named_files)
    else:
        known, stopped = _measured()
    wanted = options.load(system, settings, parts) if system is not None else None
    catalog = options.catalog(parts)
    found = checking.judge(known, wanted, expect or checking.MODEL, _share(tolerance), _called(named), catalog)
    if prometheus is not None:
        files.write_file(prometheus, api.check_metrics(found, name))
        terminal.note(f"wrote {prometheus}")
    if output is not None:
        api.save_run(api.as_checked_run(found), output)
        terminal.note(f"wrote {output}")
    if as_json:
        terminal.out_json(api.check_data(found, name))
    else:
        from lanewise.report.text.check import render_checkup

        terminal.print_text(render_checkup, found)
    if stopped is not None:
        raise stopped
    raise typer.Exit(found.exit_code)


def _measured() -> tuple[Found, BaseException | None]:
    """This machine, measured; a Ctrl-C leaves what there is by then, and goes on up when that is judged."""
    from lanewise.api import checking

    taken: list[Sample] = []
    notes: list[str] = []
    stopped: BaseException | None = None
    try:
        for sample in checking.quick_samples(notes):
            taken.append(sample)
            recorder.progress(taken)
    except KeyboardInterrupt as stop:
        stopped = stop
        notes.append("interrupted: what was measured by then is judged")
    finally:
        terminal.done()
    return checking.here(taken, notes), stopped


def _share(text: str | None) -> float | None:
    """'10%' or '0.1' as a share of 1; FormatError for what is none."""
    from lanewise import units

    if text is None:
        return None
    share = units.parse(text, "1")
    if not 0 <= share < 1:
        raise FormatError(f"a tolerance of {text}", hint="write a share between 0 and 100 %, such as --tolerance 10%")
    return share


def _called(pairs: Sequence[str] | None) -> dict[str, str]:
    """'data.bin=vol0' as a mapping; FormatError for what is none."""
    found = {}
    for pair in pairs or ():
        word, equals, device = pair.partition("=")
        if not (word and equals and device):
            raise FormatError(f"'{pair}' names no device", hint="write --as WORD=DEVICE, such as --as data.bin=vol0")
        found[word.strip()] = device.strip()
    return found
