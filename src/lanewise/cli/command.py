"""A verb as a command: its options dataclass as options of the command line, --json, and groups of verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, is_dataclass
from functools import wraps
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from lanewise import units
from lanewise.errors import FormatError, LanewiseError
from lanewise.options.option import Option, options_of, value_text, whole_number

Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[-|FILE.json]",
        help="Write the answer as JSON in SI units, to stdout or to FILE.json.",
    ),
]


class GivenFlags(frozenset[str]):
    """The names of the options that are on the command line, whatever their values: {"flows", "no_p2p"}."""


def option_group(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb for Typer: a parameter that is an options dataclass becomes an option for each of its fields."""
    parameters = inspect.signature(verb, eval_str=True).parameters.values()
    groups: dict[str, Any] = {entry.name: entry.annotation for entry in parameters if is_dataclass(entry.annotation)}
    flags = [entry.name for entry in parameters if entry.annotation is GivenFlags]
    typer_parameters = []
    for entry in parameters:
        if entry.name in groups:
            typer_parameters += [_parameter(*member) for member in _members(entry.annotation)]
        elif entry.name not in flags:
            typer_parameters.append(entry.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def call(**texts: Any) -> None:
        given = GivenFlags(name for name, text in texts.items() if text not in (None, False, [], ()))
        options = {name: _options(kind, texts) for name, kind in groups.items()}
        of_groups = {member.name for kind in groups.values() for member, _ in options_of(kind)}
        others = {name: text for name, text in texts.items() if name not in of_groups}
        verb(**others, **options, **dict.fromkeys(flags, given))

    command: Any = call  # Typer reads both attributes below
    command.__signature__ = inspect.Signature(typer_parameters)  # ValueError where two options have one name
    command.option_headings = {
        member.name: kind.heading for kind in groups.values() for member, _ in options_of(kind) if kind.heading
    }
    command.__annotations__ = {entry.name: entry.annotation for entry in typer_parameters}
    return call


def _members(kind: type) -> list[tuple[Field[Any], Option, Any]]:
    hints = get_type_hints(kind)
    return [(member, entry, hints[member.name]) for member, entry in options_of(kind)]


def _options(kind: type, texts: dict[str, Any]) -> Any:
    """The dataclass from the texts of its options."""
    values = {}
    for member, entry, hint in _members(kind):
        text = texts[member.name]
        if text not in (None, [], ()):
            values[member.name] = _value(entry, hint, text)
    return kind(**values)


def _value(entry: Option, hint: Any, text: Any) -> Any:
    """A text as the value of its option; FormatError with the option's name."""
    try:
        if entry.parse is not None:
            return entry.parse(text)
        types = {part for part in get_args(hint) if part is not NoneType} or {hint}
        if entry.repeat:
            return tuple(map(Path if Path in types else str, text))
        if int in types:
            return round(units.parse(text, entry.unit)) if entry.unit else whole_number(text)
        if float in types:
            return units.parse(text, entry.unit or "1")
        return Path(text) if Path in types else text
    except LanewiseError as error:
        raise FormatError(f"{entry.flag}: {error.cause}", hint=error.hint) from None


def _parameter(member: Field[Any], entry: Option, hint: Any) -> Parameter:
    """A field as a parameter that Typer reads as text, so that no error text of a validator reaches the user."""
    required = member.default is MISSING and member.default_factory is MISSING
    how: dict[str, Any] = {"metavar": entry.metavar or None, "help": _help(member, entry)}
    if entry.complete:
        how["autocompletion"] = _completer(entry.complete)
    is_pair = tuple[str, str] in get_args(hint)
    kind: Any = bool if hint is bool else list[str] if entry.repeat else tuple[str, str] if is_pair else str
    default = member.default if hint is bool else Parameter.empty if required else None
    information = typer.Argument(**how) if entry.argument else typer.Option(*entry.flags, **how)
    annotation: Any = Annotated[kind if required or kind is bool else kind | None, information]
    return Parameter(member.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _completer(kind: str) -> Callable[[Any, str], list[str]]:
    """Completes a name of that kind in the shell; of GPUs, after a comma the next one."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        before, comma, name = incomplete.rpartition(",") if kind == "gpus" else ("", "", incomplete)
        return [f"{before}{comma}{known}" for known in _known_names(kind, ctx) if known.startswith(name)]

    return complete


def _known_names(kind: str, ctx: Any) -> list[str]:
    """Systems, studies, workloads, parts, or the GPUs of the system already typed, else gpu0 to gpu15."""
    from lanewise import api
    from lanewise.topology.model import Kind

    if kind == "gpus":
        try:
            return api.load_system(ctx.params["system"]).of_kind(Kind.GPU)
        except (KeyError, LanewiseError):
            return [f"gpu{number}" for number in range(16)]
    if kind == "parts":
        return api.load_catalog().names()
    names = {"systems": api.ready_systems, "studies": api.ready_studies, "workloads": api.ready_workloads}[kind]()
    return [*names, "all"] if kind == "studies" else names


def _help(member: Field[Any], entry: Option) -> str:
    """'Latency bound. [default: 15 ms]'."""
    text = entry.default_text or (
        ""
        if isinstance(member.default, bool) or member.default in (MISSING, None, (), "")
        else value_text(entry, member.default)
    )
    return f"{entry.help} [default: {text}]" if text else entry.help


class _AsTyped:
    """What Typer's pydantic adapters do for a text, a list of texts or a flag, without loading pydantic for it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as it was typed; several as a list."""
        several = param.multiple or param.nargs == -1
        return value if not several else () if value is None else list(value)


class _PlainParameters:
    """A command whose options and arguments arrive as text: adapters would cost as much as the rest of a start."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; versions of Typer without adapters take no notice."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            vars(parameter)["get_runtime_param"] = _AsTyped
        return parameters


class QuickGroup(_PlainParameters, TyperGroup):
    """A group of verbs."""


class Command(_PlainParameters, TyperCommand):
    """A verb whose help names arguments as they are typed, and lists options below the headings of their classes."""

    def option_sections(self) -> dict[str, list[Any]]:
        """The parameters by heading: arguments, those of classes with one, then all others as 'Options'."""
        headings = getattr(self.callback, "option_headings", {})
        sections: dict[str, list[Any]] = {"Arguments": []}
        others = []
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                sections["Arguments"].append(parameter)
            elif parameter.name in headings:
                sections.setdefault(headings[parameter.name], []).append(parameter)
            else:
                others.append(parameter)
        return {heading: members for heading, members in {**sections, "Options": others}.items() if members}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the sections of the help."""
        sections = self.option_sections()
        sections.setdefault("Options", []).extend(help for help in [self.get_help_option(ctx)] if help is not None)
        for heading, members in sections.items():
            records = [record for member in members if (record := member.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def get_help(self, ctx: Any) -> str:
        """The help as text."""
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: ""
        usage, line, rest = super().get_help(ctx).partition("\n")
        return usage.translate({ord("{"): None, ord("}"): None}).replace("......", "...") + line + rest
