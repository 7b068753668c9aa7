"""PCI configuration space: link, payload and ACS from the bytes that sysfs shows as `config`."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_STATUS, _FIRST, _EXPRESS, _EXTENDED, _ACS = 0x06, 0x34, 0x10, 0x100, 0x000D
_HAS_LIST, _REDIRECT = 0x10, 0x04
_PORTS = {4: "root", 5: "up", 6: "down"}
_LANES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Config:
    """What the capabilities say; None is unknown."""

    port: str | None = None
    gen: int | None = None
    lanes: int | None = None
    gen_now: int | None = None
    lanes_now: int | None = None
    payload: int | None = None
    read_request: int | None = None
    acs: bool | None = None


def decode(data: bytes) -> Config:
    """The PCI Express and ACS capabilities; 64 bytes (read without root) say nothing."""
    at = _express(data)
    if at is None or at + 20 > len(data):
        return Config()
    flags, _, control = struct.unpack_from("<HIH", data, at + 2)
    able = struct.unpack_from("<I", data, at + 12)[0]
    status = struct.unpack_from("<H", data, at + 18)[0]
    return Config(
        port=_PORTS.get(flags >> 4 & 15),
        gen=_gen(able & 15),
        lanes=_lanes(able >> 4 & 63),
        gen_now=_gen(status & 15),
        lanes_now=_lanes(status >> 4 & 63),
        payload=128 << (control >> 5 & 7),
        read_request=128 << (control >> 12 & 7),
        acs=_acs(data),
    )


def _gen(code: int) -> int | None:
    return code if 1 <= code <= 6 else None


def _lanes(code: int) -> int | None:
    return code if code in _LANES else None


def _express(data: bytes) -> int | None:
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


def _acs(data: bytes) -> bool | None:
    at = _EXTENDED
    for _ in range(960):
        if at < _EXTENDED or at + 8 > len(data):
            return None
        head = struct.unpack_from("<I", data, at)[0]
        if head & 0xFFFF == _ACS:
            return bool(struct.unpack_from("<H", data, at + 6)[0] & _REDIRECT)
        at = head >> 20 & 0xFFC
    return None
