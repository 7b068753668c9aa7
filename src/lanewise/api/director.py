"""The director: pools of Redfish services as a client, and a director of this machine as a service."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import InputError, import_extra

if TYPE_CHECKING:
    from lanewise.director.client.pool import RemotePool
    from lanewise.director.drivers.base import Driver
    from lanewise.director.redfish.server import ListeningService
    from lanewise.director.store.database import Store
    from lanewise.options.director import (
        BackupOptions,
        CompositionOptions,
        DirectorAddressOptions,
        DirectorStoreOptions,
        ServeDirectorOptions,
    )
    from lanewise.perf.flow import Flow
    from lanewise.pool.model import CompositionRequest
    from lanewise.topology.model import System

_PORT = 8443
_CERTIFICATE = "certificate.pem"
_CAUSE = "a director needs packages that are not installed"


@contextmanager
def open_director(options: DirectorAddressOptions | None = None) -> Iterator[RemotePool]:
    """The pool of a Redfish composition service, a director of ours or another one, as a context manager that logs out.

    Its methods list the pool, ask for offers with predicted rates, compose, attach, detach, release, and follow events.
    Without `options.url` it is the service that LANEWISE_DIRECTOR_URL names, else the one at https://127.0.0.1:8443.

    Raises MissingDependency without httpx, ServiceUnreachable if nothing answers, RefusedByService if it refuses the
    account or composes nothing.

    >>> from lanewise.options.director import DirectorAddressOptions
    >>> with lanewise.open_director(DirectorAddressOptions(url="https://127.0.0.1:8443")) as pool:
    ...     print(pool.listing().servers)  # needs a service  # doctest: +SKIP
    """
    from lanewise.director.client.pool import RemotePool
    from lanewise.director.client.session import RedfishClient, ServiceAddress
    from lanewise.options.director import DEFAULT_URL, DirectorAddressOptions

    options = options or DirectorAddressOptions()
    own = director_directory() / _CERTIFICATE
    password = _password(options.password_file, "LANEWISE_DIRECTOR_PASSWORD")
    address = ServiceAddress(
        options.url or os.environ.get("LANEWISE_DIRECTOR_URL") or DEFAULT_URL,
        options.user if password else "",
        password,
        options.certificate or (own if own.exists() else None),
        not options.insecure,
    )
    with RedfishClient(address) as client:
        yield RemotePool(client)


def director_directory() -> Path:
    """Where a director of this user keeps its database, certificate and key: lanewise/director in XDG_STATE_HOME."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "lanewise" / "director"


def composition_request(options: CompositionOptions) -> CompositionRequest:
    """What the options ask for."""
    from lanewise.pool.model import CompositionRequest, PathRequirement
    from lanewise.topology.model import Kind

    needs = [
        PathRequirement(Kind(kind), count, rate, part, options.gpu_nics if kind == "gpu" else 0)
        for kind, count, rate, part in options.counts()
        if count
    ]
    return CompositionRequest(tuple(needs), options.server, options.blocks, getattr(options, "name", ""))


def serve_director(
    options: ServeDirectorOptions | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    ready: Callable[[ListeningService], None] = lambda _: None,
) -> None:
    """Serve a director over Redfish, with its web page, until SIGINT or SIGTERM.

    Its fabric is simulated, emulated by QEMU, or another Redfish service (`options.driver`). At the first start it
    makes a TLS certificate and the account 'admin'; `ready` is called with its address, certificate and that account's
    password when it listens, `say` with lines about what it does.

    Raises MissingDependency without the extra `director`, InputError for an address or a database that cannot be used.

    >>> from lanewise.options.director import ServeDirectorOptions
    >>> lanewise.serve_director(ServeDirectorOptions(demo=True))  # runs until it is interrupted  # doctest: +SKIP
    """
    from lanewise.options.director import ServeDirectorOptions

    options = options or ServeDirectorOptions()
    serve = import_extra("lanewise.director.redfish.server", "director", _CAUSE).serve
    from lanewise.control.service import parse_address
    from lanewise.director.engine import Director
    from lanewise.director.redfish.settings import ServiceSettings

    host, port = parse_address(options.listen, _PORT)
    with ExitStack() as stack:
        directory = director_directory() if options.directory is None else options.directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = directory
        if options.demo:
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lanewise-director-")))
        driver = stack.enter_context(_driver(options, kept, say))
        store = stack.enter_context(_store(options, kept))
        director = Director(store, driver)
        director.start()
        stack.callback(director.close)
        settings = ServiceSettings(directory, host, port, not options.no_tls, static=_page())
        serve(director, store, settings, ready, _drawing)


