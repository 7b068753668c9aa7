"""`lanewise loadtest`: MLPerf LoadGen on this machine; one short file for each kind of test."""

from __future__ import annotations

from typing import Any

import typer

from lanewise.cli.loadtest import peak, run, selftest, sweep, training
from lanewise.cli.shared import Command, QuickGroup


class PeakByDefault(QuickGroup):
    """Runs the search for the peak where no verb is named: `lanewise loadtest --devices gpu0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, with `peak` before options that no verb precedes."""
        has_verb = args and (args[0] in (*self.commands, "-h", "--help") or not args[0].startswith("-"))
        return super().parse_args(ctx, args if has_verb else ["peak", *args])


app = typer.Typer(cls=PeakByDefault, help="Load tests of this machine with MLPerf LoadGen.")
for name, verb, help in (
    ("peak", peak.peak, "Find the largest VALID rate of this machine (the default)."),
    ("run", run.run, "Run LoadGen once: a given load, Top-1, or an audit."),
    ("selftest", selftest.selftest, "Find the load generator's own ceiling on this host."),
    ("sweep", sweep.sweep, "Find the peak for several numbers of GPUs, batches, streams or paths."),
    ("training", training.training, "Compute the data rate of a training from its log."),
):
    app.command(name, cls=Command, short_help=help)(verb)
