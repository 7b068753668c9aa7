"""Which kind of dump a file is, by its content, and its facts."""

from __future__ import annotations

import json
import re

from lanewise.discovery import hwloc, lspci, nccl, topo
from lanewise.discovery.capture import Capture, read_tar
from lanewise.discovery.facts import MACHINE, DumpFacts
from lanewise.discovery.nvlink_ibstat import is_ibstat, is_nvlinks, read_ibstat, read_nvlinks
from lanewise.discovery.nvml import read_nvml
from lanewise.discovery.sysfs import read_sysfs
from lanewise.errors import FormatError, Location

KNOWN = (
    "known are captures, a tar or folder of /sys, hwloc XML, NCCL topology XML, lspci -tv and -vvv, ibstat, "
    "and nvidia-smi topo -m, topo -p2p and nvlink -s"
)
_ARCHIVES = (b"BZh", b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_XML = re.compile(r"\s*(?:<\?xml[^>]*\?>|<!DOCTYPE[^>]*>|<!--.*?-->|\s)*<(\w+)", re.DOTALL)


def read_dump(data: bytes, file: str) -> tuple[DumpFacts, ...]:
    """What a dump says, kind by kind; FormatError that names the known kinds if it is none of them."""
    if data.startswith(_ARCHIVES) or data[257:262] == b"ustar":
        return read_capture(read_tar(data, file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unknown(file) from None
    root = _XML.match(text)
    if "<!ENTITY" in text.upper() or (root and root[1] in ("topology", "system")):
        return (hwloc.read_hwloc(text, file) if "<topology" in text else nccl.read_nccl(text, file),)
    return _texts(text, file)


def read_capture(capture: Capture) -> tuple[DumpFacts, ...]:
    """What a captured /sys says, and the records beside it."""
    dumps = [read_sysfs(capture)]
    if "nvml.json" in capture.texts:
        dumps.append(read_nvml(capture.text("nvml.json"), capture.file))
    if "capture.json" in capture.texts:
        dumps.append(_read_record(capture.text("capture.json"), capture.file))
    return tuple(dumps)


def _texts(text: str, file: str) -> tuple[DumpFacts, ...]:
    dumps = []
    if lspci.is_tree(text):
        dumps.append(lspci.read_tree(text, file))
    if lspci.is_details(text):
        dumps.append(lspci.read_details(text, file))
    matrices = topo.kinds(text)
    if topo.KIND in matrices or (not matrices and re.search(r"^\s*GPU0\s", topo.plain(text), re.MULTILINE)):
        dumps.append(topo.read_topo(text, file))
    if topo.PEERS in matrices:
        dumps.append(topo.read_peers(text, file))
    if is_nvlinks(text):
        dumps.append(read_nvlinks(text, file))
    if is_ibstat(text):
        dumps.append(read_ibstat(text, file))
    if not dumps:
        raise _unknown(file)
    return tuple(dumps)


def _unknown(file: str) -> FormatError:
    return FormatError("not a dump of a machine that Lanewise knows", location=Location(file), hint=KNOWN)


def _read_record(text: str, file: str) -> DumpFacts:
    """The facts of a capture's own record; FormatError if it is none."""
    facts = DumpFacts(file, "capture")
    try:
        data = json.loads(text)
    except ValueError as error:
        cause = f"its capture.json is no JSON: {error}"
        raise FormatError(cause, location=Location(file), hint="write the capture again") from None
    if not isinstance(data, dict):
        raise FormatError("its capture.json holds no record", location=Location(file), hint="write the capture again")
    for key, kind in (("under_load", bool), ("made", str), ("kernel", str)):
        value = data.get(key)
        facts.add(MACHINE, key, value if isinstance(value, kind) else None, "capture.json")
    return facts
