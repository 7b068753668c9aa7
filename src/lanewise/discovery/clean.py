"""Takes out of a capture what tells one machine from its twin: serial numbers, names, addresses of cards."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

from lanewise.discovery.capture import LINKS, WANTED, Capture
from lanewise.discovery.config import EXPRESS, extended, find, kept_extended
from lanewise.discovery.nvml import same_record

# Names that the kernel or udev make of a hardware address: enx0123456789ab, rocex0123456789abcdef.
_HARDWARE_NAME = re.compile(r"(?:^|/)[a-z]+x[0-9a-f]{12,16}(?:/|$)")
_HARDWARE = re.compile(r"/pci[0-9a-f]{4,8}:|/virtual/block/md\d+$|/nvme-subsystem/")
_EXPRESS_SIZE = 20  # up to the link's status: what follows may be another capability


def clean(capture: Capture) -> Capture:
    """The same capture with only what discovery reads: paths that are wanted, and of these the telling bytes."""
    texts = {path: _content(path, data) for path, data in capture.texts.items() if _allowed(WANTED, path)}
    links = {path: to for path, to in capture.links.items() if _allowed(LINKS, path) and _leads(path, to)}
    return replace(capture, texts={path: data for path, data in texts.items() if data}, links=links)


def _allowed(pattern: re.Pattern[str], path: str) -> bool:
    return bool(pattern.fullmatch(path)) and not _HARDWARE_NAME.search(path)


def _leads(path: str, target: str) -> bool:
    """Whether a link leads to hardware: names of bridges, tunnels and mapped volumes are the owner's own."""
    chosen = path.startswith(("sys/class/net/", "sys/block/"))
    return not _HARDWARE_NAME.search(target) and (not chosen or bool(_HARDWARE.search(target)))


def _content(path: str, data: bytes) -> bytes:
    if path.endswith("/config"):
        return clean_config(data)
    if path == "proc/cpuinfo":
        return _lines(data, rb"(?:model name|cpu)\s*:.*")
    if path.endswith("/meminfo"):
        return _lines(data, rb"Node \d+ MemTotal:.*")
    return same_record(data) if path == "nvml.json" else data


def _lines(data: bytes, pattern: bytes) -> bytes:
    """The lines of that form, each once."""
    return b"".join(line + b"\n" for line in dict.fromkeys(re.findall(rb"^" + pattern + rb"$", data, re.MULTILINE)))


def clean_config(data: bytes) -> bytes:
    """Configuration space with the PCI Express, ACS and SR-IOV capabilities alone, where they stood; else empty."""
    at = find(data)
    if at is None or at + _EXPRESS_SIZE > len(data):
        return b""
    out = bytearray(len(data))
    out[0x06], out[0x34] = 0x10, at
    out[at : at + _EXPRESS_SIZE] = data[at : at + _EXPRESS_SIZE]
    out[at], out[at + 1] = EXPRESS, 0
    capabilities = [(place, size) for place, number in extended(data) if (size := kept_extended(number))]
    for place, size in capabilities:
        out[place : place + size] = data[place : place + size]
    _chain(out, [place for place, _ in capabilities])
    return bytes(out)


def _chain(out: bytearray, places: list[int]) -> None:
    """Join the capabilities that are left; an empty one stands at the start where none of them does."""
    if not places or len(out) < 260:
        return
    chain = places if places[0] == 0x100 else [0x100, *places]
    for place, following in zip(chain, [*chain[1:], 0], strict=True):
        head = struct.unpack_from("<I", out, place)[0] & 0x000FFFFF
        struct.pack_into("<I", out, place, head | following << 20)
