"""Files and block devices to read, test files that nobody else sees, and the drives that hold them."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lanewise import units
from lanewise.errors import CannotMeasure, InputError, Location
from lanewise.probes.machine import SYS

_RESERVE = 64 << 20  # free bytes that stay in a file system in which a test file is made
MOUNTS = Path("/proc/self/mountinfo")
_SECTOR = 512  # the unit of /sys/block/*/stat, whatever the drive's own
_READ, _WRITTEN = 2, 6
DriveCounters = dict[str, tuple[int, int]]


@dataclass(slots=True)
class StorageFile:
    """One open file or block device: `buffered` for reads through the page cache, `direct` None until it is opened."""

    path: str
    name: str
    buffered: int
    bytes: int
    temporary: bool = False
    drives: tuple[str, ...] = ()
    holes: float = 0.0
    direct: int | None = None
    cache_visible: bool = True  # whether the kernel tells this user which part of it is in the page cache

    def open_direct(self) -> int:
        """The file descriptor a second time, without the page cache; CannotMeasure where that is not possible."""
        if self.direct is None:
            flags = (os.O_RDWR if self.temporary else os.O_RDONLY) | os.O_DIRECT
            try:
                self.direct = os.open(f"/proc/self/fd/{self.buffered}", flags)
            except OSError as error:
                raise self._no_direct(error) from None
        return self.direct

    @contextmanager
    def named(self) -> Iterator[None]:
        """Gives a test file a name within the block, as cuFile opens files once more by their path."""
        if not self.temporary:
            yield
            return
        name = f".lanewise-{os.getpid()}-{self.buffered}"
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # With src_dir_fd alone Python follows the link: else it would link the entry of /proc itself.
            os.link(f"/proc/self/fd/{self.buffered}", name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
            try:
                direct = os.open(name, os.O_RDWR | os.O_DIRECT, dir_fd=folder)
                if self.direct is not None:
                    os.close(self.direct)
                self.direct = direct
                yield
            finally:
                os.unlink(name, dir_fd=folder)
        except OSError as error:
            raise self._no_direct(error) from None
        finally:
            os.close(folder)

    def close(self) -> None:
        """Close it; this removes a test file."""
        for descriptor in (self.buffered, self.direct):
            if descriptor is not None:
                with suppress(OSError):
                    os.close(descriptor)

    def _no_direct(self, error: OSError) -> CannotMeasure:
        hint = "use --modes cached, or a file on another file system"
        if error.errno == errno.EINVAL:
            return CannotMeasure(
                "its file system has no direct reads (O_DIRECT)", location=Location(self.path), hint=hint
            )
        cause = f"cannot be opened for direct reads (O_DIRECT): {error.strerror}"
        return CannotMeasure(cause, location=Location(self.path), hint=hint)


@contextmanager
def open_files(paths: Sequence[str], io: int) -> Iterator[list[StorageFile]]:
    """Every file, readable and at least one I/O long; InputError or CannotMeasure names the one that is not."""
    files: list[StorageFile] = []
    with ExitStack() as stack:
        for path in paths:
            files.append(stack.enter_context(closing(_open(path))))
            if files[-1].bytes < io:
                size = units.show(files[-1].bytes, "B", 12)
                cause = f"holds {size}, less than one I/O of {units.show(io, 'B', 12)}"
                raise InputError(cause, location=Location(path), hint="use a smaller --io, or a larger file")
        _name(files)
        yield files


@contextmanager
def make_files(folders: Sequence[str], size: int) -> Iterator[list[StorageFile]]:
    """An empty test file without a name in each folder: however this process ends, nothing stays behind."""
    with ExitStack() as stack:
        files = [stack.enter_context(closing(_make(folder, size))) for folder in folders]
        _name(files)
        yield files


def _open(path: str) -> StorageFile:
    location = Location(path)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            hint = "name a file in it, or add --make 1GB for a test file there, removed afterwards"
            raise InputError("is a folder", location=location, hint=hint)
        if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
            raise InputError("is neither a file nor a block device", location=location, hint="name a file or a drive")
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError as error:
        hint = "choose a file that you may read; drives such as /dev/nvme0n1 are for root"
        raise CannotMeasure(f"cannot be read: {error.strerror}", location=location, hint=hint) from None
    except OSError as error:
        hint = "check the path" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "look at the kernel log (dmesg)"
        raise InputError(f"cannot be read: {error.strerror}", location=location, hint=hint) from None
    status = os.fstat(descriptor)
    visible = os.geteuid() in (0, status.st_uid) or os.access(path, os.W_OK)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
    except OSError:
        os.close(descriptor)
        hint = "name a file on a drive, or the drive"
        raise InputError("has no size (a file of /proc)", location=location, hint=hint) from None
    holes = _holes(descriptor, status)
    return StorageFile(path, path, descriptor, size, drives=drives_of(path), holes=holes, cache_visible=visible)


def _make(folder: str, size: int) -> StorageFile:
    location = Location(folder)
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            hint = "--make makes test files in folders: name its folder, or leave --make away to read the file"
            raise InputError("is not a folder", location=location, hint=hint)
        status = os.statvfs(folder)
        free = status.f_bavail * status.f_frsize
        if free < size + _RESERVE:
            needed, free_text, reserve = (units.show(amount, "GB") for amount in (size, free, _RESERVE))
            cause = f"no room for a test file of {needed}: {free_text} are free, of which {reserve} stay so"
            raise CannotMeasure(cause, location=location, hint="make a smaller one, or choose another folder")
        descriptor = _nameless(folder)
    except OSError as error:
        hint = "check the path" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "choose a folder you may write to"
        raise InputError(f"no test file can be made: {error.strerror}", location=location, hint=hint) from None
    return StorageFile(folder, folder, descriptor, size, temporary=True, drives=drives_of(folder))


def _nameless(folder: str) -> int:
    with suppress(OSError):
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    descriptor, path = tempfile.mkstemp(prefix=".lanewise-", dir=folder)  # a file system without O_TMPFILE
    os.unlink(path)
    return descriptor


def _holes(descriptor: int, status: os.stat_result) -> float:
    """The share of a file that is not on the drive."""
    if not stat.S_ISREG(status.st_mode) or not status.st_size or status.st_blocks * 512 >= status.st_size:
        return 0.0
    try:
        if os.lseek(descriptor, 0, os.SEEK_HOLE) >= status.st_size:
            return 0.0  # no hole: the file system compresses
    except OSError:
        return 0.0
    return 1.0 - status.st_blocks * 512 / status.st_size


def _name(files: Sequence[StorageFile]) -> None:
    """Name files by the last parts of their paths, as many as make them unique, in letters that flows can hold."""
    parts = [Path(os.path.abspath(file.path)).parts[1:] or ("root",) for file in files]
    twice = len({*parts}) < len(parts)
    if twice and not all(file.temporary for file in files):
        raise InputError("a file is named twice", hint="name each file once")
    if twice:  # several test files in one folder
        parts = [(*path[:-1], f"{path[-1]}-{number}") for number, path in enumerate(parts)]
    for depth in range(1, max(map(len, parts)) + 1):
        names = [re.sub(r"[^\w.\-]", "-", "-".join(path[-depth:])) for path in parts]
        if len({*names}) == len(names):
            break
    else:  # "a-b" and "a/b" read alike
        names = [f"{name}-{number}" for number, name in enumerate(names)]
    for file, name in zip(files, names, strict=True):
        file.name = name


def drives_of(path: str | Path, sys: Path = SYS, mounts: Path = MOUNTS) -> tuple[str, ...]:
    """The drives below a file or block device, through partitions, md, device mapper and loop; () if unknown."""
    status = os.stat(path)
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    return drives_of_number(os.major(number), os.minor(number), sys, mounts)


def drives_of_number(major: int, minor: int, sys: Path = SYS, mounts: Path = MOUNTS) -> tuple[str, ...]:
    """The same for a device number; that of a file system without one (btrfs) is looked up among the mounts."""
    device = sys / "dev" / "block" / f"{major}:{minor}"
    if not device.exists():
        source = _mounted_from(f"{major}:{minor}", mounts)
        return drives_of(source, sys, mounts) if source and stat.S_ISBLK(os.stat(source).st_mode) else ()
    return tuple(dict.fromkeys(_below(device.resolve(), sys, mounts)))


def drive_counters(drives: Sequence[str], sys: Path = SYS) -> DriveCounters:
    """Bytes read from and written to each drive since the machine started."""
    counters = {}
    for drive in drives:
        try:
            fields = (sys / "block" / drive / "stat").read_text().split()
            counters[drive] = (int(fields[_READ]) * _SECTOR, int(fields[_WRITTEN]) * _SECTOR)
        except (OSError, IndexError, ValueError):
            continue  # a drive that went away, or a kernel without block statistics
    return counters


def _below(device: Path, sys: Path, mounts: Path) -> list[str]:
    if (device / "partition").exists():
        device = device.parent
    slaves = sorted((device / "slaves").glob("*")) if (device / "slaves").is_dir() else []
    if slaves:
        return [name for slave in slaves for name in _below(slave.resolve(), sys, mounts)]
    try:
        backing = (device / "loop" / "backing_file").read_text().strip()
        return list(drives_of(backing, sys, mounts)) or [device.name]
    except OSError:
        return [device.name]


def _mounted_from(number: str, mounts: Path) -> str:
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if len(fields) > 2 and fields[2] == number and len(rest) > 1 and os.path.exists(rest[1]):
            return rest[1]
    return ""
