"""Options of a dataclass: Typer sees one for each field, the verb gets the whole."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, get_type_hints

import pytest
import typer

from lanewise.cli.spread import spread


@dataclass(frozen=True, slots=True)
class Base:
    size: Annotated[int, typer.Option(help="how large")] = 3


@dataclass(frozen=True, slots=True)
class Both(Base):
    colour: str = "red"


def test_fields_stand_in_the_place_of_their_dataclass_and_arrive_as_one() -> None:
    got: list[object] = []

    @spread
    def verb(*, first: int = 1, both: Both, last: bool = False) -> None:
        """What it does."""
        got.extend((first, both, last))

    told = inspect.signature(verb).parameters
    assert {each.name: each.default for each in told.values()} == {
        "first": 1, "size": 3, "colour": "red", "last": False,
    }  # fmt: skip
    hints = get_type_hints(verb, include_extras=True)
    assert hints == {each.name: each.annotation for each in told.values()}
    assert hints["size"].__metadata__[0].help == "how large"
    assert inspect.getdoc(verb) == "What it does."
    verb(first=2, size=4, colour="blue", last=True)
    assert got == [2, Both(4, "blue"), True]


def test_two_options_of_one_name_are_refused() -> None:
    def verb(*, both: Both, size: int = 1) -> None: ...

    with pytest.raises(ValueError, match="size"):
        spread(verb)
