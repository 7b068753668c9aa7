"""`lanewise measure gpu`: copies between hosts and GPUs, peers, latency, and any set of flows at once."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import terminal
from lanewise.cli.measure import recorder
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.options.record import RecordOptions

ListCases = Annotated[bool, typer.Option("--list", help="List the cases and what each shows; measure nothing.")]


@option_group
def gpu(
    options: MeasureGpuOptions,
    record_options: RecordOptions,
    list_cases: ListCases = False,
    json: Json = None,
) -> None:
    """Measure copies between this machine's hosts and GPUs; without options host and GPU, all pairs, and latencies."""
    from lanewise.api.gpu import gpu_cases, gpu_probe
    from lanewise.probes.gpu.probe import skipped_cases

    if list_cases:
        from dataclasses import asdict

        from lanewise.report.text.listings import render_cases

        return terminal.print_text(render_cases, [asdict(case) for case in gpu_cases(options.case_names)])
    probe = gpu_probe()
    selected = gpu_cases(options.case_names) if options.case_names else ()
    skipped = skipped_cases(selected, probe.measurements(options))
    if skipped:
        terminal.note(f"skipped, for want of a second GPU: {', '.join(skipped)}")
    recorder.record(probe.run(options), record_options, json, probe.conditions())
    return None
