"""PCI configuration space: link, payload, ACS and SR-IOV from the bytes that sysfs shows as `config`."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_EXPRESS = 0x10
_STATUS, _FIRST, _EXTENDED = 0x06, 0x34, 0x100
_ACS, _SRIOV = 0x000D, 0x0010
_EXPRESS_SIZE = 20  # up to the link's status: what follows may be another capability
# How many bytes of an extended capability discovery reads.
_KEPT = {_ACS: 8, _SRIOV: 0x14}
_HAS_LIST, _REDIRECT = 0x10, 0x04
_ONES = b"\xff" * 4
_PORTS = {4: "root", 5: "up", 6: "down"}
_LANES = (1, 2, 4, 8, 16)


def decode(data: bytes) -> dict[str, str | int | bool | None]:
    """What the PCI Express, ACS and SR-IOV capabilities say, by the key of the fact; None is unknown, sizes are in B.

    64 bytes (read without root) say nothing but that all of them are ones: the device does not answer.
    """
    if data[:4] == _ONES:
        return {"off_bus": True}
    at = _find(data)
    if at is None or at + _EXPRESS_SIZE > len(data):
        return {}
    flags, device, control = struct.unpack_from("<HIH", data, at + 2)
    able = struct.unpack_from("<I", data, at + 12)[0]
    status = struct.unpack_from("<H", data, at + 18)[0]
    acs, most, now = _acs_and_vfs(data)
    return {
        "port": _PORTS.get(flags >> 4 & 15),
        "gen": _gen(able & 15),
        "lanes": _lanes(able >> 4 & 63),
        "gen_now": _gen(status & 15),
        "lanes_now": _lanes(status >> 4 & 63),
        "payload_max": _size(device & 7),
        "payload": _size(control >> 5 & 7),
        "read_request": _size(control >> 12 & 7),
        "acs": acs,
        "vfs": now,
        "vfs_max": most,
    }


def decode_header(data: bytes) -> dict[str, int | None]:
    """Ids, class and revision, and the buses below a bridge, by the key of the fact; empty if the bytes are too few."""
    if len(data) < 64 or data[:4] == _ONES:
        return {}
    vendor, device = struct.unpack_from("<HH", data, 0)
    bridge = data[0x0E] & 0x7F == 1
    return {
        "vendor": vendor,
        "device": device,
        "class": struct.unpack_from("<H", data, 0x0A)[0],
        "revision": data[0x08],
        "secondary": data[0x19] if bridge else None,
        "subordinate": data[0x1A] if bridge else None,
    }


def _gen(code: int) -> int | None:
    return code if 1 <= code <= 6 else None


def _lanes(code: int) -> int | None:
    return code if code in _LANES else None


def _size(code: int) -> int | None:
    return 128 << code if code <= 5 else None


def _find(data: bytes) -> int | None:
    """Where the PCI Express capability starts, None if the bytes show none."""
    if len(data) <= 64 or not data[_STATUS] & _HAS_LIST:
        return None
    at = data[_FIRST] & 0xFC
    for _ in range(48):
        if at < 64 or at + 2 > len(data):
            return None
        if data[at] == _EXPRESS:
            return at
        at = data[at + 1] & 0xFC
    return None


def _extended(data: bytes) -> Iterator[tuple[int, int]]:
    """Place and number of every extended capability, each once."""
    at, visited = _EXTENDED, set[int]()
    while at >= _EXTENDED and at + 8 <= len(data) and at not in visited:
        visited.add(at)
        head = struct.unpack_from("<I", data, at)[0]
        yield at, head & 0xFFFF
        at = head >> 20 & 0xFFC


def _acs_and_vfs(data: bytes) -> tuple[bool | None, int | None, int | None]:
    """Whether ACS redirects requests, and how many virtual functions there may be and are."""
    acs: bool | None = None
    most = now = None
    for at, number in _extended(data):
        if number == _ACS and acs is None:
            acs = bool(struct.unpack_from("<H", data, at + 6)[0] & _REDIRECT)
        elif number == _SRIOV and most is None and at + 0x14 <= len(data):
            most, now = struct.unpack_from("<HH", data, at + 0x0E)
    return acs, most, now


def clean_config(data: bytes) -> bytes:
    """Configuration space with the PCI Express, ACS and SR-IOV capabilities alone, where they stood; else empty.

    Of a device that does not answer the first word, all ones, remains.
    """
    if data[:4] == _ONES:
        return _ONES
    at = _find(data)
    if at is None or at + _EXPRESS_SIZE > len(data):
        return b""
    out = bytearray(len(data))
    out[0x06], out[0x34] = 0x10, at
    out[at : at + _EXPRESS_SIZE] = data[at : at + _EXPRESS_SIZE]
    out[at], out[at + 1] = _EXPRESS, 0
    capabilities = [(place, size) for place, number in _extended(data) if (size := _KEPT.get(number))]
    for place, size in capabilities:
        out[place : place + size] = data[place : place + size]
    _chain(out, [place for place, _ in capabilities])
    return bytes(out)


def _chain(out: bytearray, places: list[int]) -> None:
    """Link the remaining capabilities into a list; an empty one comes first where none is at 0x100."""
    if not places or len(out) < 260:
        return
    chain = places if places[0] == 0x100 else [0x100, *places]
    for place, following in zip(chain, [*chain[1:], 0], strict=True):
        head = struct.unpack_from("<I", out, place)[0] & 0x000FFFFF
        struct.pack_into("<I", out, place, head | following << 20)
