"""What several verbs share: the option --json, commands and groups of commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[-|FILE.json]",
        help="Write the answer as JSON in SI units, to stdout or to FILE.json.",
    ),
]


class QuickGroup(TyperGroup):
    """A group whose own `--help` needs no conversion: Typer would load pydantic to turn None into a bool."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, off unless given."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


class Command(TyperCommand):
    """A verb whose help names arguments as they are typed, without braces and types of Python."""

    def get_help(self, ctx: Any) -> str:
        """The help as text."""
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: ""
        usage, line, rest = super().get_help(ctx).partition("\n")
        return usage.translate({ord("{"): None, ord("}"): None}).replace("......", "...") + line + rest
