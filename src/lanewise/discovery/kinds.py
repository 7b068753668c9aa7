"""Which kind of dump a file is, by its content, and its facts."""

from __future__ import annotations

import re

from lanewise.discovery import hwloc, lspci, nccl, topo
from lanewise.discovery.capture import read_tar
from lanewise.discovery.facts import Reading
from lanewise.discovery.sysfs import read_sysfs
from lanewise.errors import FormatError, Place

KNOWN = "known are hwloc XML, NCCL topology XML, nvidia-smi topo -m, lspci -tv, lspci -vvv, and a tar or folder of /sys"
_ARCHIVES = (b"BZh", b"\x1f\x8b", b"\xfd7zXZ")
_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>|<!DOCTYPE[^>]*>|<!--.*?-->|\s)*<(\w+)", re.DOTALL)


def read_dump(data: bytes, file: str) -> tuple[Reading, ...]:
    """What a dump says, kind by kind; FormatError that names the known kinds if it is none of them."""
    if data.startswith(_ARCHIVES) or data[257:262] == b"ustar":
        return (read_sysfs(read_tar(data, file)),)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unknown(file) from None
    root = _XML.match(text)
    if "<!ENTITY" in text.upper() or (root and root[1] in ("topology", "system")):
        return (hwloc.read_hwloc(text, file) if "<topology" in text else nccl.read_nccl(text, file),)
    return _texts(text, file)


def _texts(text: str, file: str) -> tuple[Reading, ...]:
    readings = []
    if lspci.is_tree(text):
        readings.append(lspci.read_tree(text, file))
    if lspci.is_details(text):
        readings.append(lspci.read_details(text, file))
    if re.search(r"^\s*GPU0\s", topo.plain(text), re.MULTILINE):
        readings.append(topo.read_topo(text, file))
    if not readings:
        raise _unknown(file)
    return tuple(readings)


def _unknown(file: str) -> FormatError:
    return FormatError("not a dump of a machine that Lanewise knows", place=Place(file), hint=KNOWN)
