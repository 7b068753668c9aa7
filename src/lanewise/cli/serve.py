"""`lanewise serve`: an Accelerator node of load tests over a network."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.command import option_group
from lanewise.options.serve import ServeOptions


@option_group
def serve(options: ServeOptions) -> None:
    """Answer the queries of load tests that run on another host (lanewise loadtest run --nodes HOST:PORT).

    This host's devices and model are one Accelerator node of MLPerf's Network division. Frontends are served one after
    the other; the model stays loaded between them. Ctrl-C ends it.
    """
    from lanewise.api.serve import serve_node

    serve_node(options, say=terminal.note, show_secret=terminal.out_now)
