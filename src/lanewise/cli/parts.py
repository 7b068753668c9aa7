"""`lanewise parts`: the figures of GPUs, CPUs, switches, cards and drives, each with its source."""

from __future__ import annotations

import typer

from lanewise.cli import terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.errors import InputError, Location
from lanewise.options.system import ListPartsOptions, PartTemplateOptions, ShowPartOptions

app = typer.Typer(
    cls=QuickGroup, help="List and show the parts of the catalogue, with the source of each figure.",
    no_args_is_help=True,
)  # fmt: skip


@app.command("list", cls=Command)
@option_group
def list_(options: ListPartsOptions, json: Json = None) -> None:
    """List the parts of the catalogue."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_parts

    catalog = api.load_catalog(options.parts)
    parts = [catalog.get(name) for name in catalog.names(options.kind)]
    terminal.show(json, data.parts, render_parts, parts)


@app.command("show", cls=Command)
@option_group
def show(options: ShowPartOptions, json: Json = None) -> None:
    """Show every figure of a part with its source and the condition it holds under; of a name of several, of all."""
    from lanewise import api
    from lanewise.catalog.alternatives import meant_by
    from lanewise.catalog.keys import KINDS
    from lanewise.catalog.model import OR
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_part

    catalog = api.load_catalog(options.parts)
    meant = () if options.name in catalog.parts else meant_by(catalog, options.name, tuple(KINDS))
    part = catalog.get(OR.join(meant) or options.name)
    terminal.show(json, data.part, render_part, part)


@app.command("template", cls=Command)
@option_group
def template(options: PartTemplateOptions) -> None:
    """Print a part file to fill in, for a part that the catalogue lacks."""
    from lanewise.catalog.template import part_template

    if options.output is not None and options.output.exists():
        cause = "exists already and is not overwritten"
        raise InputError(cause, location=Location(str(options.output)), hint="choose another name")
    terminal.write(options.output, part_template(options.kind, options.name))
