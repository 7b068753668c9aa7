"""`lanewise measure`: what this machine's data paths deliver; one short file for each kind of path."""

from __future__ import annotations

import typer

from lanewise.cli.measure import gpu, host, network, storage
from lanewise.cli.shared import Command, QuickGroup

app = typer.Typer(
    cls=QuickGroup,
    help="Measure the data paths of this machine; Ctrl-C keeps the samples up to then.",
    no_args_is_help=True,
)
app.command("host", cls=Command, short_help="Memory copies by NUMA node and thread count.")(host.host)
app.command("gpu", cls=Command, short_help="Copies between hosts and GPUs, peers, latency; any flows at once.")(gpu.gpu)
app.command("storage", cls=Command, short_help="Files or volumes into host or GPU memory.")(storage.storage)
app.command("network", cls=Command, short_help="Bandwidth and latency between two processes or hosts.")(network.network)
