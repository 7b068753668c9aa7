"""What `measure storage` measures: one type for the command line and for Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lanewise import units
from lanewise.errors import InputError, unknown_name
from lanewise.results.estimate import Rule

MODES = ("direct", "cached", "bounce", "cuFile")
ENGINES = ("auto", "io_uring", "psync")
_SMALLEST_IO = 512
_MOST_IN_FLIGHT = 32_768
_MOST_PIECES = 65_536  # a completion queue of io_uring holds no more
_TARGET = re.compile(r"^(?:host(?:0)?(?::(?P<node>\d+))?|gpu(?P<gpu>\d+))$")


@dataclass(frozen=True, slots=True)
class StorageTarget:
    """The memory that data is read into: of this host, of NUMA node `node` if stated, or of GPU `gpu`."""

    node: int | None = None
    gpu: int | None = None

    @property
    def name(self) -> str:
        """As flows write it: host0, host0:1, gpu0."""
        if self.gpu is not None:
            return f"gpu{self.gpu}"
        return "host0" if self.node is None else f"host0:{self.node}"


@dataclass(frozen=True, slots=True)
class MeasureStorageOptions:
    """Files or devices to read, `io` bytes at a time, with `depth` I/Os in flight for each of `threads`.

    A run reads `size` bytes, or lasts `seconds`. Several files are read in parallel, or as one striped volume with
    `stripe` (bytes). With `make` (bytes) the paths are folders: each gets a test file of that size that nobody else
    sees, and only such files are written to. No `modes`: all that are possible. `to` is host0, host0:1 or gpu0. `rule`
    says when a mode has enough runs; drives vary more than copies do. InputError or UnknownName for a wrong value.
    """

    paths: tuple[str, ...]
    modes: tuple[str, ...] = ()
    to: str = "host0"
    io: int = 1 << 20
    size: int = 1_000_000_000
    threads: int = 4
    depth: int = 4
    random: bool = False
    seconds: float = 0.0
    stripe: int | None = None
    make: int | None = None
    write: bool = False
    engine: str = "auto"
    rule: Rule = field(default_factory=lambda: Rule(least=5, most=10, width=0.02))

    def __post_init__(self) -> None:
        if not self.paths:
            raise InputError("no path is given", hint="name a file, a block device, or a folder and --make 1GB")
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        storage_target(self.to)
        _check_numbers(self)
        _check_files(self)
        _check_modes(self)

    @property
    def target(self) -> StorageTarget:
        """The memory that `to` names."""
        return storage_target(self.to)

    @property
    def possible_modes(self) -> tuple[str, ...]:
        """The modes that these options leave."""
        if self.write:
            return MODES[:2]
        return MODES[:3] if self.target.gpu is None else MODES[1:]

    @property
    def scenario(self) -> str:
        """What is done, without the mode: read, random write."""
        return f"{'random ' if self.random else ''}{'write' if self.write else 'read'}"


def storage_options(paths: tuple[str, ...], **settings: Any) -> MeasureStorageOptions:
    """Options from texts such as '8 MiB', '2 s', 'direct,cached'; None is the default. FormatError or InputError."""
    for name, unit in {"io": "B", "size": "B", "stripe": "B", "make": "B", "seconds": "s"}.items():
        if settings.get(name) is not None:
            value = units.parse(settings[name], unit)
            settings[name] = round(value) if unit == "B" else value
    if settings.get("seconds") is not None and settings["seconds"] <= 0:
        raise InputError("a run of no time reads nothing", hint="such as --seconds 2s; leave it away for --size")
    if isinstance(settings.get("modes"), str):
        settings["modes"] = tuple(mode.strip() for mode in settings["modes"].split(",") if mode.strip())
    return MeasureStorageOptions(paths, **{name: value for name, value in settings.items() if value is not None})


def storage_target(text: str) -> StorageTarget:
    """Read host0, host:1 or gpu0; InputError for anything else."""
    match = _TARGET.match(text.strip())
    if not match:
        raise InputError(f"'{text}' is no memory to read into", hint="use host0, host0:1 (NUMA node 1) or gpu0")
    return StorageTarget(*(int(match[name]) if match[name] else None for name in ("node", "gpu")))


def _check_numbers(options: MeasureStorageOptions) -> None:
    if options.threads < 1 or options.depth < 1 or options.threads * options.depth > _MOST_IN_FLIGHT:
        cause = f"{options.threads} threads with {options.depth} I/Os in flight each are not possible"
        raise InputError(cause, hint=f"both at least 1, and together at most {_MOST_IN_FLIGHT:,}")
    if options.io < _SMALLEST_IO or options.io > 1 << 30:
        raise InputError(f"an I/O of {options.io:,} bytes is not possible", hint="between --io 512B and --io 1GiB")
    if options.io % _SMALLEST_IO:
        raise InputError(f"an I/O of {options.io:,} bytes is no multiple of 512", hint="for example --io 1MiB")
    if options.size < options.io:
        raise InputError(f"{options.size:,} bytes a run is less than one I/O", hint="raise --size, or lower --io")


def _check_files(options: MeasureStorageOptions) -> None:
    if options.write and options.make is None:
        cause = "writing is measured only in test files that this command makes itself"
        raise InputError(cause, hint="name a folder and the size of the test file: --make 1GB")
    if options.write and options.io % 4096:
        raise InputError("what is written is checked by pages of 4 KiB", hint="use an --io that is a multiple of 4KiB")
    if options.make is not None and options.make < options.io:
        raise InputError(f"a test file of {options.make:,} bytes holds no I/O", hint="raise --make, or lower --io")
    if options.stripe is None:
        if options.threads < len(options.paths):
            cause = f"{len(options.paths)} files in parallel need a thread each"
            raise InputError(cause, hint=f"use --threads {len(options.paths)}, or --stripe 128KiB for one volume")
        return
    if len(options.paths) < 2:
        raise InputError("a striped volume takes two or more files", hint="leave --stripe away, or name more files")
    if options.stripe < _SMALLEST_IO or options.stripe % _SMALLEST_IO:
        raise InputError(f"a stripe of {options.stripe:,} bytes is no multiple of 512", hint="such as --stripe 128KiB")
    if (options.io // options.stripe + 2) * options.depth > _MOST_PIECES:
        raise InputError("an I/O falls into too many stripes", hint="raise --stripe, or lower --io or --depth")


def _check_modes(options: MeasureStorageOptions) -> None:
    for mode in options.modes:
        if mode not in MODES:
            raise unknown_name("mode", mode, MODES)
        if mode not in options.possible_modes:
            raise InputError(_why_not(mode, options), hint=f"use --modes {','.join(options.possible_modes)}")
    if options.write and options.target.gpu is not None:
        raise InputError("writing starts in host memory", hint="leave --to away")


def _why_not(mode: str, options: MeasureStorageOptions) -> str:
    if options.write:
        return f"writing has no mode '{mode}'"
    if mode == "cuFile":
        return "cuFile reads into GPU memory, not into that of the host"
    return "the kernel reads into host memory only; straight into a GPU it is cuFile that reads"
