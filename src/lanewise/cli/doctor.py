"""`lanewise doctor`: versions, the native core, and which optional pieces are installed."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group


@option_group
def doctor(json: Json = None) -> None:
    """List the installed dependencies, and what is disabled without the others."""
    from lanewise import api
    from lanewise.api.provenance import machine
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_doctor

    versions = {"lanewise": terminal.version(), **machine()}
    pieces = api.doctor()
    terminal.show(json, data.doctor, render_doctor, versions, pieces)
