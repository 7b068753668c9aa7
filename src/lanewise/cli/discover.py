"""`lanewise discover`: read a machine into a description, from its dumps or from /sys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise import files
from lanewise.cli import options, terminal

if TYPE_CHECKING:
    from lanewise.discovery.build import Discovery


def discover(
    dumps: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="Further dumps, as --from.")] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A dump: hwloc XML, NCCL XML, nvidia-smi topo -m, lspci -tv, lspci -vvv, a tar or folder of /sys.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the system in the description.")] = "",
    table: Annotated[bool, typer.Option("--table", help="Show devices and links instead of the description.")] = False,
    parts: options.Parts = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Read this machine, or the one that dumps describe together, into a description to keep and edit."""
    from lanewise import api

    if output is not None:
        files.check_writable(output)
    found = api.discover([*(from_ or ()), *(dumps or ())], options.catalog(parts), name)
    for text in found.contradictions:
        terminal.note(f"contradiction: {text}")
    if output is not None:
        files.write_file(output, found.text())
        terminal.note(f"wrote {output}")
    if as_json:
        return terminal.out_json(_data(found))
    if table:
        return terminal.out(_table(found))
    if output is None:
        terminal.out(found.text().rstrip("\n"))
    return None


def _table(found: Discovery) -> str:
    from lanewise.cli.route import speed

    system = found.system
    devices = [
        (d.name, str(d.kind), d.part or "", "" if d.numa is None else str(d.numa), _called(found, d.name))
        for d in system.devices.values()
    ]
    links = [(link.a, link.b, speed(link), link.port) for link in system.links]
    lines = [terminal.table(("device", "kind", "part", "NUMA", "in the dumps"), devices), ""]
    lines += [terminal.table(("from", "to", "link", "root port"), links), ""]
    lines += [f"assumed: {text}" for text in system.assumptions]
    return "\n".join(lines).rstrip()


def _called(found: Discovery, name: str) -> str:
    return " ".join([*found.called[name], found.labels.get(name, "")]).strip()


def _data(found: Discovery) -> dict[str, Any]:
    system = found.system
    return {
        "system": system.name,
        "source": system.source,
        "devices": [
            {
                "name": d.name,
                "kind": d.kind.value,
                "part": d.part,
                "numa": d.numa,
                "called": list(found.called[d.name]),
                "facts": [{"key": f.key, "value": f.value, "source": str(f.source)} for f in found.facts[d.name]],
            }
            for d in system.devices.values()
        ],
        "links": [
            {
                "from": link.a,
                "to": link.b,
                "kind": link.kind.value,
                "gen": link.gen,
                "lanes": link.lanes,
                "count": link.count,
                "port": link.port,
                "bridge": link.bridge,
                "max_payload": link.max_payload,
            }
            for link in system.links
        ],
        "iommu": system.policies.iommu,
        "acs_redirect": sorted(system.policies.acs_redirect),
        "assumptions": list(system.assumptions),
        "contradictions": list(found.contradictions),
    }
