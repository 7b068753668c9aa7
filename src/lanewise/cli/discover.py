"""`lanewise discover`: read a machine into a description, from its dumps or from /sys."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise import files
from lanewise.cli import options, terminal
from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.build import Discovery


def discover(
    dumps: Annotated[list[Path] | None, typer.Argument(metavar="FILE", help="Further dumps, as --from.")] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A capture or a dump: hwloc XML, NCCL XML, nvidia-smi topo -m, topo -p2p, nvlink -s, lspci -tv, "
            "lspci -vvv, ibstat, a tar or folder of /sys.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the system in the description.")] = "",
    table: Annotated[bool, typer.Option("--table", help="Show devices and links instead of the description.")] = False,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.tar.zst", help="Write all that is read of this machine, to replay anywhere."),
    ] = None,
    under_load: Annotated[
        bool, typer.Option("--under-load", help="The links are busy: a capture whose links are as fast as they get.")
    ] = False,
    drawing: Annotated[
        Path | None, typer.Option("--draw", metavar="FILE.svg", help="Draw the machine to this file.")
    ] = None,
    parts: options.Parts = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Read this machine, or the one that dumps describe together, into a description to keep and edit."""
    files_ = [*(from_ or ()), *(dumps or ())]
    _check(capture, under_load, files_, [path for path in (output, drawing, capture) if path is not None])
    found = _found(files_, capture, under_load, options.catalog(parts), name)
    for text in found.contradictions:
        terminal.note(f"contradiction: {text}")
    if capture is not None:
        terminal.note(f"wrote {capture}: read it anywhere with lanewise discover --from {capture}")
    if drawing is not None:
        from lanewise import api

        files.write_file(drawing, api.draw(found.system))
        terminal.note(f"wrote {drawing}")
    if output is not None:
        files.write_file(output, found.text())
        terminal.note(f"wrote {output}")
    if as_json:
        return terminal.out_json(_data(found))
    if table:
        return terminal.out(_table(found))
    if output is None and capture is None and drawing is None:
        terminal.out(found.text().rstrip("\n"))
    return None


def _check(capture: Path | None, under_load: bool, dumps: list[Path], written: list[Path]) -> None:
    """What cannot be is refused before the machine is read."""
    if dumps and capture is not None:
        hint = "leave out --capture, or run it on the machine itself"
        raise InputError("--capture is of this machine, --from reads another", hint=hint)
    if under_load and capture is None:
        hint = "lanewise discover --capture machine.tar.zst --under-load, while copies run"
        raise InputError("--under-load says how a capture was made, and none is asked for", hint=hint)
    for path in written:
        files.check_writable(path)


def _found(dumps: list[Path], capture: Path | None, under_load: bool, catalog: Catalog, name: str) -> Discovery:
    from lanewise import api

    if capture is None:
        return api.discover(dumps, catalog, name)
    return api.capture(capture, under_load or None, catalog, name)


def _table(found: Discovery) -> str:
    from lanewise.cli.route import speed

    system = found.system
    devices = [
        (d.name, str(d.kind), d.part or "", "" if d.numa is None else str(d.numa), _called(found, d.name))
        for d in system.devices.values()
    ]
    links = [(link.a, link.b, speed(link), link.port) for link in system.links]
    lines = [terminal.table(("device", "kind", "part", "NUMA", "in the dumps"), devices), ""]
    lines += [terminal.table(("from", "to", "link", "root port"), links), ""] if links else []
    volumes = [(v.name, f"RAID-{v.raid}", " ".join(v.drives)) for v in system.volumes.values()]
    lines += [terminal.table(("volume", "level", "drives"), volumes), ""] if volumes else []
    lines += [f"assumed: {text}" for text in system.assumptions]
    return "\n".join(lines).rstrip()


def _called(found: Discovery, name: str) -> str:
    return " ".join(dict.fromkeys([*found.called[name], found.labels.get(name, "")])).strip()


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
        "volumes": [
            {"name": v.name, "raid": v.raid, "drives": list(v.drives), "chunk": v.chunk}
            for v in system.volumes.values()
        ],
        "conditions": asdict(found.conditions),
        "iommu": system.policies.iommu,
        "acs_redirect": sorted(system.policies.acs_redirect),
        "assumptions": list(system.assumptions),
        "contradictions": list(found.contradictions),
    }
