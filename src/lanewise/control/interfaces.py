"""The network interface that has a local address."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from pathlib import Path

NET = Path("/sys/class/net")
_SIOCGIFADDR = 0x8915


def interface_of(address: str) -> str:
    """The interface with a local address, '' if none has it."""
    address = address.partition("%")[0]
    if ":" in address and not address.startswith("::ffff:"):
        return _interface_of_v6(address)
    packed = socket.inet_aton(address.removeprefix("::ffff:"))
    if packed[0] == 127:
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in sorted(os.listdir(NET)) if NET.is_dir() else ():
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            if answer[20:24] == packed:
                return name
    return ""


def _interface_of_v6(address: str) -> str:
    packed = socket.inet_pton(socket.AF_INET6, address).hex()
    try:
        table = Path("/proc/net/if_inet6").read_text(encoding="ascii")
    except OSError:
        return ""
    return next((line.split()[-1] for line in table.splitlines() if line.startswith(packed)), "")
