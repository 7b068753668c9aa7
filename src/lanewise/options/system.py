"""Options that choose a system: its name or file, its parameters, the user's parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.options.common import output_option, parts_option, settings_option
from lanewise.options.option import Options, argument, option


@dataclass(frozen=True, slots=True)
class PartsOptions(Options):
    """Part files that override the catalogue."""

    parts: tuple[Path, ...] = parts_option()


@dataclass(frozen=True, slots=True)
class SystemOptions(Options):
    """A system by name or file, with its parameters and parts."""

    system: str = argument("SYSTEM", "A built-in system (lanewise system list) or a description file.",
                           complete="systems")  # fmt: skip
    settings: dict[str, int] = settings_option()
    parts: tuple[Path, ...] = parts_option()


@dataclass(frozen=True, slots=True)
class ShowSystemOptions(SystemOptions):
    """How a system is shown."""

    yaml: bool = option(False, "Show the description, to edit and keep.")


@dataclass(frozen=True, slots=True)
class OutputOptions(Options):
    """The file of a text."""

    output: Path | None = output_option()


@dataclass(frozen=True, slots=True)
class DrawSystemOptions(SystemOptions):
    """What is drawn."""

    flows: str | None = option(None, "Draw the load of these flows on the links, and their routes.", metavar="FLOWS")
    output: Path | None = output_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachOptions(SystemOptions):
    """A device of a system."""

    device: str = argument("DEVICE", "A GPU, network card, drive or controller.")
    output: Path | None = output_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachOptions(DetachOptions):
    """Where a device goes."""

    host: str = argument("HOST", "Host to bind the device to.")
    at: str | None = option(None, "Move the device's cable below this switch or CPU first.", metavar="SWITCH")


@dataclass(frozen=True, slots=True)
class ListPartsOptions(PartsOptions):
    """Which parts are listed."""

    kind: str | None = option(None, "List only parts of this kind.",
                              metavar="gpu|cpu|switch|nic|ssd|raid|nvlink|adapter")  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShowPartOptions(Options):
    """A part."""

    name: str = argument("PART", "Name or alias of a part.", complete="parts")
    parts: tuple[Path, ...] = parts_option()
