"""Options of `lanewise director`: the service, the request to it, and what a director of this machine serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import FormatError, InputError
from lanewise.options.option import Options, argument, option, settings_option

DEFAULT_URL = "https://127.0.0.1:8443"
DRIVERS = (SIM, QEMU, REDFISH) = ("sim", "qemu", "redfish")
_CHASSIS = "redfish only, of the chassis: "
_LEAST_RATE = 1e6  # B/s; less is a forgotten unit
_STATE = "lanewise/director in XDG_STATE_HOME"


def pci_functions(pairs: Iterable[str]) -> dict[str, str]:
    """'gpu0=0000:41:00.0' as a mapping; FormatError names what is none."""
    mapping: dict[str, str] = {}
    for pair in pairs:
        name, _, function = pair.partition("=")
        if not re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", function):
            raise FormatError(f"'{pair}' names no PCI function", hint="write DEVICE=0000:41:00.0, as lspci -D does")
        mapping[name.strip()] = function
    return mapping


@dataclass(frozen=True, slots=True)
class DirectorAddressOptions(Options):
    """A Redfish service, and the account it is used with."""

    url: str = option("", "Address of the Redfish service.", metavar="URL",
                      default_text=f"LANEWISE_DIRECTOR_URL, else {DEFAULT_URL}")  # fmt: skip
    user: str = option("admin", "Account; '' to log in as nobody.", metavar="NAME")
    password_file: Path | None = option(None, "File with the account's password.", metavar="FILE",
                                        default_text="LANEWISE_DIRECTOR_PASSWORD")  # fmt: skip
    certificate: Path | None = option(
        None, "Certificate to trust: the service's, or its authority's.", metavar="FILE",
        default_text=f"certificate.pem of {_STATE}, if it is there",
    )  # fmt: skip
    insecure: bool = option(False, "Trust any certificate.")


@dataclass(frozen=True, slots=True)
class DirectorPoolOptions(DirectorAddressOptions):
    """What is listed."""

    free: bool = option(False, "List only free blocks.")


@dataclass(frozen=True, slots=True)
class CompositionOptions(DirectorAddressOptions):
    """What is requested: exactly these blocks, or counts of devices with the least rate of each."""

    blocks: tuple[str, ...] = argument("BLOCK", "Blocks to take; or leave the choice to the service.", (), repeat=True)
    server: str | None = option(None, "Server that gets the devices.", metavar="NAME", default_text="the best one")
    gpus: int = option(0, "Number of GPUs.", metavar="N", minimum=0, maximum=1024)
    gpu_rate: float | None = option(None, "Least rate from host memory to each GPU, everything active at once.",
                                    metavar="RATE", unit="B/s")  # fmt: skip
    gpu_part: str | None = option(None, "Only GPUs of this part.", metavar="PART")
    gpu_nics: int = option(0, "Network cards near the GPUs.", metavar="N", minimum=0, maximum=64)
    ssds: int = option(0, "Number of drives.", metavar="N", minimum=0, maximum=1024)
    ssd_rate: float | None = option(None, "Least rate from each drive to host memory.", metavar="RATE", unit="B/s")
    ssd_part: str | None = option(None, "Only drives of this part.", metavar="PART")
    nics: int = option(0, "Number of network cards.", metavar="N", minimum=0, maximum=1024)
    nic_rate: float | None = option(None, "Least rate from host memory to each card.", metavar="RATE", unit="B/s")
    nic_part: str | None = option(None, "Only network cards of this part.", metavar="PART")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        for kind, count, rate, part in self.counts():
            if not count and (rate is not None or part is not None):
                hint = f"add --{kind}s N, or leave out --{kind}-rate and --{kind}-part"
                raise InputError(f"a rate or a part of {kind}s, and no number of them", hint=hint)
            if rate is not None and 0 < rate < _LEAST_RATE:
                hint = f"write the unit: --{kind}-rate {rate:g}GB/s"
                raise InputError(f"--{kind}-rate {rate:g} is {rate:g} B/s, too little to ask for", hint=hint)
        if self.gpu_nics and not self.gpus:
            raise InputError("--gpu-nics without GPUs", hint="add --gpus N, or ask for cards alone with --nics N")
        if not self.blocks and not any(count for _, count, _, _ in self.counts()):
            raise InputError("nothing is requested", hint="name blocks, or write --gpus 4 --gpu-rate 20GB/s")

    def counts(self) -> Iterator[tuple[str, int, float | None, str | None]]:
        """Of each kind of device its name here, the number, the least rate and the part."""
        for kind in ("gpu", "ssd", "nic"):
            yield kind, getattr(self, f"{kind}s"), getattr(self, f"{kind}_rate"), getattr(self, f"{kind}_part")


@dataclass(frozen=True, slots=True)
class ComposeOptions(CompositionOptions):
    """A new composed system."""

    name: str = option("", "Name of the composed system.", metavar="NAME", default_text="the service makes one")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions(DirectorAddressOptions):
    """A composed system."""

    composition: str = argument("COMPOSITION", "A composed system (lanewise director pool).")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBlockOptions(ReleaseOptions):
    """A composed system, and a block that it gets or gives back."""

    block: str = argument("BLOCK", "A block (lanewise director pool).")


@dataclass(frozen=True, slots=True)
class WatchDirectorOptions(DirectorAddressOptions):
    """Which events are shown."""

    after: str = option("", "Show the events after this one first.", metavar="ID", default_text="only new ones")
    count: int | None = option(None, "End after this many events.", metavar="N", minimum=1)


@dataclass(frozen=True, slots=True)
class DirectorStoreOptions(Options):
    """Where a director of this machine keeps its pool."""

    database: str = option("", "Database: a file, or postgresql://...", metavar="URL",
                           default_text="director.sqlite in --directory")  # fmt: skip
    directory: Path | None = option(None, "Folder of the database, certificate and key.", metavar="DIR",
                                    default_text=_STATE)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions(DirectorStoreOptions):
    """The file of a backup."""

    file: Path = argument("FILE", "The backup: one JSON object a line.")


@dataclass(frozen=True, slots=True)
class ServeDirectorOptions(DirectorStoreOptions):
    """A director of this machine: its fabric, its database, where it listens."""

    demo: bool = option(False, "Try it: a simulated fabric, and nothing is kept but the certificate.")
    driver: str = option(SIM, "How devices are attached.", metavar="|".join(DRIVERS), choices=DRIVERS)
    system: str = option("", "The fabric's description, for sim and qemu.", metavar="SYSTEM",
                         default_text="composable-pool; qemu: emulated-two-servers",
                         complete="systems")  # fmt: skip
    settings: dict[str, int] = settings_option()
    hardware: dict[str, str] = option(
        dict, "qemu only: give guests this PCI function of this machine, through VFIO, in place of an emulated device; "
        "repeatable. Never tried on hardware.",
        metavar="DEVICE=FUNCTION", repeat=True, parse=pci_functions,
    )  # fmt: skip
    accelerator: str = option("tcg", "qemu only: how guests run.", metavar="tcg|kvm", choices=("tcg", "kvm"))
    fabric: str = option("", _CHASSIS + "its address.", metavar="URL")
    fabric_user: str = option("admin", _CHASSIS + "account; '' to log in as nobody.", metavar="NAME")
    fabric_password_file: Path | None = option(None, _CHASSIS + "file with the password.", metavar="FILE",
                                               default_text="LANEWISE_FABRIC_PASSWORD")  # fmt: skip
    fabric_certificate: Path | None = option(None, _CHASSIS + "certificate to trust.", metavar="FILE")
    listen: str = option("", "Where to listen.", metavar="[ADDRESS][:PORT]", default_text="127.0.0.1:8443")
    no_tls: bool = option(False, "Plain HTTP; on loopback only.")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if (self.driver == REDFISH) != bool(self.fabric):
            hint = "write --driver redfish --fabric https://HOST, or neither"
            raise InputError("--driver redfish and --fabric go together", hint=hint)
        if self.driver != QEMU and (self.hardware or self.accelerator != "tcg"):
            raise InputError("--hardware and --accelerator go with --driver qemu", hint="leave them out")
        if self.demo and (self.database or self.directory is not None):
            raise InputError("--demo keeps nothing", hint="leave out --demo, or --database and --directory")
