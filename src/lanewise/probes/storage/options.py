"""What a storage measurement is asked: which files, by which modes, into which memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from lanewise import units
from lanewise.errors import InputError, unknown_name

MODES = ("direct", "cached", "bounce", "cuFile")
ENGINES = ("auto", "io_uring", "psync")
_SMALLEST_IO = 512
_MOST_IN_FLIGHT = 32_768
_MOST_PIECES = 65_536  # a completion queue of io_uring holds no more
_TARGET = re.compile(r"^(?:host(?:0)?(?::(?P<node>\d+))?|gpu(?P<gpu>\d+))$")


@dataclass(frozen=True, slots=True)
class Target:
    """Where data goes: memory of this host, of NUMA node `node` if stated, or of GPU `gpu`."""

    node: int | None = None
    gpu: int | None = None

    @property
    def name(self) -> str:
        """As flows write it: host0, host0:1, gpu0."""
        if self.gpu is not None:
            return f"gpu{self.gpu}"
        return "host0" if self.node is None else f"host0:{self.node}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One measurement: `io` bytes at a time, `depth` in flight for each of `threads`, `size` bytes a run.

    Several files are read in parallel, or as one striped volume where `stripe` (bytes) is given. With `make` (bytes),
    paths are folders, in each of which a test file of that size is made that nobody else sees; only such files are
    written to. With `seconds` a run lasts that long instead of `size`.
    """

    paths: tuple[str, ...]
    io: int = 1 << 20
    size: int = 1_000_000_000
    threads: int = 4
    depth: int = 4
    modes: tuple[str, ...] = ()
    to: Target = Target()
    stripe: int | None = None
    make: int | None = None
    write: bool = False
    random: bool = False
    seconds: float = 0.0
    engine: str = "auto"
    optional: tuple[str, ...] = ()  # modes whose absence is told in a row; that of others is an error

    def checked(self) -> Reading:
        """The same with its modes settled; InputError or UnknownName for what has no meaning."""
        if not self.paths:
            raise InputError("no path is given", hint="name a file, a block device, or a folder and --make 1GB")
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        _check_numbers(self)
        _check_files(self)
        modes = _modes(self)
        return replace(self, modes=modes, optional=() if self.modes else ("cuFile",))

    @property
    def scenario(self) -> str:
        """What is done, without the mode: read, random write."""
        return f"{'random ' if self.random else ''}{'write' if self.write else 'read'}"


def parse_reading(paths: tuple[str, ...], **settings: Any) -> Reading:
    """A Reading of what users write: '8 MiB', 'host0:1', 'direct,cached'; FormatError or InputError if unreadable."""
    for name in ("io", "size", "stripe", "make"):
        if settings.get(name) is not None:
            settings[name] = round(units.parse(settings[name], "B"))
    if settings.get("seconds") is not None:
        settings["seconds"] = units.parse(settings["seconds"], "s")
        if settings["seconds"] <= 0:
            raise InputError("a run of no time reads nothing", hint="such as --seconds 2s; leave it away for --size")
    if isinstance(settings.get("modes"), str):
        settings["modes"] = tuple(mode.strip() for mode in settings["modes"].split(",") if mode.strip())
    if isinstance(settings.get("to"), str):
        settings["to"] = parse_target(settings["to"])
    return Reading(paths, **{name: value for name, value in settings.items() if value is not None}).checked()


def parse_target(text: str) -> Target:
    """Read host0, host:1 or gpu0; InputError for anything else."""
    match = _TARGET.match(text.strip())
    if not match:
        raise InputError(f"'{text}' is no memory to read into", hint="use host0, host0:1 (NUMA node 1) or gpu0")
    return Target(*(int(match[name]) if match[name] else None for name in ("node", "gpu")))


def _check_numbers(asked: Reading) -> None:
    if asked.threads < 1 or asked.depth < 1 or asked.threads * asked.depth > _MOST_IN_FLIGHT:
        cause = f"{asked.threads} threads with {asked.depth} I/Os in flight each cannot be had"
        raise InputError(cause, hint=f"both at least 1, and together at most {_MOST_IN_FLIGHT:,}")
    if asked.io < _SMALLEST_IO or asked.io > 1 << 30:
        raise InputError(f"an I/O of {asked.io:,} bytes cannot be had", hint="between --io 512B and --io 1GiB")
    if asked.io % _SMALLEST_IO:
        raise InputError(f"an I/O of {asked.io:,} bytes is no multiple of 512", hint="for example --io 1MiB")
    if asked.size < asked.io:
        raise InputError(f"{asked.size:,} bytes a run is less than one I/O", hint="raise --size, or lower --io")


def _check_files(asked: Reading) -> None:
    if asked.write and asked.make is None:
        cause = "writing is measured only in test files that this command makes itself"
        raise InputError(cause, hint="name a folder and the size of the test file: --make 1GB")
    if asked.write and asked.io % 4096:
        raise InputError("what is written is checked by pages of 4 KiB", hint="use an --io that is a multiple of 4KiB")
    if asked.make is not None and asked.make < asked.io:
        raise InputError(f"a test file of {asked.make:,} bytes holds no I/O", hint="raise --make, or lower --io")
    if asked.stripe is None:
        if asked.threads < len(asked.paths):
            cause = f"{len(asked.paths)} files in parallel need a thread each"
            raise InputError(cause, hint=f"use --threads {len(asked.paths)}, or --stripe 128KiB for one volume")
        return
    if len(asked.paths) < 2:
        raise InputError("a striped volume takes two or more files", hint="leave --stripe away, or name more files")
    if asked.stripe < _SMALLEST_IO or asked.stripe % _SMALLEST_IO:
        raise InputError(f"a stripe of {asked.stripe:,} bytes is no multiple of 512", hint="such as --stripe 128KiB")
    if (asked.io // asked.stripe + 2) * asked.depth > _MOST_PIECES:
        raise InputError("an I/O falls into too many stripes", hint="raise --stripe, or lower --io or --depth")


def _modes(asked: Reading) -> tuple[str, ...]:
    possible: tuple[str, ...] = MODES[:3] if asked.to.gpu is None else MODES[1:]
    if asked.write:
        possible = MODES[:2]
    for mode in asked.modes:
        if mode not in MODES:
            raise unknown_name("mode", mode, MODES)
        if mode not in possible:
            raise InputError(_why_not(mode, asked), hint=f"use --modes {','.join(possible)}")
    if asked.write and asked.to.gpu is not None:
        raise InputError("writing starts in host memory", hint="leave --to away")
    return asked.modes or possible


def _why_not(mode: str, asked: Reading) -> str:
    if asked.write:
        return f"writing has no mode '{mode}'"
    if mode == "cuFile":
        return "cuFile reads into GPU memory, not into that of the host"
    return "the kernel reads into host memory only; straight into a GPU it is cuFile that reads"


__all__ = ["ENGINES", "MODES", "Reading", "Target", "parse_reading", "parse_target"]
