"""`lanewise parts`: what the catalogue knows of GPUs, CPUs, switches, cards and drives, and from where."""

from __future__ import annotations

from typing import Annotated

import typer

from lanewise.cli import options, terminal

app = typer.Typer(
    cls=options.QuickGroup,
    help="List and show the parts of the catalogue with the source of each figure.",
    no_args_is_help=True,
)


@app.command("list")
def list_(
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only gpu, cpu, switch, nic, ssd, raid, nvlink or adapter.")
    ] = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """List the parts of the catalogue."""
    from lanewise.report import json
    from lanewise.report.text.parts import render_parts

    catalog = options.catalog(parts)
    found = [catalog.get(name) for name in catalog.names(kind)]
    if as_json:
        return terminal.out_json(json.parts(found))
    terminal.print_text(render_parts, found)
    return None


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="PART", help="A part or one of its other names.")],
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Show every figure of a part with its source and the condition it holds under."""
    from lanewise.report import json
    from lanewise.report.text.parts import render_part

    part = options.catalog(parts).get(name)
    terminal.out_json(json.part(part)) if as_json else terminal.print_text(render_part, part)
