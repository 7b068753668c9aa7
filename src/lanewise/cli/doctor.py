"""`lanewise doctor`: versions, the native core, and what optional pieces are here or missing."""

from __future__ import annotations

from lanewise.cli import terminal
from lanewise.cli.options import Json


def doctor(as_json: Json = False) -> None:
    """Say what is installed, what is missing, and what a missing piece disables."""
    from dataclasses import asdict

    from lanewise import api
    from lanewise.api.here import machine

    facts = {"lanewise": terminal.version(), **machine()}
    pieces = api.doctor()
    if as_json:
        return terminal.out_json({"versions": facts, "pieces": [asdict(piece) for piece in pieces]})
    width = max(map(len, facts))
    for name, value in facts.items():
        terminal.out(f"{name:{width}}  {value}")
    rows = [(p.piece, "yes" if p.found else "no", p.detail, "" if p.found else p.without_it) for p in pieces]
    terminal.out(f"\n{terminal.table(('piece', 'here', 'detail', 'without it'), rows)}")
    return None
