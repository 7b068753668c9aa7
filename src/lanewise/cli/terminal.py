"""What the terminal gets: data on stdout, progress and errors on stderr, JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVarTuple

from lanewise.errors import CONTROLS, InputError, printable
from lanewise.report.screen import ESCAPE, Screen, colours

if TYPE_CHECKING:
    from pathlib import Path

_Values = TypeVarTuple("_Values")
_ESCAPE_CODE = "\033"
_RED, _BOLD, _OFF = "\033[31m", "\033[1m", "\033[0m"
_silenced: list[bool] = []


def be_quiet() -> None:
    """Show no progress and no notes from now on; errors remain."""
    _silenced.append(True)


def set_colour(when: str) -> None:
    """Colour the output always, never, or where a terminal wants it; InputError for another word."""
    if when not in ("auto", "always", "never"):
        raise InputError(f"--color is '{when}'", hint="write --color auto, --color always or --color never")
    if when == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"
    elif when == "never":
        os.environ.pop("FORCE_COLOR", None)
        os.environ["NO_COLOR"] = "1"


def out(text: str = "") -> None:
    """One piece of data, and a line end; of control characters only those of our own colours come through."""
    sys.stdout.write(f"{printable(text).replace(ESCAPE, _ESCAPE_CODE)}\n")


def out_now(text: str) -> None:
    """One piece of data that is needed while the program goes on."""
    out(text)
    sys.stdout.flush()


def print_text(render: Callable[..., str], *args: Any) -> None:
    """An answer as text that fits the terminal; `render` is a function of lanewise.report.text."""
    out(render(*args, screen=Screen.of(sys.stdout)))


def show(
    json: str | None, to_data: Callable[[*_Values], Any], render: Callable[[*_Values, Screen], str], *values: *_Values
) -> None:
    """Write the answer: as JSON to stdout where `json` is "-", else as text, and as JSON to the file `json`.

    `to_data` and `render` make the two of the same `values`.
    """
    if json == "-":
        return out(json_text(to_data(*values)))
    out(render(*values, Screen.of(sys.stdout)))
    return save(json, to_data, *values)


def save(json: str | None, to_data: Callable[[*_Values], Any], *values: *_Values) -> None:
    """Write the answer as JSON to the file `json`, if it is one."""
    if json not in (None, "-"):
        write(json, json_text(to_data(*values)) + "\n")


def json_of(name: str) -> Callable[..., Any]:
    """The function of that name of lanewise.report.json, which is imported when it is called: most answers are text."""

    def to_data(*values: Any) -> Any:
        return getattr(import_module("lanewise.report.json"), name)(*values)

    return to_data


def write(path: str | Path | None, text: str, advice: str = "") -> None:
    """Write a text to a file and say so; to stdout where no file is named."""
    from lanewise import files

    if path is None:
        return out(text.rstrip("\n"))
    files.write_file(path, text)
    return note(f"wrote {path}{advice}")


def json_text(data: Any) -> str:
    """Data for other programs as indented JSON: SI units unless it names another `unit`."""
    import json

    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)


def note(text: str) -> None:
    """A line about what is going on."""
    if _silenced:
        return
    _clear_status()
    _tell(f"{printable(text)}\n")


def always(text: str) -> None:
    """A line on stderr that is needed while the program goes on, with --quiet too."""
    _clear_status()
    _tell(f"{printable(text)}\n")


def print_error(text: str) -> None:
    """The text of an error, its first word marked on a terminal."""
    _clear_status()
    text = printable(text)
    if colours(sys.stderr) and text.startswith("error:"):
        text = f"{_RED}{_BOLD}error:{_OFF}{text[6:]}"
    _tell(f"{text}\n")


def overwrites() -> bool:
    """Whether progress is one line that is written over, and so may come often."""
    return sys.stderr.isatty()


def status(text: str) -> None:
    """Progress: on a terminal one line that is written over, else a line of its own."""
    if _silenced:
        return
    if overwrites():
        width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
        _tell(f"\r\033[K{printable(text)[:width]}")
    else:
        note(text)


def done() -> None:
    """Take the progress line away."""
    _clear_status()


def version() -> str:
    """The version of Lanewise, without loading any of it."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("lanewise")
    except PackageNotFoundError:
        return "unknown (not installed)"


def _clear_status() -> None:
    if sys.stderr.isatty():
        _tell("\r\033[K")


def _tell(text: str) -> None:
    # Nobody to tell (the window was closed, the log's disk is full) is no reason to stop a measurement.
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
