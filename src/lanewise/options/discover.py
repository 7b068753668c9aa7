"""Options of `lanewise discover`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.common import parts_option
from lanewise.options.option import Options, argument, option


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
