"""`lanewise doctor`: versions, the native core, and what optional pieces are here or missing."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.options import Json


def doctor(as_json: Json = False) -> None:
    """Say what is installed, what is missing, and what a missing piece disables."""
    from lanewise import api
    from lanewise.api.here import machine
    from lanewise.report import json
    from lanewise.report.text.doctor import render_doctor

    facts = {"lanewise": terminal.version(), **machine()}
    pieces = api.doctor()
    terminal.out_json(json.doctor(facts, pieces)) if as_json else terminal.print_text(render_doctor, facts, pieces)
