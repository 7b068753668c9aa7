"""XML of strangers: parsed without entities, with the line where it breaks."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, ParseError, fromstring

from lanewise.errors import FormatError, Location

_DEEPEST = 200


def parse(text: str, file: str) -> Element:
    """The root element; FormatError if the text is no XML or defines entities."""
    entity = re.search(r"<!ENTITY", text, re.IGNORECASE)
    if entity:
        line = text.count("\n", 0, entity.start()) + 1
        hint = "dumps of machines have none; take them out"
        raise FormatError("the XML defines entities, which are not expanded", location=Location(file, line), hint=hint)
    try:
        root = fromstring(text)
    except ParseError as error:
        line, column = error.position
        hint = "is the dump complete? write it again"
        raise FormatError(
            f"not well-formed XML: {error.msg}", location=Location(file, line, column + 1), hint=hint
        ) from None
    except ValueError as error:
        raise FormatError(
            f"not readable XML: {error}", location=Location(file), hint="write the dump again as UTF-8"
        ) from None
    if _deep(root):
        hint = "no machine nests so many bridges; write the dump again"
        raise FormatError(f"nested more than {_DEEPEST} deep", location=Location(file), hint=hint)
    return root


def _deep(root: Element) -> bool:
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for element in level for child in element]
    return bool(level)
