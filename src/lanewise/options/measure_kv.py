"""Options of `lanewise measure kv`: which blocks, from where to where, and what moves them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError, unknown_name
from lanewise.options.measure_network import TRANSPORTS, NetworkSideOptions
from lanewise.options.measure_storage import StorageTarget, storage_target
from lanewise.options.option import Options, option, words
from lanewise.options.sampling import SamplingRule

COPIES = (
    "cuMemcpyAsync", "cuMemcpyBatchAsync", "cuMemcpyBatchAsync-256", "cuMemcpyBatchAsync-256-sorted", "kernel",
)  # fmt: skip
FILES = ("io_uring", "cuFile")
LOOPBACK = "loopback"
OVER = (*TRANSPORTS, "nixl")
_THREADS, _DEPTH, _LIST = 1, 32, 64
_OVER = "With --over: "


@dataclass(frozen=True, slots=True)
class MeasureKvOptions(Options):
    """Blocks of memory, moved there, back, and both ways at once, by each `software`.

    `peak_bytes` are what the long copies move whose rate is called the peak. InputError or UnknownName for a wrong
    value.
    """

    to: str = option(
        ..., "Where the blocks go: host, host:1 (NUMA node 1), gpu1, a folder or a new file; with --over a listener of "
        "measure network, or loopback.", metavar="host|gpu1|FILE|HOST[:PORT]|loopback",
    )  # fmt: skip
    blocks: str = option(..., "Blocks of each direction, as predict --blocks takes them.", metavar="'1024 x 64 KiB'")
    source: str = option("gpu0", "Memory that they start in: gpu0, host, host:1.", "--from", metavar="gpu0|host")
    software: tuple[str, ...] = option(
        (), "cuMemcpyAsync, cuMemcpyBatchAsync, cuMemcpyBatchAsync-256 (calls of 256), "
        "cuMemcpyBatchAsync-256-sorted (in the order of their addresses there), kernel; to files io_uring, cuFile.",
        metavar="NAME,...", parse=words, default_text="all that are possible",
    )  # fmt: skip
    over: str | None = option(
        None, "The network between two processes that the blocks go over.", metavar="|".join(OVER),
        default_text="none: within this machine",
    )  # fmt: skip
    list_length: int = option(_LIST, _OVER + "blocks that one call posts.", "--list", metavar="N", minimum=1,
                              maximum=1024)  # fmt: skip
    secret_file: Path | None = option(None, _OVER + "file with the secret that both sides share.", metavar="FILE",
                                      default_text="LANEWISE_SECRET")  # fmt: skip
    device: str | None = option(None, "With --over verbs: this side's RDMA device.", metavar="NAME")
    threads: int = option(_THREADS, "With a file: threads that post blocks, in each direction.", metavar="N", minimum=1)
    depth: int = option(_DEPTH, "With a file: blocks in flight for each thread.", metavar="N", minimum=1)
    runs: int = option(10, "Most runs of each row; fewer if they agree within 1 %.", metavar="N", minimum=1)
    peak_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.over is not None:
            return self._check_network(self.over)
        if (self.list_length, self.secret_file, self.device) != (_LIST, None, None):
            cause = "--list, --secret-file and --device are of a network"
            raise InputError(cause, hint="write --over tcp, verbs or nixl")
        start, end = self.start, self.memory
        if start.gpu is None and end is not None and end.gpu is None:
            cause = f"{start.name}->{end.name} touches neither a GPU nor a file"
            raise InputError(cause, hint="write --from gpu0, or a folder: --to /data")
        if start.name == (end.name if end else ""):
            raise InputError(f"the blocks start and end in {start.name}", hint="write --to host, gpu1 or a folder")
        if end is not None and (self.threads, self.depth) != (_THREADS, _DEPTH):
            cause = f"--threads and --depth have no effect between {start.name} and {end.name}"
            raise InputError(cause, hint="leave them out: a thread a direction posts all blocks")
        for name in self.software:
            if name not in (*COPIES, *FILES):
                raise unknown_name("software", name, (*COPIES, *FILES))
            if name not in self.possible_software:
                cause = f"{name} moves nothing from {start.name} to {self.to}"
                raise InputError(cause, hint=f"write --software {','.join(self.possible_software)}")
        return None

    def _check_network(self, over: str) -> None:
        if over not in OVER:
            raise unknown_name("network", over, OVER)
        if self.start.gpu is not None:
            cause = f"{self.start.name}'s memory is not sent by --over {over}"
            raise InputError(cause, hint="write --from host: the blocks of host memory to those of another process")
        if self.software or (self.threads, self.depth) != (_THREADS, _DEPTH):
            cause = f"--software, --threads and --depth have no effect with --over {over}"
            raise InputError(cause, hint="leave them out: one thread posts all blocks, --list N at a time")

    @property
    def side(self) -> NetworkSideOptions:
        """This side of the network, as `measure network` takes it."""
        return NetworkSideOptions(node=self.start.node, device=self.device, secret_file=self.secret_file)

    @property
    def start(self) -> StorageTarget:
        """The memory that the blocks start in."""
        return storage_target(self.source)

    @property
    def memory(self) -> StorageTarget | None:
        """The memory that they go to; None for a file or another process."""
        if self.over is not None:
            return None
        try:
            return storage_target(self.to)
        except InputError:
            return None

    @property
    def possible_software(self) -> tuple[str, ...]:
        """What moves data between these ends."""
        if self.memory is not None:
            return COPIES
        return FILES if self.start.gpu is not None else FILES[:1]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs at the ends."""
        return tuple(end.name for end in (self.start, self.memory) if end is not None and end.gpu is not None)

    @property
    def rule(self) -> SamplingRule:
        """When a row has enough runs."""
        return SamplingRule(min(5, self.runs), self.runs, 0.01)
