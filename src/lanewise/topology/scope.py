"""The scope of an expansion: parameter values, the document, the catalogue, the problems so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise import expressions
from lanewise.errors import (
    Contradiction,
    FormatError,
    LanewiseError,
    Location,
    UnknownName,
    error_location,
    unknown_name,
)
from lanewise.topology.model import Parameter
from lanewise.topology.ranges import check_name, expand

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.topology.form import ParameterForm, SystemForm
    from lanewise.yaml_positions import YamlDocument

MAX_SHOWN = 4
_BRACES = re.compile(r"\{([^{}]*)\}")
_FUNCTIONS = {"min": lambda *numbers: min(numbers), "max": lambda *numbers: max(numbers)}


class Problems:
    """Collects errors, in the order they are found."""

    def __init__(self) -> None:
        self.found: list[LanewiseError] = []

    def add(self, error: LanewiseError) -> None:
        """Keep an error for later, unless the same was kept before."""
        if str(error) not in {str(earlier) for earlier in self.found}:
            self.found.append(error)

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Keep any error raised inside, with this location if it has none."""
        try:
            with error_location(location):
                yield
        except LanewiseError as error:
            self.add(error)

    def raise_if_any(self) -> None:
        """Raise the first error, if any, with the others in its hint."""
        if not self.found:
            return
        first, *further = self.found
        lines = [f"also:  {error}" for error in further[:MAX_SHOWN]]
        if len(further) > MAX_SHOWN:
            lines.append(f"also:  {len(further) - MAX_SHOWN} more")
        first.hint = "\n".join(line for line in (first.hint, *lines) if line)
        raise first


@dataclass(slots=True)
class Scope:
    """Reads texts of the description at the values of its parameters."""

    document: YamlDocument
    settings: Mapping[str, int]
    catalog: Catalog
    problems: Problems = field(default_factory=Problems)

    def text(self, template: str) -> str:
        """The template with every brace replaced by its value; FormatError or UnknownName."""
        return fill(template, self.settings)

    def names(self, patterns: str | list[str]) -> list[str]:
        """The names of one or more patterns; FormatError or Contradiction."""
        names: list[str] = []
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            names += expand(self.text(pattern))
        return names

    def whole(self, value: int | str, index: int = 0) -> int:
        """A whole number: given, calculated, or '+k' for k + `index`; FormatError or UnknownName."""
        if isinstance(value, int):
            return value
        text = self.text(value).strip()
        number = evaluate(text.removeprefix("+"), self.settings)
        return number + index if text.startswith("+") else number

    def included(self, when: str | None) -> bool:
        """Whether the condition of an entry holds; FormatError or UnknownName."""
        return when is None or holds(self.text(when), self.settings)

    def location(self, *path: str | int) -> Location:
        """The position of a key or a list entry."""
        return self.document.key_location(*path)


def fill(text: str, values: Mapping[str, int]) -> str:
    """`text` with every `{expression}` replaced by its value; FormatError or UnknownName if it cannot."""
    filled = _BRACES.sub(lambda match: str(evaluate(match[1], values)), text)
    if "{" in filled or "}" in filled:
        raise FormatError(f"a brace in '{text}' has no partner", hint="write {parameter} or {parameter-1}")
    return filled


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of an arithmetic expression over parameters; FormatError or UnknownName otherwise."""
    return int(expressions.evaluate(text, expressions.ARITHMETIC, values, _FUNCTIONS))


def holds(text: str, values: Mapping[str, int]) -> bool:
    """Whether a condition such as 'path >= 3 and gpus > 1' is true; FormatError or UnknownName otherwise."""
    return bool(evaluate(text, values))


def read_parameters(form: SystemForm, document: YamlDocument) -> dict[str, Parameter]:
    """The parameters; Contradiction if a default is not allowed, FormatError for a bad name."""
    problems = Problems()
    parameters: dict[str, Parameter] = {}
    for name, entry in form.parameters.items():
        with problems.at(document.key_location("parameters", name)):
            if not name.isidentifier():
                raise FormatError(f"'{name}' cannot be a parameter", hint="use letters, digits and _")
            parameters[name] = _parameter(name, entry, document)
    problems.raise_if_any()
    return parameters


def _parameter(name: str, entry: ParameterForm, document: YamlDocument) -> Parameter:
    parameter = Parameter(name, entry.default, tuple(entry.values), entry.min, entry.max, entry.help)
    if entry.min > entry.max:
        cause = f"parameter '{name}' has min {entry.min} above max {entry.max}"
        raise Contradiction(cause, location=document.location("parameters", name, "min"), hint="swap the two")
    if not allows(parameter, entry.default):
        cause = f"the default of parameter '{name}' is {entry.default}, which is not an allowed value"
        location = document.location("parameters", name, "default")
        raise Contradiction(cause, location=location, hint=f"allowed: {allowed(parameter)}")
    return parameter


def allows(parameter: Parameter, value: int) -> bool:
    """Whether a parameter may take this value."""
    return parameter.minimum <= value <= parameter.maximum and (not parameter.values or value in parameter.values)


def allowed(parameter: Parameter) -> str:
    """The values a parameter may take, in words."""
    if parameter.values:
        return ", ".join(str(value) for value in parameter.values if allows(parameter, value))
    return f"{parameter.minimum} to {parameter.maximum}"


def settle(
    parameters: Mapping[str, Parameter],
    fixed: Mapping[str, int],
    requested: Mapping[str, int],
    document: YamlDocument,
) -> dict[str, int]:
    """The value of every parameter: requested, else fixed by the text, else its default.

    UnknownName for a parameter that does not exist, Contradiction for a value not allowed or fixed otherwise.
    """
    for name, value in fixed.items():
        _check_setting(parameters, name, value, document.location("settings", name), document)
    location = Location(document.file)
    for name, value in requested.items():
        _check_setting(parameters, name, value, location, document)
        if fixed.get(name, value) != value:
            cause = f"this text was written out with {name} = {fixed[name]}; it cannot be set to {value}"
            raise Contradiction(
                cause, location=document.location("settings", name), hint="set it on the description this came from"
            )
    return {name: requested.get(name, fixed.get(name, parameter.default)) for name, parameter in parameters.items()}


def _check_setting(
    parameters: Mapping[str, Parameter], name: str, value: int, location: Location, document: YamlDocument
) -> None:
    if name not in parameters:
        if not parameters:
            hint = "this system has no parameters"
            raise UnknownName(f"unknown parameter '{name}'", location=location, hint=hint)
        raise unknown_name("parameter", name, parameters, location)
    parameter = parameters[name]
    location = location if location.line else document.key_location("parameters", name)
    if isinstance(value, bool) or not isinstance(value, int) or not allows(parameter, value):
        cause = f"parameter '{name}' cannot be {value}"
        raise Contradiction(cause, location=location, hint=f"allowed: {allowed(parameter)}")


def read_hosts(form: SystemForm, scope: Scope) -> tuple[str, ...]:
    """The hosts, host0 if none is stated; Contradiction if one is given twice."""
    hosts: list[str] = []
    for index, pattern in enumerate(form.hosts or ["host0"]):
        with scope.problems.at(scope.document.location("hosts", index)):
            for name in scope.names(pattern):
                check_name(name)
                if name in hosts:
                    raise Contradiction(f"host '{name}' is given twice", hint="keep one of the two")
                hosts.append(name)
    return tuple(hosts)
