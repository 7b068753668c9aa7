"""Files of the user: read with a clear error, written whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path

from lanewise.errors import InputError, Location

# No file that Lanewise reads is larger; what is longer is not read at all.
LARGEST = 512 * 2**20


def read_file(path: str | Path) -> str:
    """The text of a file; InputError with a hint if it cannot be read."""
    try:
        return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding="utf-8").read()
    except UnicodeDecodeError as error:
        raise InputError(
            "not a text file (UTF-8)", location=Location(str(path)), hint=f"byte {error.start} is not text"
        ) from None


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file of at most LARGEST; InputError with a hint if it is larger or cannot be read."""
    try:
        with open(path, "rb") as stream:
            data = b"" if os.fstat(stream.fileno()).st_size > LARGEST else stream.read(LARGEST + 1)
            size = len(data) or os.fstat(stream.fileno()).st_size
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {words}", location=Location(str(path)), hint="check the path") from None
    if size > LARGEST:
        cause = f"holds more than {LARGEST // 2**20} MiB, the most that Lanewise reads of a file"
        raise InputError(cause, location=Location(str(path)), hint="give the output of one run, of one machine")
    return data


def write_file(path: str | Path, text: str) -> None:
    """Write a text whole or not at all, as `write_bytes` does."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all: to a temporary file, then renamed; InputError if that fails.

    A link leads to its target, which is replaced. Devices, FIFOs and streams such as /dev/stdout are written through.
    """
    check_writable(path)
    try:
        stream = _STREAMS.get(str(path))
        mode = _mode(path)
        if stream is not None:
            sys.stdout.flush()
            with open(os.dup(stream), "wb") as out:
                out.write(data)
        elif mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as out:
                out.write(data)
        else:
            _replace(Path(os.path.realpath(path)), data, mode)
    except BrokenPipeError:
        raise  # the reader has left, which is no fault of the path
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=Location(str(path)), hint="choose another path"
        ) from None


def check_writable(path: str | Path) -> None:
    """InputError with a hint for a path that could not be written; nothing is written or opened."""
    location = Location(str(path))
    if str(path) in _STREAMS:
        return
    try:
        mode = _mode(path)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=location, hint="choose another path"
        ) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError("is a folder, not a file", location=location, hint=f"for example {Path(path) / 'report.html'}")
    if mode is not None and not stat.S_ISREG(mode):
        if not os.access(path, os.W_OK):
            raise InputError("cannot be written", location=location, hint="choose a file that you may write to")
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():
        raise InputError(f"there is no folder {folder}", location=location, hint=f"make it first: mkdir -p {folder}")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("cannot be written", location=location, hint="choose a folder that you may write to")


class Lines:
    """A file that grows by whole lines, each on disk as soon as it is written; what stood in it before is replaced
    unless `more`.

    A line that does not fit (a full disk) is taken back, so that the file stays readable; InputError says so.
    """

    def __init__(self, path: str | Path, more: bool = False) -> None:
        check_writable(path)
        self._path = path
        try:
            self._out = open(path, "ab" if more else "wb", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._error(error) from None
        self._regular = stat.S_ISREG(os.fstat(self._out.fileno()).st_mode)

    def write(self, line: str) -> None:
        """One more line."""
        data = memoryview(line.encode() + b"\n")
        start = self._out.tell() if self._regular else 0
        try:
            while data:
                data = data[self._out.write(data) :]
        except OSError as error:
            if self._regular:
                self._out.truncate(start)
            raise self._error(error) from None

    def close(self) -> None:
        """Nothing more comes; a file without a line is taken away."""
        empty = self._regular and not self._out.tell()
        self._out.close()
        if empty:
            Path(os.path.realpath(self._path)).unlink(missing_ok=True)

    def _error(self, error: OSError) -> InputError:
        hint = "make room, or choose another path"
        return InputError(f"cannot be written: {error.strerror}", location=Location(str(self._path)), hint=hint)


_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/1": 1, "/dev/fd/2": 2}


def _mode(path: str | Path) -> int | None:
    """What a path leads to, None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")  # others may write the same file now
    try:
        partial.write_bytes(data)
        if mode is not None:
            partial.chmod(stat.S_IMODE(mode))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
