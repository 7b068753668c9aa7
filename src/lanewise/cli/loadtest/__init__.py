"""`lanewise loadtest`: MLPerf LoadGen on this machine; one short file for each kind of test."""

from __future__ import annotations

from typing import Any

import typer

from lanewise.cli import options
from lanewise.cli.loadtest import peak, run, selftest, sweep, training


class _Group(options.QuickGroup):
    """Without the name of a verb the search for the peak is meant: `lanewise loadtest --devices gpu0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, with that verb before options of its own."""
        named = args and (args[0] in self.commands or args[0] in ("--help", "--install-completion"))
        return super().parse_args(ctx, args if named or (args and not args[0].startswith("-")) else ["peak", *args])


app = typer.Typer(
    cls=_Group,
    help="Load tests of this machine with MLPerf LoadGen.",
)
app.command("peak", short_help="The largest VALID rate of this machine (the default).")(peak.peak)
app.command("run", short_help="One run at a given load; accuracy, audits.")(run.run)
app.command("selftest", short_help="The load generator's own ceiling on this host.")(selftest.selftest)
app.command("sweep", short_help="The peak against GPUs, batch, streams or paths.")(sweep.sweep)
app.command("training", short_help="The data rate of a training, from its log.")(training.training)
