"""Options that several verbs share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli.shared import QuickGroup as QuickGroup
from lanewise.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise.catalog import Catalog
    from lanewise.topology.model import System


def _systems(incomplete: str) -> list[str]:
    from lanewise import api

    return [name for name in api.ready_systems() if name.startswith(incomplete)]


def _studies(incomplete: str) -> list[str]:
    from lanewise import api

    return [name for name in [*api.ready_studies(), "all"] if name.startswith(incomplete)]


SystemName = Annotated[
    str,
    typer.Argument(metavar="SYSTEM", autocompletion=_systems, help="A ready system (lanewise system list) or a file."),
]
StudyNames = Annotated[
    list[str],
    typer.Argument(
        metavar="STUDY...",
        autocompletion=_studies,
        help="Ready studies (lanewise study list), files, or all.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=NUMBER", help="Set a parameter of the system; may be repeated."),
]
Parts = Annotated[
    list[Path] | None,
    typer.Option("--parts", metavar="FILE", help="A part file laid over the catalogue; may be repeated."),
]
NoP2p = Annotated[bool, typer.Option("--no-p2p", help="Two GPUs exchange data through host memory.")]
Json = Annotated[bool, typer.Option("--json", help="Answer as JSON (SI units) instead of a table.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")]


def words(text: str) -> list[str]:
    """'copy, read' as its words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def settings(pairs: Sequence[str] | None) -> dict[str, int]:
    """'path=4' and 'gpus=2' as a mapping; FormatError names the pair that is none."""
    found: dict[str, int] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        try:
            found[name.strip()] = int(value)
        except ValueError:
            cause = f"'{pair}' does not set a parameter" if not equals else f"'{value}' is not a whole number"
            raise FormatError(cause, hint="write --set NAME=NUMBER, such as --set path=4") from None
    return found


def load(name: str, pairs: Sequence[str] | None, parts: Sequence[Path] | None = None) -> System:
    """The system of that name or file with its settings, over the catalogue with the user's parts."""
    from lanewise import api

    return api.load_system(name, settings(pairs), catalog(parts))


def catalog(parts: Sequence[Path] | None) -> Catalog:
    """The catalogue with the user's part files over it."""
    from lanewise import api

    return api.load_catalog(parts or ())
