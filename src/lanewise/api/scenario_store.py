"""The folder of finished scenarios: Parquet files, each written whole, that a resumed run reads back.

A file holds the rows of some scenarios, with columns for the user's own tools and one, `record`, with the whole answer
as JSON. `scenario` is the hash of everything that the answer depends on, the version of Lanewise included, so a
scenario whose description, parameters or version changed is another scenario.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from lanewise.errors import FormatError, InputError, Location, import_extra
from lanewise.results.codec import decode, encode
from lanewise.results.observation import Observation

AnswerT = TypeVar("AnswerT")

_SHARE = 0.02  # of the time since the start: what a killed driver loses, and how often a file is written
_SHORTEST = 1.0  # s
_AGAIN = "name another folder with --results, or remove this one"
# What other tools read of a row, in SI units.
OBSERVATION_COLUMNS = {
    "system": "string", "flow": "string", "metric": "string", "value": "double", "unit": "string", "low": "double",
    "high": "double", "limit": "string", "basis": "string", "note": "string",
}  # fmt: skip


class ScenarioStore(Generic[AnswerT]):
    """The finished scenarios of one folder, which one process at a time may use.

    `kind` is the type of an answer, a dataclass or a tuple of such; `rows` gives what other tools read of it, with the
    `columns`, whose types Arrow names (int64, double, string).
    """

    def __init__(
        self, folder: Path, kind: Any, columns: Mapping[str, str],
        rows: Callable[[AnswerT], Sequence[Mapping[str, Any]]],
    ) -> None:  # fmt: skip
        self._arrow = import_extra("pyarrow", "parquet", "--results writes Parquet with pyarrow")
        self._parquet = import_extra("pyarrow.parquet", "parquet", "--results writes Parquet with pyarrow")
        self.folder = folder
        self._kind, self._rows_of = kind, rows
        names = {"scenario": "string", **columns, "record": "string"}
        self._schema = self._arrow.schema([(name, self._arrow.type_for_alias(kind)) for name, kind in names.items()])
        self._rows: list[dict[str, Any]] = []
        self._start = self._written = time.monotonic()
        self._lock = _lock(folder)
        self._files = sorted(folder.glob("part-*.parquet"))

    def read(self, keys: Collection[str]) -> dict[str, AnswerT]:
        """The finished scenarios by their hash; InputError where one is not among `keys`: it is of another run."""
        answers: dict[str, AnswerT] = {}
        for path in self._files:
            table = self._table(path)
            for key, record in zip(*(table.column(name).to_pylist() for name in ("scenario", "record")), strict=True):
                if key not in keys:
                    raise InputError("holds scenarios of another command, or of another version of Lanewise",
                                     location=Location(str(self.folder)), hint=_AGAIN)  # fmt: skip
                if record is not None:
                    answers[key] = decode(self._kind, json.loads(record), "record", str(path))
        return answers

    def add(self, key: str, answer: AnswerT) -> None:
        """One more finished scenario; on disk after a second, or after 2 % of the time since the start."""
        record = json.dumps(encode(answer, "record"), ensure_ascii=False, allow_nan=False)
        for number, row in enumerate(self._rows_of(answer)):
            self._rows.append({"scenario": key, **row, "record": None if number else record})
        now = time.monotonic()
        if now - self._written >= max(_SHORTEST, _SHARE * (now - self._start)):
            self.flush()

    def flush(self) -> None:
        """Write what is finished and not yet on disk."""
        self._written = time.monotonic()
        if not self._rows:
            return
        path = self.folder / f"part-{_number(self._files) + 1:05d}.parquet"
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("wb") as out:
                table = self._arrow.Table.from_pylist(self._rows, self._schema)
                self._parquet.write_table(table, out, compression="zstd")
                os.fsync(out.fileno())
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise InputError(f"cannot be written: {error.strerror}", location=Location(str(path)),
                             hint="make room, or choose another folder") from None  # fmt: skip
        self._files.append(path)
        self._rows.clear()

    def close(self) -> None:
        """Write the rest and let other processes use the folder."""
        try:
            self.flush()
        finally:
            os.close(self._lock)

    def __enter__(self) -> ScenarioStore[AnswerT]:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _table(self, path: Path) -> Any:
        try:
            return self._parquet.read_table(path, columns=["scenario", "record"])
        except (OSError, ValueError) as error:  # those of Arrow are of these kinds
            cause = f"is not a file of finished scenarios: {str(error).splitlines()[0]}"
            raise FormatError(cause, location=Location(str(path)), hint=_AGAIN) from None


def _number(files: Sequence[Path]) -> int:
    return int(files[-1].stem.removeprefix("part-")) if files else 0


def _lock(folder: Path) -> int:
    """Make the folder, and its lock, which the kernel takes back when the process ends however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=Location(str(folder)),
                         hint="choose another folder") from None  # fmt: skip
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InputError("another process writes to this folder", location=Location(str(folder)),
                         hint="wait for it, or name another folder") from None  # fmt: skip
    return lock


def row_columns(row: Observation) -> dict[str, Any]:
    """OBSERVATION_COLUMNS of a row."""
    return {name: getattr(row, name) for name in OBSERVATION_COLUMNS}
