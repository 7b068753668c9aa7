"""YAML nodes with their places: the few shapes a part file is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise import marks
from lanewise.errors import Contradiction, FormatError, LanewiseError, Location, unknown_name

if TYPE_CHECKING:
    from collections.abc import Collection

    import yaml

_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Spot:
    """One YAML node and the file it stands in."""

    node: yaml.Node
    file: str

    @property
    def location(self) -> Location:
        """Where the node begins."""
        mark = self.node.start_mark
        return Location(self.file, mark.line + 1, mark.column + 1)

    @property
    def is_null(self) -> bool:
        """Whether it says null, or nothing at all."""
        return str(self.node.tag) == _NULL

    @property
    def is_map(self) -> bool:
        """Whether it is a mapping."""
        return _kind(self.node) == "mapping"

    def text(self, what: str) -> str:
        """Its words as written; FormatError if it is not a scalar, or empty."""
        if _kind(self.node) != "scalar" or self.is_null or not str(self.node.value).strip():
            raise FormatError(f"{what} must be a text", location=self.location, hint=f"write {what}: <text>")
        return str(self.node.value)

    def items(self, what: str) -> list[Spot]:
        """The members of a list; FormatError if it is none."""
        if _kind(self.node) != "sequence":
            raise FormatError(f"{what} must be a list", location=self.location, hint="start each with a dash")
        return [Spot(member, self.file) for member in self.node.value]

    def fields(self, what: str, known: Collection[str] = ()) -> dict[str, Spot]:
        """The members of a mapping; Contradiction if one stands twice, UnknownName if not in `known`."""
        if not self.is_map:
            raise FormatError(f"{what} must be `name: value` lines", location=self.location)
        found: dict[str, Spot] = {}
        for key_node, value_node in self.node.value:
            key = Spot(key_node, self.file)
            name = key.text(f"a name in {what}")
            if known and name not in known:
                raise unknown_name(f"entry in {what}", name, known, key.location)
            if name in found:
                cause = f"'{name}' stands twice in {what}, first in line {found[name].location.line}"
                raise Contradiction(cause, location=key.location, hint="keep one of the two")
            found[name] = Spot(value_node, self.file)
        return found


def compose(text: str, file: str) -> Spot:
    """The root node of a YAML text; FormatError with the line where it stops being YAML, or if empty."""
    root = marks.compose(text, file)
    if root is None:
        raise FormatError("the file holds no parts", location=Location(file, 1), hint="start it with `parts:`")
    return Spot(root, file)


def placed(error: LanewiseError, location: Location) -> LanewiseError:
    """The same error with a location, if it had none."""
    if error.location is None:
        error.location = location
    return error


def _kind(node: yaml.Node) -> str:
    return str(getattr(node, "id", ""))  # the type stubs leave it out
