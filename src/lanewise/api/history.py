"""Runs of machines over time: kept in a folder or at any fsspec address, read back, looked through for drift."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from lanewise.errors import InputError, Location, import_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lanewise.results.drift import RowDrift
    from lanewise.results.run import Run

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MOST_NAMES = 20


def add_to_history(run: Run, address: str | Path, machine: str) -> str:
    """Keeps a run as ADDRESS/MACHINE/TIME.json, and returns that name; `address` is a folder or an fsspec address.

    Raises InputError where it cannot be written, and MissingDependency for an address without fsspec.

    >>> lanewise.add_to_history(lanewise.load_run("run.json"), "history", "rack7").startswith("history/rack7/")
    True
    """
    from lanewise.files import write_file
    from lanewise.results.codec import run_to_json

    name = f"{str(address).rstrip('/')}/{machine_folder(machine)}/{_time(run.created)}.json"
    if not _URL.match(str(address)):
        folder = Path(name).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "choose a folder that you may write to"
            raise InputError(f"cannot be made: {error.strerror}", location=Location(str(folder)), hint=hint) from None
        write_file(name, run_to_json(run))
        return name
    system, path = _remote(name)
    try:
        system.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        system.pipe_file(path, run_to_json(run).encode())
    except Exception as error:  # each store has errors of its own
        raise InputError(f"cannot be written: {error}", location=Location(name), hint="check the address") from None
    return name


def read_history(address: str | Path, machine: str | None = None) -> dict[str, list[tuple[str, Run]]]:
    """The runs of each machine, or of `machine`, by name of the file, oldest first.

    ADDRESS/MACHINE/*.json are a machine's; files in ADDRESS itself are those of one machine of the folder's name.

    Raises InputError for what cannot be read, FormatError for a file that is no run.

    >>> name = lanewise.add_to_history(lanewise.load_run("run.json"), "runs", "rack7")
    >>> list(lanewise.read_history("runs"))
    ['rack7']
    """
    from lanewise.results.codec import run_from_json

    machines: dict[str, list[tuple[str, Run]]] = {}
    wanted = None if machine is None else machine_folder(machine)
    for name, owner, text in _texts(str(address)):
        if wanted is None or owner == wanted:
            machines.setdefault(owner, []).append((name, run_from_json(text, name)))
    for runs in machines.values():
        runs.sort(key=lambda entry: entry[1].created)
    return dict(sorted(machines.items()))


def drift(
    address: str | Path, run: Run | str | Path | None = None, machine: str | None = None
) -> dict[str, list[RowDrift]]:
    """How the measured rows of each machine changed over its history, those with a change point first.

    `run` counts as the latest of `machine`. A change is one step in the mean of the logarithms, by least squares, with
    a permutation test. Raises InputError where there is no history, or a run of a machine that is not named.

    >>> run = lanewise.as_checked_run(lanewise.check(["copies.txt"], "falcon-4010-epyc"))
    >>> name = lanewise.add_to_history(run, "checks", "rack7")
    >>> lanewise.drift("checks")["rack7"][0].change is None  # one run says nothing of a change
    True
    """
    from lanewise.api.loading import run_of
    from lanewise.results.drift import row_drifts

    machines = read_history(address, machine)
    if machine is not None and not machines and (others := list(read_history(address))):
        more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
        hint = f"it holds {', '.join(others[:_MOST_NAMES])}{more}; name one of them with --machine"
        raise InputError(f"holds no runs of {machine}", location=Location(str(address)), hint=hint)
    if run is not None:
        if len(machines) > 1:
            hint = f"add --machine with one of {', '.join(list(machines)[:_MOST_NAMES])}"
            raise InputError("the history has several machines", location=Location(str(address)), hint=hint)
        latest = run_of(run)
        owner = next(iter(machines), machine or Path(str(address)).name)
        machines.setdefault(owner, []).append((latest.created, latest))
    if not machines:
        hint = "add runs with lanewise fleet check --history, or put files of lanewise check -o there"
        raise InputError("holds no runs", location=Location(str(address)), hint=hint)
    return {owner: row_drifts([entry for _, entry in runs]) for owner, runs in machines.items()}


def _texts(address: str) -> Iterator[tuple[str, str, str]]:
    """Each file of the history: name, machine, text."""
    from lanewise.files import read_file

    if not _URL.match(address):
        folder = Path(address)
        if not folder.is_dir():
            return
        for path in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")]):
            yield str(path), path.resolve().parent.name, read_file(path)
        return
    system, root = _remote(address)
    try:
        paths = [*system.glob(f"{root.rstrip('/')}/*.json"), *system.glob(f"{root.rstrip('/')}/*/*.json")]
        for path in sorted(paths):
            yield str(path), PurePosixPath(path).parent.name, system.cat_file(path).decode()
    except Exception as error:
        raise InputError(f"cannot be read: {error}", location=Location(address), hint="check the address") from None


def _remote(address: str) -> tuple[Any, str]:
    fsspec = import_extra("fsspec.core", "history", f"the history at {address} needs fsspec")
    try:
        system, path = fsspec.url_to_fs(address)
    except (ImportError, ValueError) as error:
        hint = "install what fsspec needs for it, such as s3fs, or name a folder"
        raise InputError(f"cannot be reached: {error}", location=Location(address), hint=hint) from None
    return system, str(path)


def _time(created: str) -> str:
    """A time as every store takes it in a name: 20261123T152622Z."""
    return re.sub(r"[-:]", "", created.replace("+00:00", "Z"))


def machine_folder(machine: str) -> str:
    """A machine's name as that of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", machine).strip(".") or "machine"
