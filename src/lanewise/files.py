"""Files of the user: read with a clear error, written whole or not at all, whatever signal comes meanwhile."""

from __future__ import annotations

import io
import os
import stat
import sys
from io import FileIO
from pathlib import Path

from lanewise.errors import InputError, Location
from lanewise.signal_deferral import SignalDeferral

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
    """A file that grows by whole lines, each on disk as soon as it is written.

    What was in it before stays if `more`, else until the first line takes its place; without a line there is no new
    file. A line that does not fit (a full disk) is taken back, so that the file stays readable; InputError says so.
    """

    def __init__(self, path: str | Path, more: bool = False) -> None:
        check_writable(path)
        self._path = path
        mode = _mode(path)
        self._regular = str(path) not in _STREAMS and (mode is None or stat.S_ISREG(mode))
        self._out: FileIO | None = None
        if not self._regular or (more and mode is not None):
            try:
                self._out = FileIO(path, "a")
            except OSError as error:
                raise self._error(error) from None

    def write(self, line: str) -> None:
        """One more line."""
        data = line.encode(errors="backslashreplace") + b"\n"
        try:
            if not self._regular:
                assert self._out is not None
                _write_all(self._out, data)
                return
            with SignalDeferral():
                if self._out is None:
                    target = Path(os.path.realpath(self._path))
                    _replace(target, data, _mode(target))
                    self._out = FileIO(target, "a")
                else:
                    self._append(data)
        except OSError as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Nothing more comes."""
        if self._out is not None:
            self._out.close()

    def _append(self, data: bytes) -> None:
        assert self._out is not None
        start = self._out.tell()
        try:
            _write_all(self._out, data)
        except OSError:
            self._out.truncate(start)
            raise

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
    with SignalDeferral():
        try:
            partial.write_bytes(data)
            if mode is not None:
                partial.chmod(stat.S_IMODE(mode))
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


def _write_all(out: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[out.write(left) :]
