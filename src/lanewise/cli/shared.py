"""What several verbs share: the option --json, and groups of verbs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
