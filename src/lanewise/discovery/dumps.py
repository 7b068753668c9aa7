"""Which kind of dump a file is, by its content, and its facts."""

from __future__ import annotations

import json
import re

from lanewise.discovery import cpu_dumps, lspci, lspci_details, nvidia_smi
from lanewise.discovery.capture import Capture, read_tar
from lanewise.discovery.facts import MACHINE, DumpFacts, short_lines
from lanewise.discovery.sysfs import read_sysfs
from lanewise.discovery.xml_topology import read_hwloc, read_nccl
from lanewise.errors import FormatError, Location

KNOWN = (
    "known are captures, a tar or folder of /sys, hwloc XML, NCCL topology XML, lspci -tv and -vvv, lscpu, "
    "numactl --hardware, ibstat, "
    "nvidia-smi topo -m, topo -p2p and nvlink -s, and with them nvidia-smi's lists of GPUs"
)
_CARD = re.compile(r"\s*CA '([^']+)'")
_PORT = re.compile(r"\s*(State|Rate|Link layer): (.+)")
_GPU0 = re.compile(r"\s*GPU0\s")
_ARCHIVES = (b"BZh", b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
# What may come before the first element of an XML: how it starts and ends.
_BEFORE_ROOT = (("<?", "?>"), ("<!DOCTYPE", ">"), ("<!--", "-->"))
_ELEMENT = re.compile(r"<(\w{1,80})")
# No dump of text or XML of one machine is larger.
_MAX_TEXT = 32 * 2**20


def read_dump(data: bytes, file: str) -> tuple[DumpFacts, ...]:
    """What a dump says, kind by kind; FormatError that names the known kinds if it is none of them."""
    if data.startswith(_ARCHIVES) or data[257:262] == b"ustar":
        return read_capture(read_tar(data, file))
    if len(data) > _MAX_TEXT:
        cause = f"holds more than {_MAX_TEXT // 2**20} MiB, the most that Lanewise reads of a dump that is no tar"
        raise FormatError(cause, location=Location(file), hint="name the dump of one machine")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unknown(file) from None
    if "<!ENTITY" in text.upper() or _root(text) in ("topology", "system"):
        return (read_hwloc(text, file) if "<topology" in text else read_nccl(text, file),)
    return _texts(text, file)


def _root(text: str) -> str:
    """The name of the first element of an XML; empty if the text is none."""
    at = 0
    while True:
        at += len(text[at : at + 1024]) - len(text[at : at + 1024].lstrip())
        end = next((end for start, end in _BEFORE_ROOT if text.startswith(start, at)), "")
        if end:
            close = text.find(end, at)
            if close < 0:
                return ""
            at = close + len(end)
        elif text[at : at + 1].isspace():
            continue
        else:
            root = _ELEMENT.match(text, at)
            return root[1] if root else ""


def read_capture(capture: Capture) -> tuple[DumpFacts, ...]:
    """The facts of a captured /sys, of its NVML record and of its capture record."""
    dumps = [read_sysfs(capture)]
    if "nvml.json" in capture.texts:
        from lanewise.discovery.nvml import read_nvml  # its forms load pydantic

        dumps.append(read_nvml(capture.text("nvml.json"), capture.file))
    if "capture.json" in capture.texts:
        dumps.append(_read_record(capture.text("capture.json"), capture.file))
    return tuple(dumps)


def _texts(text: str, file: str) -> tuple[DumpFacts, ...]:
    text = short_lines(text)
    lines = text.split("\n")
    matrices = nvidia_smi.matrix_kinds(text)
    topo = not matrices and any(map(_GPU0.match, nvidia_smi.plain(text).split("\n")))
    kinds = (
        (lspci.is_tree(text), lspci.read_tree),
        (lspci_details.is_details(text), lspci_details.read_details),
        ((nvidia_smi.TOPO in matrices or topo) and not nvidia_smi.is_cut(text), nvidia_smi.read_topo),
        (nvidia_smi.PEERS in matrices, nvidia_smi.read_peers),
        (nvidia_smi.is_nvlinks(text), nvidia_smi.read_nvlinks),
        (nvidia_smi.has_names(text), nvidia_smi.read_names),
        (cpu_dumps.is_lscpu(text), cpu_dumps.read_lscpu),
        (cpu_dumps.is_cpuinfo(text), cpu_dumps.read_cpuinfo),
        (cpu_dumps.is_numactl(text), cpu_dumps.read_numactl),
        (any(map(_CARD.match, lines)) and any(map(_PORT.match, lines)), _read_ibstat),
    )
    dumps = tuple(read(text, file) for is_kind, read in kinds if is_kind)
    if not dumps and nvidia_smi.is_cut(text):
        hint = "keep the whole output of the command"
        raise FormatError("rows of the matrix of nvidia-smi topo were left out", location=Location(file), hint=hint)
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
    except (ValueError, RecursionError) as error:
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
    card = ""
    reported: set[tuple[str, str]] = set()
    for number, line in enumerate(text.split("\n"), 1):
        head, port = _CARD.match(line), _PORT.match(line)
        card = head[1] if head else card
        if port and card:
            key, value = port[1].lower().replace(" ", "_"), port[2].rstrip()
            if (card, key) not in reported:
                facts.add(card, key, f"{value} Gb/s" if key == "rate" else value, port[1], number)
            reported.add((card, key))
    return facts
