"""`lanewise measure host`: memory copies by NUMA node and thread count."""

from __future__ import annotations

from lanewise.cli import options as shared
from lanewise.cli.measure import recorder
from lanewise.cli.option_group import option_group
from lanewise.options.measure_host import MeasureHostOptions


@option_group
def host(
    options: MeasureHostOptions,
    output: recorder.RunFile = None,
    samples: recorder.SampleFile = None,
    as_json: shared.Json = False,
) -> None:
    """Copy, read and write this machine's memory between its NUMA nodes, and time single loads."""
    from lanewise.api.host import host_probe

    probe = host_probe()
    recorder.record(probe.run(options), output, samples, as_json, probe.conditions())
