"""A YAML text as plain data that remembers the line of every value and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise.errors import Contradiction, FormatError, Location

if TYPE_CHECKING:
    import yaml

Path = tuple[str | int, ...]

MAX_VALUES = 200_000
MAX_DEPTH = 50
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and the places of its values and keys."""

    file: str
    data: object = None
    values: dict[Path, Location] = field(default_factory=dict)
    keys: dict[Path, Location] = field(default_factory=dict)

    def at(self, path: Path) -> object:
        """The value at `path`, None if there is none."""
        value = self.data
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                value = value[step] if 0 <= step < len(value) else None
            else:
                return None
        return value

    def location(self, *path: str | int) -> Location:
        """Where the value at `path` stands, or the nearest thing around it."""
        return self._nearest(path, self.values)

    def key_location(self, *path: str | int) -> Location:
        """Where the key or list entry at `path` stands, or the nearest thing around it."""
        return self.keys.get(path) or self._nearest(path, self.values)

    def _nearest(self, path: Path, table: Mapping[Path, Location]) -> Location:
        for length in range(len(path), -1, -1):
            found = table.get(path[:length])
            if found:
                return found
        return Location(self.file)


def load(text: str, file: str) -> Document:
    """The document in `text`; FormatError where it is no YAML, Contradiction for a key given twice."""
    root = compose(text, file)
    document = Document(file)
    if root is not None:
        document.data = _Filler(document).value(root, ())
    return document


def compose(text: str, file: str) -> yaml.Node | None:
    """The root node of a YAML text, None for an empty one; FormatError with the line where it is no YAML."""
    import yaml  # here, so that importing the model stays cheap

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml.parse(text, Loader=loader), file)
        return yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        raise _broken(error, file, text) from None
    except UnicodeEncodeError:
        raise FormatError("not a text in Unicode", location=Location(file), hint="save the file as UTF-8") from None


def _check_depth(events: Iterable[yaml.Event], file: str) -> None:
    # PyYAML's composer recurses in C and takes the whole process down on a deep text; its parser does not.
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            mark = event.start_mark
            location = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
            raise FormatError("the text is nested too deep", location=location, hint="close a bracket left open")


class _Filler:
    """Turns nodes into data; refuses texts whose aliases unfold without end."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.open: set[int] = set()
        self.count = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        import yaml

        location = _location(node, self.document.file)
        self.document.values[path] = location
        self.count += 1
        if self.count > MAX_VALUES or id(node) in self.open or len(path) > MAX_DEPTH:
            raise FormatError(
                "the text unfolds without end", location=location, hint="write the entries out, without & and *"
            )
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        finally:
            self.open.discard(id(node))
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        import yaml

        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            location = _location(key_node, self.document.file)
            if not isinstance(key_node, yaml.ScalarNode):
                hint = "put quotes around a name that has brackets or braces"
                raise FormatError("a key must be plain text", location=location, hint=hint)
            key = str(key_node.value)
            if key in found:
                first = self.document.keys[(*path, key)]
                raise Contradiction(
                    f"'{key}' stands twice, first in line {first.line}",
                    location=location,
                    hint="keep one of the two",
                )
            self.document.keys[(*path, key)] = location
            found[key] = self.value(value_node, (*path, key))
        return found


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


def _location(node: yaml.Node, file: str) -> Location:
    return Location(file, node.start_mark.line + 1, node.start_mark.column + 1)


def _broken(error: yaml.YAMLError, file: str, text: str) -> FormatError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    hint = "look for a bracket or quote left open, a wrong indent, or a name with [ ] { } that lacks quotes"
    if mark is None:
        return FormatError(f"not YAML: {problem}", location=Location(file), hint=hint)
    lines = max(1, len(text.rstrip().splitlines()))
    if mark.line >= lines or mark.index >= len(text.rstrip()):
        hint = "the file ends too early, as if cut off: close what is open, or get the whole file"
    opened = getattr(error, "context_mark", None)
    if opened is not None and opened.line < min(mark.line, lines - 1):
        problem += f"; what is open began in line {opened.line + 1}"
    return FormatError(
        f"not YAML: {problem}", location=Location(file, min(mark.line + 1, lines), mark.column + 1), hint=hint
    )