def backup_director(options: BackupOptions) -> int:
    """Write everything a director keeps, but sessions, to the file `options.file`; the number of rows.

    The director may run meanwhile. The file holds hashes of passwords, so only its owner may read it.
    Raises InputError for a file that cannot be written, StoreError for a database that cannot be opened.

    >>> from lanewise.options.director import BackupOptions
    >>> lanewise.backup_director(BackupOptions(file="pool.jsonl"))  # needs a director's database  # doctest: +SKIP
    """
    from lanewise import files

    backup = import_extra("lanewise.director.store.backup", "director", _CAUSE)
    with _store(options) as store:
        lines = list(backup.dump(store))
    files.check_writable(options.file)
    if not options.file.exists():
        os.close(os.open(options.file, os.O_CREAT | os.O_EXCL, 0o600))
    files.write_file(options.file, "\n".join(lines) + "\n")
    return len(lines) - 2  # heading and ending


def restore_director(options: BackupOptions) -> int:
    """Fill an empty database from a backup, all of it or nothing; the number of rows.

    Raises FormatError for what is no whole backup, StoreError if the database is not empty.

    >>> from lanewise.options.director import BackupOptions
    >>> lanewise.restore_director(BackupOptions(file="pool.jsonl"))  # needs a backup  # doctest: +SKIP
    """
    from lanewise import files

    backup = import_extra("lanewise.director.store.backup", "director", _CAUSE)
    lines = files.read_file(options.file).splitlines()
    with _store(options) as store:
        rows: int = backup.restore(store, lines)
    return rows


@contextmanager
def _store(options: DirectorStoreOptions, directory: Path | None = None) -> Iterator[Store]:
    """The director's database."""
    folder = directory or options.directory or director_directory()
    if not options.database:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = import_extra("lanewise.director.store.database", "director", _CAUSE).Store(
        options.database or folder / "director.sqlite"
    )
    try:
        yield store
    finally:
        store.close()


def _drawing(system: System, flows: Sequence[Flow]) -> str:
    """The fabric with the loads of all flows on its links."""
    from lanewise.api.systems import predict
    from lanewise.report.draw import draw
    from lanewise.results.outline import outline

    if not flows:
        return draw(outline(system))
    prediction = predict(system, flows)
    return draw(outline(system, prediction.loads, prediction.link_utilization))


def _page() -> Path | None:
    """The folder of the web page, None where this installation has none."""
    from lanewise import director

    folder = Path(director.__file__).parent / "web"
    return folder if (folder / "index.html").exists() else None


@contextmanager
def _driver(options: ServeDirectorOptions, directory: Path, say: Callable[[str], None]) -> Iterator[Driver]:
    """The driver that the options name, ready to be used."""
    from lanewise.api.loading import load_system
    from lanewise.options.director import QEMU, REDFISH

    if options.driver == REDFISH:
        from lanewise.director.client.session import RedfishClient, ServiceAddress
        from lanewise.director.drivers.redfish import RedfishDriver

        described = load_system(options.system, options.settings) if options.system else None
        password = _password(options.fabric_password_file, "LANEWISE_FABRIC_PASSWORD")
        user = options.fabric_user if password else ""
        with RedfishClient(ServiceAddress(options.fabric, user, password, options.fabric_certificate)) as client:
            yield RedfishDriver(client, system=described)
        return
    if options.driver == QEMU:
        from lanewise.director.drivers.qemu.driver import QemuDriver
        from lanewise.director.drivers.qemu.machine import MachineSize

        system = load_system(options.system or "emulated-two-servers", options.settings)
        size = MachineSize(accelerator=options.accelerator)
        driver = QemuDriver(system, directory / "servers", size=size, hardware=options.hardware)
        say(f"starting {len(system.hosts)} emulated servers")
        driver.start()
        with driver:
            yield driver
        return
    from lanewise.director.drivers.sim import SimDriver

    system = load_system(options.system or "composable-pool", options.settings)
    yield SimDriver(system, state=directory / "fabric.json")


def _password(file: Path | None, variable: str) -> str:
    """The password in the file, if one is named, else that of the environment, else ''."""
    if file is None:
        return os.environ.get(variable, "")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the password in {file}: {error}") from None
