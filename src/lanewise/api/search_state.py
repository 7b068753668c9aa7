"""The folder of a load test's results, and in it the runs that a search has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import CannotMeasure, InputError

if TYPE_CHECKING:
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.session import LoadTestSession
    from lanewise.options.loadtest import PeakOptions

SEARCH = "search.jsonl"


@contextmanager
def search_state(
    folder: Path, options: PeakOptions, prediction: float | None, session: LoadTestSession
) -> Iterator[tuple[Sequence[LoadGenResult], Callable[[LoadGenResult], None]]]:
    """The runs that an earlier search has finished, and a function that records another."""
    from lanewise import files
    from lanewise.loadtest import state

    path = folder / SEARCH
    setup = ", ".join(f"{name} {value}" for name, value in session.setup.items())
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    earlier = state.read(text, str(path), options, prediction, setup)
    if text != (merged := state.text_of(options, prediction, earlier, setup)):
        files.write_file(path, merged)  # whole or not at all: what is finished stays
    lines = files.Lines(path, more=True)
    try:
        yield earlier, lambda run: lines.write(state.line(run))
    finally:
        lines.close()


@contextmanager
def result_folder(results: str | Path | None, *written: str | Path | None) -> Iterator[Path]:
    """The folder of --results, else a new one named by the time; removed again if it stays empty.

    InputError where it or one of the files `written` later cannot be.
    """
    from lanewise import files

    for path in written:
        if path is not None:
            files.check_writable(path)
    folder = Path(results) if results is not None else Path(f"loadtest-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    new = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder {folder}: {error.strerror}", hint="name another one with --results") from None
    try:
        yield folder
    except CannotMeasure as error:
        if (folder / SEARCH).exists():  # finished runs, which a search with the same options takes up
            error.hint = "; ".join(filter(None, [error.hint, f"resume with --results {folder}"]))
        raise
    finally:
        with suppress(OSError):  # a folder that is not empty is needed
            for parent in new:
                parent.rmdir()
