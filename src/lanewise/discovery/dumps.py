"""Which kind of dump a file is, by its content, and its facts."""

from __future__ import annotations

import json
import re

from lanewise.discovery import lspci, nvidia_smi
from lanewise.discovery.capture import Capture, read_tar
from lanewise.discovery.facts import MACHINE, DumpFacts
from lanewise.discovery.nvml import read_nvml
from lanewise.discovery.sysfs import read_sysfs
from lanewise.discovery.xml_topology import read_hwloc, read_nccl
from lanewise.errors import FormatError, Location

KNOWN = (
    "known are captures, a tar or folder of /sys, hwloc XML, NCCL topology XML, lspci -tv and -vvv, ibstat, "
    "and nvidia-smi topo -m, topo -p2p and nvlink -s"
)
_CARD = re.compile(r"^\s*CA '([^']+)'", re.MULTILINE)
_PORT = re.compile(r"^\s*(State|Rate|Link layer): (.+?)\s*$", re.MULTILINE)
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
        return (read_hwloc(text, file) if "<topology" in text else read_nccl(text, file),)
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
    matrices = nvidia_smi.matrix_kinds(text)
    topo = not matrices and re.search(r"^\s*GPU0\s", nvidia_smi.plain(text), re.MULTILINE)
    kinds = (
        (lspci.is_tree(text), lspci.read_tree),
        (lspci.is_details(text), lspci.read_details),
        (nvidia_smi.TOPO in matrices or topo, nvidia_smi.read_topo),
        (nvidia_smi.PEERS in matrices, nvidia_smi.read_peers),
        (nvidia_smi.is_nvlinks(text), nvidia_smi.read_nvlinks),
        (_CARD.search(text) and _PORT.search(text), _read_ibstat),
    )
    dumps = tuple(read(text, file) for is_kind, read in kinds if is_kind)
    if not dumps:
        raise _unknown(file)
    return dumps


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


def _read_ibstat(text: str, file: str) -> DumpFacts:
    """State, rate and link layer of each device's first port; GUIDs are not read."""
    facts = DumpFacts(file, "ibstat")
    heads = list(_CARD.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        for match in _PORT.finditer(text, head.end(), end):
            line = text.count("\n", 0, match.start(1)) + 1
            key = match[1].lower().replace(" ", "_")
            if not any(fact.about == head[1] and fact.key == key for fact in facts.facts):
                facts.add(head[1], key, f"{match[2]} Gb/s" if key == "rate" else match[2], match[1], line)
    return facts
