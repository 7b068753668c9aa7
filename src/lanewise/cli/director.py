"""`lanewise director`: compose servers from a pool, over Redfish; and serve such a pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from lanewise.cli import interrupts, terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.options.director import (
    BackupOptions,
    ComposeOptions,
    CompositionOptions,
    DirectorPoolOptions,
    MoveBlockOptions,
    ReleaseOptions,
    ServeDirectorOptions,
    WatchDirectorOptions,
)

if TYPE_CHECKING:
    from lanewise.director.client.pool import RemotePool
    from lanewise.director.redfish.server import ListeningService

app = typer.Typer(
    cls=QuickGroup,
    help="Compose servers from a pool of devices over Redfish, knowing the bandwidth; or serve such a pool.",
    no_args_is_help=True,
)
_CTRL_C = 130


@app.command(cls=Command, short_help="Serve a pool over Redfish, with a web page.")
@option_group
def serve(options: ServeDirectorOptions) -> None:
    """Serve the pool of a fabric over Redfish, with a web page, until Ctrl-C.

    With --demo the fabric is simulated, and nothing is kept but the certificate. At the first start it makes a TLS
    certificate and the account admin, whose password is shown once.
    """
    from lanewise.api.director import serve_director

    try:
        serve_director(options, say=terminal.note, ready=_show_address)
    except KeyboardInterrupt:
        if interrupts.exit_code() != _CTRL_C:
            raise
    terminal.note("ended")


def _show_address(service: ListeningService) -> None:
    terminal.always(f"listening at {service.url}")
    if service.certificate is not None:
        terminal.always(f"certificate {service.certificate}, SHA-256 {service.fingerprint}")
    if service.password is not None:
        terminal.always("password of the account admin, shown only now (LANEWISE_DIRECTOR_PASSWORD for other verbs):")
        terminal.out_now(service.password)


@app.command(cls=Command, short_help="List servers, blocks and who has them.")
@option_group
def pool(options: DirectorPoolOptions, json: Json = None) -> None:
    """List servers and blocks, who has them, and the predicted rates of their paths."""
    from dataclasses import replace

    from lanewise.api.director import open_director
    from lanewise.report import director_json
    from lanewise.report.text.director import render_pool

    with open_director(options) as remote:
        listing = remote.listing()
    if options.free:
        blocks = tuple(block for block in listing.blocks if block.state == "Unused" and not block.reserved)
        listing = replace(listing, blocks=blocks)
    terminal.show(json, director_json.pool, render_pool, listing)


@app.command(cls=Command, short_help="Ask what could be composed, with predicted rates.")
@option_group
def offer(options: CompositionOptions, json: Json = None) -> None:
    """Ask for placements, ranked, with the predicted rate of every path and what others would lose; change nothing.

    Exit code 1 if nothing in the pool can do it; the nearest offer that can be had is shown then.
    """
    from lanewise.api.director import composition_request
    from lanewise.report import director_json
    from lanewise.report.text.director import render_offers

    with _director_with_offers(options, json) as remote:
        offers = remote.offers(composition_request(options))
    terminal.show(json, director_json.offers, render_offers, offers)


@app.command(cls=Command, short_help="Compose a server from blocks, or from counts and rates.")
@option_group
def compose(options: ComposeOptions, json: Json = None) -> None:
    """Give a server exactly the named blocks, or the best that meets counts and least rates.

    Exit code 1 if nothing in the pool can do it; the nearest offer that can be had is shown then.
    """
    from lanewise.api.director import composition_request
    from lanewise.report import director_json
    from lanewise.report.text.director import render_composition

    with _director_with_offers(options, json) as remote:
        system = remote.compose(composition_request(options))
    terminal.show(json, director_json.composition, render_composition, system)


@app.command(cls=Command, short_help="Add a block to a composed system while it runs.")
@option_group
def attach(options: MoveBlockOptions, json: Json = None) -> None:
    """Add a block to a composed system while it runs."""
    _move("attach", options, json)


@app.command(cls=Command, short_help="Take a block from a composed system while it runs.")
@option_group
def detach(options: MoveBlockOptions, json: Json = None) -> None:
    """Take a block from a composed system while it runs; refused while something there uses it."""
    _move("detach", options, json)


@app.command(cls=Command, short_help="Give all blocks of a composed system back.")
@option_group
def release(options: ReleaseOptions) -> None:
    """Give all blocks of a composed system back to the pool."""
    from lanewise.api.director import open_director

    with open_director(options) as remote:
        remote.release(options.composition)
    terminal.note(f"released {options.composition}")


@app.command(cls=Command, short_help="Show events as they come.")
@option_group
def watch(options: WatchDirectorOptions, json: Json = None) -> None:
    """Show the events of the service as they come, until Ctrl-C; with --json - one JSON object a line."""
    from itertools import islice
    from json import dumps

    from lanewise.api.director import open_director
    from lanewise.report import director_json
    from lanewise.report.text.director import render_event

    with suppress(KeyboardInterrupt), open_director(options) as remote:
        for event in islice(remote.events(options.after), options.count):
            terminal.out_now(dumps(director_json.event(event)) if json else render_event(event))


@app.command(cls=Command, short_help="Write everything that a director keeps to a file.")
@option_group
def backup(options: BackupOptions) -> None:
    """Write everything that a director of this machine keeps, but sessions, to a file; it may run meanwhile."""
    from lanewise.api.director import backup_director

    terminal.note(f"wrote {options.file}: {backup_director(options):,} rows")


@app.command(cls=Command, short_help="Fill an empty database from a backup.")
@option_group
def restore(options: BackupOptions) -> None:
    """Fill an empty database from a backup, all of it or nothing."""
    from lanewise.api.director import restore_director

    terminal.note(f"restored {restore_director(options):,} rows")


def _move(verb: str, options: MoveBlockOptions, json: str | None) -> None:
    from lanewise.api.director import open_director
    from lanewise.report import director_json
    from lanewise.report.text.director import render_composition

    with open_director(options) as remote:
        change = remote.attach if verb == "attach" else remote.detach
        system = change(options.composition, options.block)
    terminal.show(json, director_json.composition, render_composition, system)


@contextmanager
def _director_with_offers(options: CompositionOptions, json: str | None) -> Iterator[RemotePool]:
    """The director's pool; where it has no offer, why, and the nearest one, with exit code 1."""
    from lanewise.api.director import open_director
    from lanewise.pool.model import NoOffer
    from lanewise.report import director_json
    from lanewise.report.text.director import render_offers

    try:
        with open_director(options) as remote:
            yield remote
    except NoOffer as error:
        terminal.print_error(error.show())
        if error.nearest is not None:
            terminal.note("nearest offer:")
            terminal.show(json, director_json.offers, render_offers, [error.nearest])
        raise typer.Exit(1) from None
