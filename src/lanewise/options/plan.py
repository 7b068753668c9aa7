"""Options of `lanewise plan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.option import Options, argument, option, parts_option, settings_option

_IN_FILE = ("service", "flows", "pattern", "by", "pin", "move", "to", "at", "no_p2p")


@dataclass(frozen=True, slots=True)
class PlanVerbOptions(Options):
    """The systems, the work, and what may move."""

    systems: tuple[str, ...] = argument(
        "SYSTEM...", "Built-in systems or description files, with settings as NAME,path=4; several are ranked.",
        repeat=True, complete="systems",
    )  # fmt: skip
    service: tuple[str, ...] = option(
        (), "A service: 'resnet50 170000 QPS [on HOST] [from HOST] [each QPS] [as NAME]'; repeatable.",
        metavar="'WORKLOAD QPS'", repeat=True, complete="workloads",
    )  # fmt: skip
    flows: str | None = option(None, "Flows that run together: 'host->gpu[0-3]'.", metavar="FLOWS")
    pattern: tuple[str, ...] = option(
        (), "A pattern of flows: scatter, gather, ring, all-to-all, pairs, halves, off-box, into-box; ring-4: in "
        "groups of four; repeatable.", metavar="NAME", repeat=True,
    )  # fmt: skip
    by: str | None = option(None, "Rate of the flows to maximise.", metavar="slowest|total",
                            default_text="slowest; a pattern has its own")  # fmt: skip
    pin: str | None = option(None, "Find the network card that each GPU should use.", metavar="nic")
    move: str | None = option(None, "Devices that may move.", metavar="gpu[0-3]",
                              default_text="GPUs that another host can hold")  # fmt: skip
    to: tuple[str, ...] = option((), "Host that they may move to; repeatable.", metavar="HOST", repeat=True,
                                 default_text="any host")  # fmt: skip
    at: str | None = option(None, "Switches and CPUs that their cables may go to.", metavar="sw[0-3]")
    file: Path | None = option(None, "Plan file to use instead of these options.", metavar="FILE")
    anyway: bool = option(False, "Show the best plan even if it does not fit.")
    candidates: int = option(120, "Largest number of placements to judge.", metavar="N", minimum=1)
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.")
    settings: dict[str, int] = settings_option()
    parts: tuple[Path, ...] = parts_option()

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        twice = next((name for name in _IN_FILE if self.file is not None and getattr(self, name)), None)
        if twice is not None:
            flag = twice.replace("_", "-")
            hint = f"write {flag} into the file, or leave out --file"
            raise InputError(f"--{flag} has no effect with --file", hint=hint)
