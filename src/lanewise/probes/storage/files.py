"""Files and block devices to be read, opened with clear errors, and test files that nobody else sees."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.errors import CannotMeasure, InputError, Location
from lanewise.probes.storage.drives import drives_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_LEFT_FREE = 64 << 20  # of a file system in which a test file is made


@dataclass(slots=True)
class Source:
    """One open file or block device: `buffered` for reads through the page cache, `direct` None until asked for."""

    path: str
    name: str
    buffered: int
    bytes: int
    made: bool = False
    drives: tuple[str, ...] = ()
    holes: float = 0.0
    direct: int | None = None
    knows_cache: bool = True  # whether the kernel tells this user what of it lies in the page cache

    def open_direct(self) -> int:
        """The file once more, without the page cache; CannotMeasure where that is not to be had."""
        if self.direct is None:
            flags = (os.O_RDWR if self.made else os.O_RDONLY) | os.O_DIRECT
            try:
                self.direct = os.open(f"/proc/self/fd/{self.buffered}", flags)
            except OSError as error:
                raise self._no_direct(error) from None
        return self.direct

    def close(self) -> None:
        """Nothing more is read; a test file is gone with that."""
        for opened in (self.buffered, self.direct):
            if opened is not None:
                with contextlib.suppress(OSError):
                    os.close(opened)

    def _no_direct(self, error: OSError) -> CannotMeasure:
        hint = "use --modes cached, or a file on another file system"
        if error.errno == errno.EINVAL:
            return CannotMeasure(
                "its file system has no direct reads (O_DIRECT)", location=Location(self.path), hint=hint
            )
        cause = f"cannot be opened for direct reads (O_DIRECT): {error.strerror}"
        return CannotMeasure(cause, location=Location(self.path), hint=hint)


@dataclass(slots=True)
class Sources:
    """All files of one measurement; leaving the `with` closes them and removes test files."""

    all: list[Source] = field(default_factory=list)

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Test files are gone with that, as they have no name."""
        for source in self.all:
            source.close()


def open_all(paths: Sequence[str], io: int) -> Sources:
    """Every file, readable and at least one I/O long; InputError or CannotMeasure names the one that is not."""
    sources = Sources()
    try:
        for path in paths:
            sources.all.append(_open(path))
            if sources.all[-1].bytes < io:
                size = units.show(sources.all[-1].bytes, "B", 12)
                cause = f"holds {size}, less than one I/O of {units.show(io, 'B', 12)}"
                raise InputError(cause, location=Location(path), hint="use a smaller --io, or a larger file")
    except BaseException:
        sources.close()
        raise
    _name(sources.all)
    return sources


def make_all(folders: Sequence[str], size: int) -> Sources:
    """An empty test file in each folder, without a name already: however this process ends, nothing stays behind."""
    sources = Sources()
    try:
        for folder in folders:
            sources.all.append(_make(folder, size))
    except BaseException:
        sources.close()
        raise
    _name(sources.all)
    return sources


def _open(path: str) -> Source:
    location = Location(path)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            hint = "name a file in it, or add --make 1GB for a test file there, removed afterwards"
            raise InputError("is a folder", location=location, hint=hint)
        if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
            raise InputError("is neither a file nor a block device", location=location, hint="name a file or a drive")
        opened = os.open(path, os.O_RDONLY)
    except PermissionError as error:
        hint = "choose a file that you may read; drives such as /dev/nvme0n1 are for root"
        raise CannotMeasure(f"cannot be read: {error.strerror}", location=location, hint=hint) from None
    except OSError as error:
        hint = "check the path" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "look at the kernel log (dmesg)"
        raise InputError(f"cannot be read: {error.strerror}", location=location, hint=hint) from None
    seen = os.fstat(opened)
    own = os.geteuid() in (0, seen.st_uid) or os.access(path, os.W_OK)
    try:
        size = os.lseek(opened, 0, os.SEEK_END)
    except OSError:
        os.close(opened)
        hint = "name a file on a drive, or the drive"
        raise InputError("has no size (a file of /proc)", location=location, hint=hint) from None
    return Source(path, path, opened, size, drives=drives_of(path), holes=_holes(opened, seen), knows_cache=own)


def _make(folder: str, size: int) -> Source:
    location = Location(folder)
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            hint = "--make makes test files in folders: name its folder, or leave --make away to read the file"
            raise InputError("is not a folder", location=location, hint=hint)
        free = os.statvfs(folder)
        room = free.f_bavail * free.f_frsize
        if room < size + _LEFT_FREE:
            shown = [units.show(each, "GB") for each in (size, room, _LEFT_FREE)]
            cause = f"no room for a test file of {shown[0]}: {shown[1]} are free, of which {shown[2]} stay so"
            raise CannotMeasure(cause, location=location, hint="make a smaller one, or choose another folder")
        opened = _nameless(folder)
    except OSError as error:
        hint = "check the path" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "choose a folder you may write to"
        raise InputError(f"no test file can be made: {error.strerror}", location=location, hint=hint) from None
    return Source(folder, folder, opened, size, made=True, drives=drives_of(folder))


def _nameless(folder: str) -> int:
    with contextlib.suppress(OSError):
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    opened, path = tempfile.mkstemp(prefix=".lanewise-", dir=folder)  # a file system without O_TMPFILE
    os.unlink(path)
    return opened


def _holes(opened: int, seen: os.stat_result) -> float:
    """Which share of a file is not on the drive."""
    if not stat.S_ISREG(seen.st_mode) or not seen.st_size or seen.st_blocks * 512 >= seen.st_size:
        return 0.0
    try:
        if os.lseek(opened, 0, os.SEEK_HOLE) >= seen.st_size:
            return 0.0  # no hole: the file system compresses
    except OSError:
        return 0.0
    return 1.0 - seen.st_blocks * 512 / seen.st_size


def _name(sources: Sequence[Source]) -> None:
    """Name each by the last parts of its path, as many as tell all apart, in letters that flows can hold."""
    parts = [Path(os.path.abspath(source.path)).parts[1:] or ("root",) for source in sources]
    twice = len({*parts}) < len(parts)
    if twice and not all(source.made for source in sources):
        raise InputError("a file is named twice", hint="name each file once")
    if twice:  # several test files in one folder
        parts = [(*each[:-1], f"{each[-1]}-{number}") for number, each in enumerate(parts)]
    for taken in range(1, max(len(each) for each in parts) + 1):
        names = [re.sub(r"[^\w.\-]", "-", "-".join(each[-taken:])) for each in parts]
        if len({*names}) == len(names):
            break
    else:  # "a-b" and "a/b" read alike
        names = [f"{name}-{number}" for number, name in enumerate(names)]
    for source, name in zip(sources, names, strict=True):
        source.name = name
