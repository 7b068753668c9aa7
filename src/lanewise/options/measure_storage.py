"""Options of `lanewise measure storage`: files, modes, sizes, threads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lanewise import units
from lanewise.errors import InputError, unknown_name
from lanewise.options.option import Options, argument, option, words
from lanewise.options.sampling import SamplingRule

MODES = ("direct", "cached", "bounce", "cuFile")
ENGINES = ("auto", "io_uring", "psync")
_NOT_INTO = {
    "cuFile": "cuFile reads into GPU memory, not into that of the host",
    "direct": "the kernel reads into host memory only; straight into a GPU it is cuFile that reads",
}
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
class MeasureStorageOptions(Options):
    """Files or devices to read, `io` bytes at a time, with `depth` I/Os in flight for each of `threads`.

    Several files are read in parallel, or as one striped volume with `stripe`. With `make` the paths are folders: each
    gets a test file that nobody else sees, and only such files are written to. InputError or UnknownName for a wrong
    value.
    """

    paths: tuple[str, ...] = argument("PATH...", "Files or block devices; with --make, folders.", repeat=True)
    modes: tuple[str, ...] = option(
        (), "Modes: direct, cached, bounce, cuFile.", metavar="MODES", parse=words, default_text="all that are possible"
    )
    to: str = option("host0", "Memory to read into: host0, host0:1 (NUMA node 1) or gpu0.", metavar="MEMORY")
    io: int = option(1 << 20, "Size of one I/O.", metavar="SIZE", unit="B")
    size: int = option(1_000_000_000, "Size of one run, all files together.", metavar="SIZE", unit="B",
                       default_text="1 GB")  # fmt: skip
    threads: int = option(4, "Number of threads.", metavar="N")
    depth: int = option(4, "I/Os in flight for each thread.", metavar="N")
    random: bool = option(False, "In random order instead of one after the other.")
    seconds: float | None = option(None, "Length of a run, instead of --size.", metavar="TIME", unit="s")
    stripe: int | None = option(
        None, "Read all files as one volume with stripes of this size.", metavar="SIZE", unit="B"
    )
    make: int | None = option(
        None, "Make a test file of this size in each PATH, removed afterwards.", metavar="SIZE", unit="B"
    )
    write: bool = option(False, "Write instead of read; only into files of --make.")
    engine: str = option("auto", "auto, io_uring or psync (threads that call pread).", metavar="|".join(ENGINES))
    runs: int = option(10, "Most runs of each mode; fewer if they agree within 2 %.", metavar="N", minimum=1)

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if not self.paths:
            raise InputError("no path is given", hint="name a file, a block device, or a folder and --make 1GB")
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        storage_target(self.to)
        _check_numbers(self)
        _check_files(self)
        _check_modes(self)

    @property
    def rule(self) -> SamplingRule:
        """When a mode has enough runs; drives vary more than copies do."""
        return SamplingRule(min(5, self.runs), self.runs, 0.02)

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


def storage_options(paths: tuple[str, ...], **values: Any) -> MeasureStorageOptions:
    """Options from numbers or texts such as '8 MiB', '2 s', 'direct,cached'; FormatError or InputError."""
    for name, unit in {"io": "B", "size": "B", "stripe": "B", "make": "B", "seconds": "s"}.items():
        if isinstance(values.get(name), str):
            number = units.parse(values[name], unit)
            values[name] = round(number) if unit == "B" else number
    if isinstance(values.get("modes"), str):
        values["modes"] = words(values["modes"])
    return MeasureStorageOptions(paths, **values)


def storage_target(text: str) -> StorageTarget:
    """Read host0, host:1 or gpu0; InputError for anything else."""
    match = _TARGET.match(text.strip())
    if not match:
        raise InputError(f"'{text}' is no memory to read into", hint="use host0, host0:1 (NUMA node 1) or gpu0")
    return StorageTarget(*(int(match[name]) if match[name] else None for name in ("node", "gpu")))


def _check_numbers(options: MeasureStorageOptions) -> None:
    if options.seconds is not None and options.seconds <= 0:
        raise InputError("a run of no time reads nothing", hint="such as --seconds 2s; leave it away for --size")
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
            reason = f"writing has no mode '{mode}'" if options.write else _NOT_INTO[mode]
            raise InputError(reason, hint=f"use --modes {','.join(options.possible_modes)}")
    if options.write and options.target.gpu is not None:
        raise InputError("writing starts in host memory", hint="leave --to away")
