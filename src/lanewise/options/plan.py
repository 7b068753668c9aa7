"""Options of `lanewise plan`, for the command line, a plan file and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanewise.errors import InputError
from lanewise.options.option import Options, argument, option, parts_option, settings_option

GOALS = ("slowest", "total")
_IN_FILE = {"services": "service", "flows": "flows", "patterns": "pattern", "by": "by", "pin": "pin", "move": "move",
            "hosts": "to", "at": "at", "no_p2p": "no-p2p"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanOptions(Options):
    """The work, and what may move. `slots` says how many of the moved devices' cables a port takes.

    `services` are texts or planning.work.Tenant, `flows` a text or perf.flow.Flow.
    """

    services: tuple[Any, ...] = option(
        (), "A service: 'resnet50 170000 QPS [on HOST] [from HOST] [each QPS] [as NAME]'; repeatable.", "--service",
        metavar="'WORKLOAD QPS'", repeat=True, complete="workloads",
    )  # fmt: skip
    flows: Any = option(None, "Flows that run together: 'host->gpu[0-3]'.", metavar="FLOWS")
    by: str | None = option(None, "Rate of the flows to maximise.", metavar="slowest|total",
                            choices=GOALS, default_text="slowest; a pattern has its own")  # fmt: skip
    pin: str | None = option(None, "Find the network card that each GPU should use.", metavar="nic", choices=("nic",))
    move: str | None = option(None, "Devices that may move.", metavar="gpu[0-3]",
                              default_text="GPUs that another host can hold")  # fmt: skip
    hosts: tuple[str, ...] = option((), "Host that they may move to; repeatable.", "--to", metavar="HOST", repeat=True,
                                    default_text="any host")  # fmt: skip
    at: str | None = option(None, "Switches and CPUs that their cables may go to.", metavar="sw[0-3]")
    candidates: int = option(120, "Largest number of placements to judge.", metavar="N", minimum=1)
    pattern: str | None = None
    slots: Mapping[str, int] = field(default_factory=dict)
    p2p: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVerbOptions(PlanOptions):
    """What the command line has in addition: the systems, several patterns, a plan file."""

    systems: tuple[str, ...] = argument(
        "SYSTEM...", "Built-in systems or description files, with settings as NAME,path=4; several are ranked.",
        repeat=True, complete="systems",
    )  # fmt: skip
    patterns: tuple[str, ...] = option(
        (), "A pattern of flows: scatter, gather, ring, all-to-all, pairs, halves, off-box, into-box; ring-4: in "
        "groups of four; repeatable.", "--pattern", metavar="NAME", repeat=True,
    )  # fmt: skip
    file: Path | None = option(None, "Plan file to use instead of these options.", metavar="FILE")
    anyway: bool = option(False, "Show the best plan even if it does not fit.")
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.")
    settings: dict[str, int] = settings_option()
    parts: tuple[Path, ...] = parts_option()

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        twice = next((flag for name, flag in _IN_FILE.items() if self.file is not None and getattr(self, name)), None)
        if twice is not None:
            raise InputError(f"--{twice} has no effect with --file",
                             hint=f"write {twice} into the file, or leave out --file")  # fmt: skip
