"""`lanewise loadtest peak`: the largest rate that keeps the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.loadtest import asked
from lanewise.cli.loadtest.asked import Asked, Outputs, Search
from lanewise.cli.spread import spread

if TYPE_CHECKING:
    from lanewise.api.loadtest import Answer
    from lanewise.loadtest.peak import Done, SearchProgress


@spread
def peak(*, what: Asked, search: Search, trace: asked.Trace = None, outputs: Outputs) -> None:
    """Search the largest VALID target of MLPerf's Server scenario on this machine, predicted before and measured.

    Its answer is the target of a run that LoadGen calls VALID. Ctrl-C keeps what is finished: the same command with
    --results goes on from there.
    """
    from lanewise import api

    try:
        answer = api.loadtest_peak(
            what.bench(), **search.settings(), results=outputs.results, trace=trace, output=outputs.output,
            say=terminal.status, on_progress=progress, on_run=_told,
        )  # fmt: skip
    finally:
        terminal.done()
    show(answer, outputs.as_json)


def progress(now: SearchProgress) -> None:
    """The run of a search that is about to begin."""
    load = f"{now.load.qps:,.0f} queries/s" if now.kind == "search" else now.kind
    left = f"about {now.left:.0f} s left of this search"
    terminal.status(f"run {now.number}: {load} for {now.load.seconds:.1f} s; {left}")


def _told(run: Done) -> None:
    if run.kind != "search" or terminal.overwrites():
        return
    outcome = run.outcome
    terminal.note(f"{outcome.load.qps:,.0f} queries/s {'VALID' if outcome.valid else 'not valid'}")


def show(answer: Answer, as_json: bool) -> None:
    """The answer, beside its prediction, and what it rests on."""
    if as_json:
        return terminal.out_json(answer.data())
    from lanewise.report.text.loadtest import as_text

    return terminal.out(as_text(answer.data()))
