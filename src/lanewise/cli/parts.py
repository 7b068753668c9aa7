"""`lanewise parts`: what the catalogue knows of GPUs, CPUs, switches, cards and drives, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.catalog import Figure

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
    catalog = options.catalog(parts)
    found = [catalog.get(name) for name in catalog.names(kind)]
    if as_json:
        return terminal.out_json(
            [{"name": p.name, "kind": p.kind, "title": p.title, "aliases": list(p.aliases)} for p in found]
        )
    rows = [(p.name, p.kind, str(len(p.figures)), p.title) for p in sorted(found, key=lambda p: (p.kind, p.name))]
    terminal.out(terminal.table(("part", "kind", "figures", "title"), rows, right=("figures",)))
    return None


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="PART", help="A part or one of its other names.")],
    parts: options.Parts = None,
    as_json: options.Json = False,
) -> None:
    """Show every figure of a part with its source and the condition it holds under."""
    from dataclasses import asdict

    part = options.catalog(parts).get(name)
    if as_json:
        figures = {key: asdict(figure) for key, figure in part.figures.items()}
        return terminal.out_json(
            {
                "name": part.name,
                "kind": part.kind,
                "title": part.title,
                "aliases": list(part.aliases),
                "figures": figures,
            }
        )
    notes = terminal.Footnotes()
    rows = [
        (key, _show(figure), figure.basis if figure.known else "", notes.mark([_source(figure)]))
        for key, figure in part.figures.items()
    ]
    terminal.out(f"{part.name}: {part.title} ({part.kind})")
    if part.aliases:
        terminal.out(f"also called {', '.join(part.aliases)}")
    terminal.out(f"\n{terminal.table(('figure', 'value', 'basis', 'source'), rows)}\n\n{notes.show()}")
    return None


def _show(figure: Figure) -> str:
    from lanewise import units

    if figure.value is None or isinstance(figure.value, str):
        return figure.value or "unknown"
    unit = {"B/s": "GB/s", "T/s": "GT/s", "1/s": "QPS"}.get(figure.unit, figure.unit)
    if figure.unit == "s":
        unit = "ns" if figure.value < 1e-6 else "us"
    if figure.unit == "B":
        unit = "B" if figure.value < 4096 else "GiB" if figure.value >= 2**30 else "KiB"
    whole = unit in ("1", "B", "GiB", "KiB") and units.from_si(figure.value, unit).is_integer()
    return units.show(figure.value, unit, len(str(int(units.from_si(figure.value, unit)))) if whole else 4)


def _source(figure: Figure) -> str:
    return f"{figure.source}; {figure.condition}" if figure.condition else figure.source
