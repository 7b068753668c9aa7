"""Options that several verbs have."""

from __future__ import annotations

from typing import Any

from lanewise.options.option import option
from lanewise.options.parse import settings


def parts_option() -> Any:
    """--parts: files of parts."""
    return option((), "Part file that overrides the catalogue; repeatable.", metavar="FILE", repeat=True)


def settings_option() -> Any:
    """--set: parameters of a system."""
    help = "Set a parameter of the system; repeatable."
    return option(dict, help, "--set", metavar="NAME=NUMBER", repeat=True, parse=settings)


def output_option() -> Any:
    """-o: the file of a text."""
    return option(None, "Write to this file.", "-o --output", metavar="FILE", default_text="stdout")
