"""`lanewise discover`: read a machine into a description, from its dumps or from /sys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import Json, option_group
from lanewise.options.system import DiscoverOptions

if TYPE_CHECKING:
    pass


@option_group
def discover(options: DiscoverOptions, json: Json = None) -> None:
    """Read this machine, or the one that dumps describe, into a description to keep and edit."""
    from lanewise import api
    from lanewise.report import json as data
    from lanewise.report.text.listings import render_discovery

    for path in (options.output, options.draw, options.capture):
        if path is not None:
            files.check_writable(path)
    catalog = api.load_catalog(options.parts)
    if options.capture is not None:
        discovery = api.capture(options.capture, options.under_load or None, catalog, options.name)
    else:
        discovery = api.discover([*options.from_, *options.dumps], catalog, options.name)
    for text in discovery.faults:
        terminal.note(f"fault: {text}")
    for text in discovery.contradictions:
        terminal.note(f"contradiction: {text}")
    if options.capture is not None:
        terminal.note(f"wrote {options.capture}: read it anywhere with lanewise discover --from {options.capture}")
    if options.draw is not None:
        terminal.write(options.draw, api.draw(discovery.system))
    if options.output is not None:
        terminal.write(options.output, discovery.text())
    if json is not None or options.table:
        labels = {
            name: [*discovery.dump_names[name], discovery.labels.get(name, "")] for name in discovery.system.devices
        }
        names = {name: " ".join(dict.fromkeys(words)).strip() for name, words in labels.items()}
        terminal.show(
            json,
            lambda: data.discovery(discovery.system, discovery),
            lambda screen: render_discovery(discovery.system, names, screen),
        )
    elif options.output is None and options.capture is None and options.draw is None:
        terminal.out(discovery.text().rstrip("\n"))
