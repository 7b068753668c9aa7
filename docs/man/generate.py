"""Writes the manual page lanewise.1 from the verbs and options themselves.

python docs/man/generate.py [--check]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from lanewise.cli.verbs import TERMINAL_OPTIONS, VERBS, app

PAGE = Path(__file__).with_name("lanewise.1")


def escaped(text: str) -> str:
    """A text for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group, each with the words that call it."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), f"{path} {name}")


def section(path: str, command: Any) -> Iterator[str]:
    """A command with its arguments and options."""
    yield f".SS {escaped(path.removeprefix('lanewise '))}"
    for number, paragraph in enumerate(re.split(r"\n\s*\n", str(command.help or ""))):
        yield from [".PP"] * (number > 0)
        if paragraph.startswith("\b"):
            yield from (".nf", *(escaped(line.strip()) for line in paragraph.strip("\b\n").split("\n")), ".fi")
        else:
            yield escaped(" ".join(paragraph.split()))
    sections = command.option_sections()
    for heading, entry in ((heading, entry) for heading, members in sections.items() for entry in members):
        if heading not in ("Arguments", "Options") and entry is sections[heading][0]:
            yield from (".PP", f"\\fB{escaped(heading)}\\fR")
        if entry.param_type_name == "argument":
            yield from (".TP", f"\\fI{escaped(str(entry.metavar))}\\fR", escaped(entry.help or ""))
            continue
        flags = ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in [*entry.opts, *entry.secondary_opts])
        metavar = "" if entry.is_flag else f" \\fI{escaped(str(entry.metavar or 'VALUE'))}\\fR"
        yield from (".TP", flags + metavar, escaped(entry.help or ""))


def page() -> str:
    """The whole page."""
    lines = [
        ".\\\" made by docs/man/generate.py", '.TH LANEWISE 1 "" "lanewise" "User Commands"', ".SH NAME",
        "lanewise \\- measure, predict and compose the data paths that feed GPUs", ".SH SYNOPSIS",
        "\\fBlanewise\\fR [\\fIOPTIONS\\fR] \\fIVERB\\fR [\\fIARGUMENTS\\fR]", ".SH VERBS",
    ]  # fmt: skip
    for verb, help in VERBS.items():
        lines += [".TP", f"\\fB{verb}\\fR", escaped(help)]
    lines.append(".SH OPTIONS OF EVERY VERB")
    for flag, help in [
        *TERMINAL_OPTIONS,
        ("-h, --help", "Show the help of a verb."),
        ("-V, --version", "Show the version."),
    ]:
        lines += [".TP", f"\\fB{escaped(flag)}\\fR", escaped(help)]
    lines.append(".SH OPTIONS OF EACH VERB")
    for path, command in commands(typer.main.get_command(app), "lanewise"):
        lines += section(path, command)
    lines += [
        ".SH EXIT STATUS", ".TP", "0", "fine", ".TP", "1",
        "a negative verdict: INVALID, does not fit, a slow path, a conclusion that does not hold", ".TP", "2",
        "bad input: two lines on stderr, error and hint", ".TP", "3",
        "check, fleet check: not everything could be judged", ".TP",
        "130, 143, 129", "ended by Ctrl\\-C, SIGTERM, SIGHUP",
        ".SH ENVIRONMENT", ".TP", "NO_COLOR", "if set, no colour codes; FORCE_COLOR asks for them everywhere",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
