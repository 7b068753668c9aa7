"""YAML texts as plain data that remembers the file, line and column of every value and key."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import Contradiction, FormatError, LanewiseError, Location, unknown_name

if TYPE_CHECKING:
    import yaml

Path = tuple[str | int, ...]

# Values of one file, values that its aliases repeat, and levels.
MAX_VALUES, MAX_REPEATED, MAX_DEPTH = 1_000_000, 200_000, 50
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")


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
                return _location(node, self.file)
        return Location(self.file)

    def key_location(self, *path: str | int) -> Location:
        """The position of the key or list entry at `path`, or of the nearest value around it."""
        return _location(self.keys[path], self.file) if path in self.keys else self.location(*path)


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


def load(text: str, file: str, reference: str = "") -> YamlDocument:
    """The document in `text`; FormatError where it is no YAML, Contradiction for a key given twice."""
    root = _compose(text, file)
    document = YamlDocument(file, reference)
    if root is not None:
        document.data = _Filler(document).value(root, ())
    return document


def _compose(text: str, file: str) -> yaml.Node | None:
    import yaml  # here, so that importing the model stays cheap

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_size(yaml.parse(text, Loader=loader), file)
        return yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        raise _broken(error, file, text) from None
    except UnicodeEncodeError:
        raise FormatError("not a text in Unicode", location=Location(file), hint="save the file as UTF-8") from None


def _check_size(events: Iterable[yaml.Event], file: str) -> None:
    # PyYAML's composer recurses in C and takes the whole process down on a deep text; its parser does not.
    import yaml

    depth = values = 0
    for event in events:
        values += isinstance(event, yaml.NodeEvent)
        if values > MAX_VALUES:
            cause = f"more than {MAX_VALUES:,} values and keys, the most that Lanewise reads of a file"
            raise FormatError(cause, location=_location(event, file), hint="split it into several files")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            hint = "close a bracket left open"
            raise FormatError("the text is nested too deep", location=_location(event, file), hint=hint)


class _Filler:
    """Turns nodes into data; refuses texts whose aliases unfold without end."""

    def __init__(self, document: YamlDocument) -> None:
        self.document = document
        self.open: set[int] = set()
        self.read: set[int] = set()
        self.repeated = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        import yaml

        self.document.values[path] = node
        self.repeated += id(node) in self.read
        self.read.add(id(node))
        if self.repeated > MAX_REPEATED or id(node) in self.open or len(path) > MAX_DEPTH:
            location = _location(node, self.document.file)
            many = f"to more than {MAX_REPEATED:,} values by its aliases"
            cause = f"the text unfolds {many if self.repeated > MAX_REPEATED else 'without end'}"
            raise FormatError(cause, location=location, hint="write the entries out, without & and *")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        finally:
            self.open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        import yaml

        members: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if not isinstance(key_node, yaml.ScalarNode) or key in members:
                raise self._bad_key(key_node, (*path, key))
            self.document.keys[(*path, key)] = key_node
            members[key] = self.value(value_node, (*path, key))
        return members

    def _bad_key(self, node: yaml.Node, path: Path) -> FormatError | Contradiction:
        location = _location(node, self.document.file)
        if path not in self.document.keys:
            hint = "put quotes around a name that has brackets or braces"
            return FormatError("a key must be plain text", location=location, hint=hint)
        cause = f"'{path[-1]}' is given twice, first in line {self.document.key_location(*path).line}"
        return Contradiction(cause, location=location, hint="keep one of the two")


def _scalar(node: yaml.Node) -> object:
    # Words stay words (off, on, no, 1:30, +0): YAML 1.1 would turn them into booleans and numbers.
    text = str(node.value)
    if node.tag == _TAG + "null":
        return None
    if node.tag == _TAG + "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if node.tag == _TAG + "int" and _WHOLE.fullmatch(text):
        return int(text)
    if node.tag == _TAG + "float" and _FLOAT.fullmatch(text):
        return float(text)
    return text


def _location(node: yaml.Node | yaml.Event, file: str) -> Location:
    mark = node.start_mark
    return Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)


def _broken(error: yaml.YAMLError, file: str, text: str) -> FormatError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    hint = "look for a bracket or quote left open, a tab or wrong indent, or a name with [ ] { } that lacks quotes"
    if problem.startswith("mapping values"):
        hint = "put a text that holds ': ' into quotes, or look for a wrong indent"
    if mark is None:
        return FormatError(f"not YAML: {problem}", location=Location(file), hint=hint)
    lines = max(1, len(text.rstrip().splitlines()))
    if mark.line >= lines or mark.index >= len(text.rstrip()):
        hint = "the file ends too early, as if cut off: close what is open, or get the whole file"
    opened = getattr(error, "context_mark", None)
    if opened is not None and opened.line < min(mark.line, lines - 1):
        problem += f"; what is open began in line {opened.line + 1}"
    location = Location(file, min(mark.line + 1, lines), mark.column + 1)
    return FormatError(f"not YAML: {problem}", location=location, hint=hint)


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
