"""Options of the verbs about systems: which one, its parameters, the user's parts; routes; discovery."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.option import Options, argument, option, output_option, parts_option, settings_option

EXPORTS = ("nccl-topo",)
EXPORT_RATES = ("described", "predicted")


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


@dataclass(frozen=True, slots=True)
class ExportSystemOptions(SystemOptions):
    """A host of a system in the form of another tool."""

    format: str = option("nccl-topo", "Form: nccl-topo is XML for NCCL_TOPO_FILE.", metavar="|".join(EXPORTS),
                         choices=EXPORTS)  # fmt: skip
    host: str | None = option(None, "Host to write.", metavar="HOST", default_text="the only one")
    rates: str = option("described", "Link rates: as described, or no more than copies are predicted to reach.",
                        metavar="|".join(EXPORT_RATES), choices=EXPORT_RATES)  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class PartTemplateOptions(Options):
    """A part to describe."""

    kind: str = argument("KIND", "gpu, cpu, switch, nic, ssd, raid, nvlink or adapter.")
    name: str = argument("NAME", "Name of the part.", "")
    output: Path | None = output_option()


@dataclass(frozen=True, slots=True)
class RouteOptions(Options):
    """The ends of a route; without them all pairs."""

    source: str | None = argument("FROM", "Device, host, or host:NUMA; leave it out for all pairs.", None)
    destination: str | None = argument("TO", "Device, host, or host:NUMA.", None)
    all: bool = option(False, "Show every sensible route, including those that policy forbids.")
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.")


@dataclass(frozen=True, slots=True)
class DiscoverOptions(Options):
    """What is read, and what is written."""

    dumps: tuple[Path, ...] = argument("FILE", "Dumps, as with --from.", (), repeat=True)
    from_: tuple[Path, ...] = option(
        (), "A capture or a dump: hwloc XML, NCCL XML, nvidia-smi topo -m, topo -p2p, nvlink -s, lspci -tv, "
        "lspci -vvv, ibstat, a tar or folder of /sys; repeatable. Without any, this machine is read.",
        metavar="FILE", repeat=True,
    )  # fmt: skip
    name: str = option("", "Name of the system in the description.", metavar="NAME")
    table: bool = option(False, "Show devices and links instead of the description.")
    capture: Path | None = option(None, "Write everything that is read of this machine, to replay anywhere.",
                                  metavar="FILE.tar.zst")  # fmt: skip
    under_load: bool = option(False, "State that copies run during the capture, so that links are at full speed.")
    draw: Path | None = option(None, "Draw the machine.", metavar="FILE.svg")
    parts: tuple[Path, ...] = parts_option()
    output: Path | None = option(None, "Write the description to this file.", "-o --output", metavar="FILE")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if (self.dumps or self.from_) and self.capture is not None:
            hint = "leave out --capture, or run it on the machine itself"
            raise InputError("--capture reads this machine, --from another", hint=hint)
        if self.under_load and self.capture is None:
            hint = "lanewise discover --capture machine.tar.zst --under-load, while copies run"
            raise InputError("--under-load has no effect without --capture", hint=hint)
