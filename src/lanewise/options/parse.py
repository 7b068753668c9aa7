"""Reads the texts of options: lists of words and numbers, NAME=NUMBER pairs."""

from __future__ import annotations

from collections.abc import Iterable

from lanewise import units
from lanewise.errors import FormatError


def words(text: str) -> tuple[str, ...]:
    """'copy, read' as its words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def whole_number(text: str) -> int:
    """'300k' or '300,000' as 300000; FormatError for what is no whole number."""
    try:
        number = units.parse(text, "1")
    except FormatError:
        number = 0.5
    if not number.is_integer():
        raise FormatError(f"'{text}' is not a whole number", hint="write digits, such as 8 or 300k")
    return int(number)


def whole_numbers(text: str) -> tuple[int, ...]:
    """'1,2,4' as numbers; FormatError for what is none."""
    return tuple(whole_number(word) for word in words(text))


def sizes(text: str) -> tuple[int, ...]:
    """'4 KiB, 1 MiB' in bytes; FormatError for what is no size."""
    return tuple(round(units.parse(word, "B")) for word in words(text))


def settings(pairs: Iterable[str]) -> dict[str, int]:
    """'path=4' and 'gpus=2' as a mapping; FormatError names the pair that is none."""
    mapping: dict[str, int] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            mapping[name.strip()] = int(value)
        except ValueError:
            cause = f"'{pair}' does not set a parameter" if not equals else f"'{value}' is not a whole number"
            raise FormatError(cause, hint="write --set NAME=NUMBER, such as --set path=4") from None
    return mapping


def parameter_values(text: str) -> tuple[str, tuple[int, ...]]:
    """'path=1..4' or 'path=1,2,4' as a parameter and its values; FormatError for anything else."""
    name, _, values = text.partition("=")
    first, dots, last = values.partition("..")
    numbers = tuple(range(whole_number(first), whole_number(last) + 1)) if dots else whole_numbers(values)
    if not name.strip() or not numbers:
        raise FormatError(f"'{text}' names no values of a parameter", hint="write --sweep path=1..4 or path=1,2,4")
    return name.strip(), numbers
