"""Options of `lanewise measure network`: transport, messages, connections, directions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError
from lanewise.options.option import Options, argument, option, sizes, whole_numbers
from lanewise.options.sampling import DEFAULT_RULE, SamplingRule

TRANSPORTS = (TCP, VERBS) = ("tcp", "verbs")
OPERATIONS = (WRITE, READ, SEND) = ("write", "read", "send")
DIRECTIONS = {"to": ("to",), "from": ("from",), "both": ("to", "from")}
_VERBS = "verbs only: "


@dataclass(frozen=True, slots=True)
class NetworkSideOptions(Options):
    """Where the threads and buffers of one side are, its RDMA device, its secret; each side has its own."""

    node: int | None = option(None, "NUMA node of threads and buffers.", metavar="N", default_text="that of the card")
    no_bind: bool = option(False, "Leave threads and buffers unbound.")
    device: str | None = option(None, _VERBS + "this side's RDMA device.", metavar="NAME")
    gid_index: int | None = option(None, _VERBS + "this side's GID.", metavar="N")
    secret_file: Path | None = option(
        None, "File with the secret that both sides share.", metavar="FILE",
        default_text="LANEWISE_SECRET; --listen makes one",
    )  # fmt: skip
    tls_certificate: Path | None = option(
        None, "With --listen: speak TLS with this certificate (PEM).", metavar="FILE", default_text="no TLS"
    )
    tls_key: Path | None = option(None, "Private key of --tls-certificate (PEM).", metavar="FILE",
                                  default_text="in the same file")  # fmt: skip
    tls_ca: Path | None = option(
        None, "Speak TLS with a listener whose certificate is in this file, or signed by one in it (PEM).",
        metavar="FILE", default_text="no TLS",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasureNetworkOptions(NetworkSideOptions):
    """A sweep: every size with every number of connections, to the listener at `address` (None: loopback)."""

    address: str | None = argument(
        "[HOST][:PORT]", "The listener to measure to (or where to listen); none: loopback.", None
    )
    transport: str = option(TCP, "What carries the data.", metavar="|".join(TRANSPORTS))
    sizes: tuple[int, ...] = option(
        (), "Message sizes, such as 4KiB,128KiB.", metavar="SIZE,...", parse=sizes,
        default_text="4KiB,128KiB; with --latency 64B,4KiB",
    )  # fmt: skip
    connections: tuple[int, ...] = option(
        (1, 4), "Connections, or queue pairs, that run at once.", metavar="N,...", parse=whole_numbers
    )
    seconds: float = option(0.25, "Length of one sample.", metavar="TIME", unit="s")
    latency: bool = option(False, "Round trips instead of bandwidth.")
    both_ways: bool = option(False, "Send and receive at once.")
    receive: bool = option(False, "The listener sends.")
    zero_copy: bool = option(False, "Send with MSG_ZEROCOPY (tcp).")
    operation: str = option(WRITE, _VERBS + "what moves data.", metavar="|".join(OPERATIONS))
    depth: int = option(64, _VERBS + "requests outstanding on a queue pair.", metavar="N")
    inline_bytes: int = option(0, _VERBS + "messages up to this go inline.", "--inline", metavar="SIZE", unit="B")
    events: bool = option(False, _VERBS + "sleep until a completion arrives.")
    rule: SamplingRule = DEFAULT_RULE

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if not 0.001 <= self.seconds <= 60:
            raise InputError(f"a sample of {self.seconds:g} s has no use", hint="choose 0.001 to 60 s")
        if self.both_ways and self.receive:
            raise InputError("--both-ways includes --receive", hint="choose one")

    @property
    def direction(self) -> str:
        """to the listener, from it, or both; a key of DIRECTIONS."""
        return "both" if self.both_ways else "from" if self.receive else "to"
