"""YAML texts as plain data with positions: words stay words, and texts that would unfold without end are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lanewise.errors import Contradiction, FormatError, Location
from lanewise.yaml_positions import Path, YamlDocument, location_of

if TYPE_CHECKING:
    import yaml

# Values of one file, values that its aliases repeat, and levels.
MAX_VALUES, MAX_REPEATED, MAX_DEPTH = 1_000_000, 200_000, 50
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_BARE_UNKNOWN = re.compile(r"(:[ \t]+)\?(?=[ \t]*(?:[,}\n]|$))")
_NUMBER = re.compile(r"[ \t]+#\d+\b[^,}\]#]*")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")


def load(text: str, file: str, reference: str = "") -> YamlDocument:
    """The document in `text`; FormatError where it is no YAML, Contradiction for a key given twice."""
    try:
        root = _compose(text, file)
    except FormatError:
        quoted = _BARE_UNKNOWN.sub(r'\1"?"', text)  # {socket: ?}, which YAML takes for the start of a key
        if quoted == text:
            raise
        root, text = _compose(quoted, file), quoted
    document = YamlDocument(file, reference)
    if root is not None:
        document.data = _Filler(document, text).value(root, ())
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
            raise FormatError(cause, location=location_of(event, file), hint="split it into several files")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            hint = "close a bracket left open"
            raise FormatError("the text is nested too deep", location=location_of(event, file), hint=hint)


class _Filler:
    """Turns nodes into data; refuses texts whose aliases unfold without end."""

    def __init__(self, document: YamlDocument, text: str) -> None:
        self.document = document
        self.lines = text.splitlines()
        self.open: set[int] = set()
        self.read: set[int] = set()
        self.repeated = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        import yaml

        self.document.values[path] = node
        self.repeated += id(node) in self.read
        self.read.add(id(node))
        if self.repeated > MAX_REPEATED or id(node) in self.open or len(path) > MAX_DEPTH:
            location = location_of(node, self.document.file)
            many = f"to more than {MAX_REPEATED:,} values by its aliases"
            cause = f"the text unfolds {many if self.repeated > MAX_REPEATED else 'without end'}"
            raise FormatError(cause, location=location, hint="write the entries out, without & and *")
        if isinstance(node, yaml.ScalarNode):
            self._check_not_cut(node)
            return _scalar(node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        finally:
            self.open.discard(id(node))

    def _check_not_cut(self, node: yaml.ScalarNode) -> None:
        """FormatError for an unquoted text that ends before something like #814, which YAML drops as a comment."""
        line = self.lines[node.end_mark.line] if not node.style and node.end_mark else ""
        cut = _NUMBER.match(line, node.end_mark.column) if line else None
        if cut is not None:
            cause = f"'{cut[0].strip()}' begins a comment and is no part of the text"
            hint = f'write "{node.value}{cut[0].rstrip()}", or a blank behind the # if it is a comment'
            raise FormatError(cause, location=location_of(node, self.document.file), hint=hint)

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
        location = location_of(node, self.document.file)
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
