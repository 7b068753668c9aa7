"""Reads a machine into a System: from dumps and captures, or this one from /sys."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.arguments import one_or_more
from lanewise.catalog import builtin
from lanewise.errors import InputError, Location, MissingDependency
from lanewise.files import read_bytes

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.capture import Capture
    from lanewise.discovery.facts import DumpFacts


def discover(
    files: str | Path | Sequence[str | Path] = (), catalog: Catalog | None = None, name: str = ""
) -> Discovery:
    """A machine's system description, read from its dumps and captures together; without `files` from this machine's
    /sys.

    A dump is the output of lspci, nvidia-smi topo, hwloc, NCCL, ibstat, a capture or a copy of /sys; its kind is
    recognised by content. `name` names the system.

    Raises InputError for a file that cannot be read or shows no GPU, network card or drive, FormatError for one that is
    not a dump, and MissingDependency on a machine without /sys.

    >>> lanewise.discover("machine.tar.zst", name="h200-pair").system
    <System h200-pair: 7 devices, 7 links>
    """
    several = one_or_more(files)
    if several:
        dumps = [dump for path in several for dump in read_dumps(Path(path))]
        return from_dumps(dumps, catalog, name or "machine")
    return _of_capture(this_machine(), catalog, name)


def capture(
    path: str | Path, under_load: bool | None = None, catalog: Catalog | None = None, name: str = ""
) -> Discovery:
    """This machine's description, as `discover` gives it, after writing everything that was read to the tar archive
    `path`.

    `discover` reads the archive on any machine. Its suffix selects the compression: .tar.zst, .tar.gz, .tar.xz,
    .tar.bz2 or .tar. `under_load` records whether copies ran meanwhile (None: unknown), as idle links lower their
    speed. The archive has no serial numbers, UUIDs, hardware addresses or host names.

    Raises InputError for another suffix, a path that cannot be written or a machine without GPU, network card and
    drive, and MissingDependency without /sys.

    >>> lanewise.capture("machine.tar.zst").system.devices  # reads this machine  # doctest: +SKIP
    """
    from lanewise import files
    from lanewise.discovery.capture import SUFFIXES, write_tar

    suffix = next((suffix for suffix in SUFFIXES if str(path).endswith(suffix)), None)
    if suffix is None:
        hint = f"for example machine.tar.zst; known are {', '.join(SUFFIXES)}"
        raise InputError(
            "its suffix does not say what kind of tar it should be", location=Location(str(path)), hint=hint
        )
    files.check_writable(path)
    machine = this_machine(under_load)
    discovery = _of_capture(machine, catalog, name)
    files.write_bytes(path, write_tar(machine, suffix))
    return discovery


def this_machine(under_load: bool | None = None) -> Capture:
    """All that discovery reads of this machine; MissingDependency if it has no /sys."""
    from lanewise.api.collecting import collect, query_nvml
    from lanewise.api.provenance import now, version
    from lanewise.discovery import nvml

    if not Path("/sys/devices").is_dir():
        hint = "name dumps of the machine with --from"
        raise MissingDependency("this machine has no /sys to read", hint=hint)
    collected = collect(Path("/"), "this machine")
    record = {"lanewise": version(), "made": now(), "kernel": platform.release(), "under_load": under_load}
    facts = query_nvml()
    extra = {
        "capture.json": nvml.as_text(record),
        **({} if facts is None else {"nvml.json": nvml.as_text(facts)}),
    }
    return replace(collected, texts={**collected.texts, **extra})


def _of_capture(taken: Capture, catalog: Catalog | None, name: str) -> Discovery:
    from lanewise.discovery.dumps import read_capture

    return from_dumps(read_capture(taken), catalog, name or "this-machine")


def from_dumps(dumps: Sequence[DumpFacts], catalog: Catalog | None, name: str) -> Discovery:
    """The machine that these dumps describe together."""
    from lanewise.discovery.build import discover as build

    return build(dumps, catalog if catalog is not None else builtin(), name)


def read_dumps(path: Path) -> tuple[DumpFacts, ...]:
    from lanewise.discovery.dumps import read_capture, read_dump

    if path.is_dir():
        from lanewise.api.collecting import collect

        tops = [folder for folder in (path, *sorted(path.glob("*/"))) if (folder / "sys").is_dir()]
        return read_capture(collect(tops[0] if tops else path, str(path)))
    return read_dump(read_bytes(path), str(path))
