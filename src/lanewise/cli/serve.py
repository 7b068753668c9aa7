"""`lanewise serve`: an Accelerator node of load tests over a network."""

from __future__ import annotations

from lanewise.cli import interrupts, terminal
from lanewise.cli.command import option_group
from lanewise.options.serve import ServeOptions

_CTRL_C = 130


@option_group
def serve(options: ServeOptions) -> None:
    """Answer the queries of load tests that run on another host (lanewise loadtest run --nodes HOST:PORT).

    This host's devices and model are one Accelerator node of MLPerf's Network division. Frontends are served one after
    the other; the model stays loaded between them. Ctrl-C ends it, with exit code 0.
    """
    from lanewise.api.node import serve_node

    try:
        serve_node(options, say=terminal.note, show_secret=terminal.always)
    except KeyboardInterrupt:
        if interrupts.exit_code() != _CTRL_C:
            raise
        terminal.note("ended")
