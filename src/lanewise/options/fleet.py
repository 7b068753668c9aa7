"""Options of `lanewise fleet`: which nodes, what is measured on them, where the answer goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.measure_network import TCP, TRANSPORTS
from lanewise.options.option import Options, argument, option, words

RANDOM_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class FleetCheckOptions(Options):
    """The nodes, named in one of three ways, the phases, and the files of the answer."""

    on: str | None = option(None, "Nodes of a Ray cluster, or N agents on this machine (to try it), with a Ray of its "
                            "own or without.", metavar="ray://HOST:PORT|ray:N|local:N")  # fmt: skip
    srun: bool = option(False, "Nodes of the Slurm allocation that this runs in.")
    hosts: tuple[str, ...] = option(
        (), "Nodes by name, reached with ssh; NAME=ADDRESS where the others reach it at another address.",
        metavar="NAME,...", parse=words,
    )  # fmt: skip
    via: str = option("", "Command that starts a program on {host}.", metavar="COMMAND",
                      default_text="ssh -o BatchMode=yes -o ConnectTimeout=10 {host}")  # fmt: skip
    program: str = option("lanewise", "How lanewise is called on the nodes of --hosts and --srun.", metavar="COMMAND")
    plan: bool = option(False, "Show the phases and the longest time that each can take; measure nothing.")
    system: str | None = option(None, "What each node should be: a built-in system or a description file.",
                                metavar="SYSTEM", complete="systems",
                                default_text="what the node itself shows")  # fmt: skip
    drive: str = option("", "Drive of each node: a file or device to read, or a folder for a test file of 1 GB.",
                        metavar="PATH")  # fmt: skip
    shared: str = option("", "Storage that all nodes share: a file to read, or a folder for a test file a node.",
                         metavar="PATH")  # fmt: skip
    no_network: bool = option(False, "Leave the pairwise network out.")
    transport: str = option(TCP, "What carries the network tests.", metavar="|".join(TRANSPORTS), choices=TRANSPORTS)
    rounds: int = option(RANDOM_ROUNDS, "Random rounds of pairs above 32 nodes.", metavar="N", minimum=1, maximum=1000)
    seed: int = option(0, "Chooses these rounds.", metavar="N")
    busy: bool = option(False, "Measure nodes with a busy GPU too; else they are left alone.")
    patience: float = option(1.0, "Factor on the limits of all phases.", metavar="X", minimum=0.01, maximum=100)
    history: str = option("", "Folder, or fsspec address (s3://...), of the nodes' earlier runs: each node is compared "
                          "with its own, and this run is added.", metavar="ADDRESS")  # fmt: skip
    output: Path | None = option(None, "Write the page with the heat map.", "-o --output", metavar="FILE.html")
    junit: Path | None = option(None, "Write JUnit XML, a test case a node.", metavar="FILE.xml")
    prometheus: Path | None = option(None, "Write metrics for node_exporter's textfile collector.",
                                     metavar="FILE.prom")  # fmt: skip

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        ways = [name for name, given in (("--on", self.on), ("--srun", self.srun), ("--hosts", self.hosts)) if given]
        if len(ways) != 1:
            cause = f"{' and '.join(ways)} name the nodes twice" if ways else "no nodes are named"
            raise InputError(
                cause, hint="write --on ray://HOST:10001, --srun, --hosts a,b,c or, to try it, --on local:4"
            )
        if self.via and "{host}" not in self.via:
            raise InputError(f"--via: '{self.via}' has no {{host}}", hint="write --via 'ssh {host}'")


@dataclass(frozen=True, slots=True)
class FleetAgentOptions(Options):
    """The agent of a node."""

    name: str = argument("NAME", "What the fleet check calls this node.")
