"""What a listener offers, and the addresses where users look for it."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import InputError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ControlService:
    """What a listener does for its clients: its `name` in every greeting, its usual port, the command that starts it.

    The name is 1 to 40 lower-case letters and spaces; HOST:PORT can follow the `listen_command`.
    """

    name: str
    port: int
    listen_command: str

    @property
    def listen_hint(self) -> str:
        """What to do where another program answers."""
        return f"start `{self.listen_command}` there, or name its port"


def parse_address(text: str, port: int) -> tuple[str, int]:
    """'HOST', 'HOST:PORT', ':PORT', '[V6]:PORT' or a bare IPv6 address, else `port`; InputError for anything else."""
    hint = "write HOST, HOST:PORT or [ADDRESS]:PORT"
    host, tail = text.strip(), ""
    if host.startswith("["):
        host, closing, tail = host[1:].partition("]")
        if not closing or (tail and not tail.startswith(":")):
            raise InputError(f"'{text}' is no address", hint=hint)
        tail = tail[1:]
    elif host.count(":") == 1:
        host, _, tail = host.partition(":")
    if tail:
        if not tail.isascii() or not tail.isdigit() or int(tail) > 65535:
            raise InputError(f"'{tail}' is no port", hint=f"choose 1 to 65535, or leave it out for {port}")
        port = int(tail)
    if any(c.isspace() or c in "/\\@" for c in host):
        raise InputError(f"'{text}' is no address", hint=hint)
    return host or LOOPBACK, port
