"""One value of a study file with its location: every shape that a study asks for is checked here and nowhere else."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import FormatError, LanewiseError, Location, unknown_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lanewise.marks import Document


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the way to it; what is absent is a Node of None, so that absent and null are one."""

    document: Document
    path: tuple[str | int, ...]
    value: Any

    @property
    def location(self) -> Location:
        """Where the value stands, or the nearest thing around it."""
        return self.document.location(*self.path)

    @property
    def name(self) -> str:
        """The last key on the way here, as messages call it."""
        return next((f"'{step}'" for step in reversed(self.path) if isinstance(step, str)), "the study")

    @property
    def given(self) -> bool:
        """Whether anything stands here."""
        return self.value is not None

    def __getitem__(self, key: str) -> Node:
        """The member `key` of a mapping, a Node of None if there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(self.document, (*self.path, key), value)

    def has(self, key: str) -> bool:
        """Whether the mapping states `key` and not null."""
        return self[key].given

    def fields(self, known: Collection[str]) -> Node:
        """Itself, a mapping of those keys; FormatError or UnknownName otherwise."""
        if not isinstance(self.value, dict):
            raise self.error(f"{self.name} needs names and values here", f"one of: {', '.join(known)}")
        for key in self.value:
            if key not in known:
                raise unknown_name("key", key, known, self.document.key_location(*self.path, key))
        return self

    def members(self, hint: str) -> dict[str, Node]:
        """The members of a mapping with free names, none if nothing is given; FormatError if it is no mapping."""
        if not self.given:
            return {}
        if not isinstance(self.value, dict):
            raise self.error(f"{self.name} must be names and values", hint)
        return {key: self[key] for key in self.value}

    def items(self, hint: str = "begin each entry with '- '") -> list[Node]:
        """The entries of a list, none if nothing is given; FormatError if it is no list."""
        if not self.given:
            return []
        if not isinstance(self.value, list):
            raise self.error(f"{self.name} must be a list", hint)
        return [Node(self.document, (*self.path, i), entry) for i, entry in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        """A text as written (a whole number counts as one), `default` if nothing is given; FormatError otherwise."""
        if not self.given:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, (str, int)):
            raise self.error(f"{self.name} must be a text, not {_kind(self.value)}", "put quotes around it")
        return str(self.value)

    def line(self, default: str = "") -> str:
        """A text with its line breaks and runs of blanks made one blank."""
        return " ".join(self.text(default).split())

    def needed(self) -> str:
        """A text that must be there and not blank; FormatError otherwise."""
        text = self.text().strip()
        if not text:
            raise self.error(f"{self.name} is missing", f"add {self.name.strip(chr(39))}: ...")
        return text

    def integer(self) -> int:
        """A whole number; FormatError otherwise."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"{self.name} takes whole numbers, not {_kind(self.value)}", "such as 4")
        return self.value

    def number(self) -> float | None:
        """A finite number, None if nothing is given; FormatError otherwise."""
        if not self.given:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or not math.isfinite(self.value):
            cause = f"{self.name} must be a number, not {_kind(self.value)}"
            raise self.error(cause, "write plain numbers in the row's unit, null for a gap")
        return self.value

    def flag(self, default: bool) -> bool:
        """True or false, `default` if nothing is given; FormatError otherwise."""
        if not self.given:
            return default
        if not isinstance(self.value, bool):
            raise self.error(f"{self.name} is true or false, not {_kind(self.value)}", "write true or false")
        return self.value

    def choice(self, known: Collection[str], default: str, kind: str = "") -> str:
        """One of the `known` words, `default` if nothing is given; UnknownName otherwise."""
        word = self.text(default)
        if word not in known:
            raise unknown_name(kind or self.name.strip("'"), word, known, self.location)
        return word

    def quantity(self, unit: str, above: float = -math.inf) -> float:
        """A finite quantity of that SI unit, greater than `above`; FormatError otherwise."""
        if not self.given:
            raise self.error(f"{self.name} is missing", f"add {self.name.strip(chr(39))}: and a kind of {unit}")
        if isinstance(self.value, (bool, list, dict)):
            raise self.error(f"{self.name} must be a quantity, not {_kind(self.value)}", f"a kind of {unit}")
        with at(self.location):
            value = units.parse(self.value, unit)
        if not math.isfinite(value) or value <= above:
            wanted = "finite" if above == -math.inf else f"finite and above {above:g}"
            raise self.error(f"{self.name} must be {wanted}, not {self.value}", f"a kind of {unit}")
        return value

    def error(self, cause: str, hint: str = "") -> FormatError:
        """A FormatError at this location."""
        return FormatError(cause, location=self.location, hint=hint or "see docs/reference/study-format.md")


@contextmanager
def at(location: Location) -> Iterator[None]:
    """Gives every LanewiseError that has no location this one."""
    try:
        yield
    except LanewiseError as error:
        if error.location is None:
            error.location = location
        raise


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "names and values"
    text = str(value)
    return f"'{text if len(text) <= 40 else text[:37] + '...'}'"
