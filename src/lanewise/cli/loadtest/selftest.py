"""`lanewise loadtest selftest`: how fast the load generator itself is on this host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.loadtest import SelftestOptions

if TYPE_CHECKING:
    from lanewise.loadtest.selftest import GeneratorCeiling


@option_group
def selftest(options: SelftestOptions, json: Json = None) -> None:
    """Find the largest rate that LoadGen itself issues in time on this host, with a system that answers at once.

    A load test above half of this rate measures the generator too.
    """
    from lanewise import api
    from lanewise.report import json as report_json
    from lanewise.report.text.loadtest import render_ceilings

    ceilings: list[GeneratorCeiling] = []
    try:
        for ceiling in api.loadtest_selftest(options, say=terminal.status):
            ceilings.append(ceiling)  # noqa: PERF402 - an interrupt keeps the finished modes
    finally:
        terminal.done()
        if ceilings:
            data = report_json.ceilings(ceilings)
            terminal.show(json, lambda: data, lambda screen: render_ceilings(data["modes"], screen))
            _warn(ceilings)


def _warn(ceilings: list[GeneratorCeiling]) -> None:
    if (os.cpu_count() or 1) < 2:
        terminal.note("warning: one CPU core for the generator, its log and the system\nhint:    test on two or more")
    for ceiling in ceilings:
        if ceiling.note:
            terminal.note(f"warning: {ceiling.mode}: {ceiling.note}")
