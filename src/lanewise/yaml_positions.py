"""Plain data of YAML texts that remembers the file, line and column of every value and key (`yaml_loader.load`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import FormatError, LanewiseError, Location, unknown_name

if TYPE_CHECKING:
    import yaml

Path = tuple[str | int, ...]


@dataclass(slots=True)
class YamlDocument:
    """Plain data (dict, list, str, int, float, bool, None), and the YAML nodes of its values and keys by path.

    `reference` is the page about the format, for hints.
    """

    file: str
    reference: str = ""
    data: Any = None
    values: dict[Path, yaml.Node] = field(default_factory=dict)
    keys: dict[Path, yaml.Node] = field(default_factory=dict)

    @property
    def root(self) -> YamlNode:
        """The value of the whole document."""
        return YamlNode(self, (), self.data)

    def at(self, path: Path) -> YamlNode:
        """The value at `path`, a node of None if there is none."""
        node = self.root
        for step in path:
            node = node[step]
        return node

    def location(self, *path: str | int) -> Location:
        """The position of the value at `path`, or of the nearest value around it."""
        for length in range(len(path), -1, -1):
            if node := self.values.get(path[:length]):
                return location_of(node, self.file)
        return Location(self.file)

    def key_location(self, *path: str | int) -> Location:
        """The position of the key or list entry at `path`, or of the nearest value around it."""
        return location_of(self.keys[path], self.file) if path in self.keys else self.location(*path)


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value and the path to it. node["key"] is always a node: `given` if it has a value, `present` be it null."""

    document: YamlDocument
    path: Path
    value: Any

    @property
    def location(self) -> Location:
        """The position of the value, or of the nearest value around it."""
        return self.document.location(*self.path)

    @property
    def key_location(self) -> Location:
        """The position of the key of this value."""
        return self.document.key_location(*self.path)

    @property
    def key(self) -> str:
        """The last key on the path; {value: 4, source: ...} has the key that it is the value of."""
        owner, last = self.path[-2:-1], self.path[-1:]
        path = self.path[:-1] if last == ("value",) and owner and isinstance(owner[0], str) else self.path
        return next((step for step in reversed(path) if isinstance(step, str)), "")

    @property
    def name(self) -> str:
        """The last key on the path, as messages call it."""
        return f"'{self.key}'" if self.key else "the file"

    @property
    def given(self) -> bool:
        """Whether there is a value that is not null."""
        return self.value is not None

    @property
    def present(self) -> bool:
        """Whether the file has it, be it null."""
        return self.path in self.document.values

    @property
    def is_map(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.value, dict)

    def __getitem__(self, step: str | int) -> YamlNode:
        """The member of a mapping or list, a node of None if there is none."""
        member = None
        if isinstance(self.value, dict):
            member = self.value.get(step)
        elif isinstance(self.value, list) and isinstance(step, int) and 0 <= step < len(self.value):
            member = self.value[step]
        return YamlNode(self.document, (*self.path, step), member)

    def check_fields(
        self, known: Collection[str], what: str = "", needed: Iterable[str] = (), hint: str = ""
    ) -> YamlNode:
        """Itself, a mapping of `known` keys with all `needed` ones; FormatError or UnknownName otherwise.

        `what` is the mapping in messages, `hint` what to write if a needed key is missing.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"{what or self.name} must be 'name: value' lines", f"one of: {', '.join(known)}")
        for key in self.value:
            if key not in known:
                error = unknown_name("key", key, known, self[key].key_location)
                error.cause += f" in {what}" if what else ""
                if self.value[key] is None and " " in key:  # {note: one, two words}
                    error.hint = f'a text with a comma needs quotes: "..., {key}"'
                raise error
        missing = [key for key in needed if key not in self.value]
        if missing:
            cause = f"{what or self.name} has no {' and no '.join(missing)}"
            raise self.error(cause, hint or f"add `{missing[0]}:`")
        return self

    def members(self, hint: str = "") -> dict[str, YamlNode]:
        """The members of a mapping with free names, none if nothing is given; FormatError if it is no mapping."""
        if not self.given:
            return {}
        if not isinstance(self.value, dict):
            raise self.error(f"{self.name} must be 'name: value' lines", hint)
        return {key: self[key] for key in self.value}

    def items(self, hint: str = "begin each entry with a dash: '- '") -> list[YamlNode]:
        """The entries of a list, none if nothing is given; FormatError if it is no list."""
        if not self.given:
            return []
        if not isinstance(self.value, list):
            raise self.error(f"{self.name} must be a list", hint)
        return [self[index] for index in range(len(self.value))]

    def as_document(self, added: Mapping[str, Any]) -> YamlDocument:
        """This mapping as a document of its own, with the positions of its file, and `added` members that lack one.

        FormatError if it is no mapping.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"{self.name} must be 'name: value' lines")
        here, depth = self.document, len(self.path)
        values, keys = (
            {path[depth:]: node for path, node in nodes.items() if path[:depth] == self.path}
            for nodes in (here.values, here.keys)
        )
        return YamlDocument(here.file, here.reference, {**added, **self.value}, values, keys)

    def as_written(self) -> str:
        """A value as written, be it a number or yes and no; FormatError if it is none or blank."""
        text = "" if not self.given else str(self.document.values[self.path].value)
        if isinstance(self.value, (dict, list)) or not text.strip():
            raise self.error(f"{self.name} must be a text", f"write {self.key}: <text>")
        return text

    def text(self, default: str = "") -> str:
        """A text as written (a whole number counts as one), `default` if nothing is given; FormatError otherwise."""
        if not self.given:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, (str, int)):
            raise self.error(f"{self.name} must be a text, not {describe(self.value)}", "put quotes around it")
        return str(self.value)

    def line(self, default: str = "") -> str:
        """A text with its line breaks and runs of blanks made one blank."""
        return " ".join(self.text(default).split())

    def needed(self) -> str:
        """A text that must be there and not blank; FormatError otherwise."""
        text = self.text().strip()
        if not text:
            raise self.error(f"{self.name} is missing", f"add {self.key}: ...")
        return text

    def integer(self, low: int | None = None, high: int | None = None, example: int = 4) -> int:
        """A whole number from `low` to `high`; FormatError otherwise."""
        number = self.value
        whole = isinstance(number, int) and not isinstance(number, bool)
        if not whole or (low is not None and number < low) or (high is not None and number > high):
            limits = "" if low is None else f" of {low} or more" if high is None else f" from {low} to {high}"
            cause = f"{self.name} takes whole numbers{limits}, not {describe(number)}"
            raise self.error(cause, f"for example {self.key}: {example}")
        return int(number)

    def number(self) -> float | None:
        """A finite number, None if nothing is given; FormatError otherwise."""
        if not self.given:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or not math.isfinite(self.value):
            cause = f"{self.name} must be a number, not {describe(self.value)}"
            raise self.error(cause, "write plain numbers in the row's unit, null for a gap")
        return self.value

    def flag(self, default: bool) -> bool:
        """True or false, `default` if nothing is given; FormatError otherwise."""
        if not self.given:
            return default
        if not isinstance(self.value, bool):
            raise self.error(f"{self.name} is true or false, not {describe(self.value)}", "write true or false")
        return self.value

    def choice(self, known: Collection[str], default: str = "", kind: str = "") -> str:
        """One of the `known` words, `default` if nothing is given; UnknownName otherwise."""
        word = self.text(default)
        if word not in known:
            raise unknown_name(kind or self.key, word, known, self.location)
        return word

    def quantity(
        self, unit: str, above: float = -math.inf, *, negative: bool = True, bare: bool = True, example: str = ""
    ) -> float:
        """A finite quantity of that SI unit, greater than `above`; FormatError otherwise.

        Unless `bare`, a number other than 0 needs its unit.
        """
        if not self.given:
            raise self.error(f"{self.name} is missing", f"add {self.key}: {example or units.sample(unit)}")
        text = self.as_written()
        try:
            value = units.parse(text, unit)
        except LanewiseError as error:
            error.cause, error.location = f"{self.name}: {error.cause}", self.location
            raise
        if not math.isfinite(value) or value <= above or (value < 0 and not negative):
            limits = " and not negative" if not negative else f" and above {above:g}" if above > -math.inf else ""
            hint = f"for example {self.key}: {example or units.sample(unit)}"
            raise self.error(f"{self.name} must be finite{limits}, not {text}", hint)
        if not bare and value and _is_number(text):
            raise self.error(f"{self.name} = {text} has no unit", f"write the unit: {example or units.sample(unit)}")
        return value

    def error(self, cause: str, hint: str = "") -> FormatError:
        """A FormatError at this location."""
        page = f"see {self.document.reference}" if self.document.reference else ""
        return FormatError(cause, location=self.location, hint=hint or page)


def location_of(node: yaml.Node | yaml.Event, file: str) -> Location:
    """Where a node or event begins; the file alone where that is not known."""
    mark = node.start_mark
    return Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)


def describe(value: Any) -> str:
    """A value in words, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "'name: value' lines"
    text = str(value)
    return f"'{text if len(text) <= 40 else text[:37] + '...'}'"


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True
