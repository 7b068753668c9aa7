"""One option: help, flag, unit, range and choices, kept as metadata of a dataclass field; and how texts are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar

from lanewise import units
from lanewise.errors import FormatError, InputError, unknown_name

_KEY = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """How an option is written. `unit` is the SI unit of its value; `parse` reads the text where a unit is not enough.

    `default_text` is what help shows for a default that is a rule ("all cores but one") rather than a value.
    """

    help: str
    flags: tuple[str, ...]
    metavar: str = ""
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    repeat: bool = False
    argument: bool = False
    default_text: str = ""
    complete: str = ""

    @property
    def flag(self) -> str:
        """The long flag, '--batch'; the metavar of an argument."""
        return self.metavar if self.argument else self.flags[-1]


def option(default: Any, help: str, flags: str = "", **how: Any) -> Any:
    """A dataclass field with an Option in its metadata; `flags` such as '-o --output', else made from the name.

    A default of `...` makes the option required, one of `dict` is a new dictionary each time.
    """
    metadata = {_KEY: (help, flags, how)}
    if default is ...:
        return field(metadata=metadata)
    return (
        field(default_factory=dict, metadata=metadata) if default is dict else field(default=default, metadata=metadata)
    )


def argument(metavar: str, help: str, default: Any = ..., **how: Any) -> Any:
    """A field that is a positional argument on the command line; required without a default."""
    return option(default, help, metavar=metavar, argument=True, **how)


def options_of(kind: type) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of an options dataclass that the command line has."""
    for member in fields(kind):
        if _KEY in member.metadata:
            help, flags, how = member.metadata[_KEY]
            names = tuple(flags.split()) or (f"--{member.name.strip('_').replace('_', '-')}",)
            yield member, Option(help, names, **how)


@dataclass(frozen=True, slots=True)
class Options:
    """The base of all options: a value out of range or not among the choices is refused, wherever it comes from.

    Help lists the options of a class below its `heading`, those without one below 'Options'.
    """

    heading: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for member, entry in options_of(type(self)):
            value = getattr(self, member.name)
            if entry.choices and value not in (None, "", *entry.choices):
                raise unknown_name(entry.flag, str(value), entry.choices)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                _check_range(entry, value)


def _check_range(entry: Option, value: float) -> None:
    low, high = entry.minimum, entry.maximum
    if (low is None or value >= low) and (high is None or value <= high) and value == value:
        return
    text = value_text(entry, value)
    if high is None:
        raise InputError(f"{entry.flag} is {text}", hint=f"give {value_text(entry, low)} or more")
    hint = f"give {value_text(entry, low)} to {value_text(entry, high)}"
    raise InputError(f"{entry.flag} is {text}", hint=hint)


def value_text(entry: Option, value: Any) -> str:
    """A value as it is written on the command line: '15 ms', '1024', 'gpu0,gpu1'."""
    if isinstance(value, tuple):
        return ",".join(value_text(entry, part) for part in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if entry.unit in ("", "1", "1/s"):
            return f"{value:g}" if isinstance(value, float) else str(value)
        return units.size(value) if entry.unit == "B" else units.readable(value, entry.unit)
    return str(value)


def with_unit(unit: str, example: str) -> Callable[[str], float]:
    """What reads a quantity of that SI unit and refuses bare numbers, with the `example` as hint."""
    return partial(units.parse_with_unit, expect=unit, example=example)


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
