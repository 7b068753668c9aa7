"""`lanewise measure host`: memory copies by NUMA node and thread count."""

from __future__ import annotations

from lanewise.cli.measure import recorder
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.measure_host import MeasureHostOptions
from lanewise.options.record import RecordOptions


@option_group
def host(
    options: MeasureHostOptions,
    record_options: RecordOptions,
    json: Json = None,
) -> None:
    """Copy, read and write this machine's memory between its NUMA nodes, and time single loads."""
    from lanewise.api.host import host_probe

    probe = host_probe()
    recorder.record(probe.run(options), record_options, json, probe.conditions())
