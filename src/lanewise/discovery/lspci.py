"""`lspci -tv` (the tree) and `lspci -vvv` (links, payload, ACS), in one text or two."""

from __future__ import annotations

import re

from lanewise.discovery.facts import OTHER, DumpFacts, address, first, width
from lanewise.errors import FormatError, Location
from lanewise.topology.speeds import generation

TREE, DETAILS = "lspci -tv", "lspci -vvv"
_ROOT = re.compile(r"^[ \t\xa0|]*[-+\\]+-?\[(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}\]", re.MULTILINE)
_HEAD = re.compile(r"^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.+)$")
_BUS = re.compile(r"\[(?:([0-9a-f]{4,8}):)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_SLOT = re.compile(r"([0-9a-f]{2}\.[0-7])")
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_CLASS = re.compile(r"\[([0-9a-f]{4})\]:")
_LINK = re.compile(r"Speed ([\d.]+ ?GT/s)[^,]{0,40}, Width (x\d+)")
_PORTS = {"Root Port": "root", "Upstream Port": "up", "Downstream Port": "down"}
_WORDS = (
    ("VGA compatible controller", 0x0300),
    ("3D controller", 0x0302),
    ("Display controller", 0x0380),
    ("Ethernet controller", 0x0200),
    ("Infiniband controller", 0x0207),
    ("Network controller", 0x0280),
    ("Non-Volatile memory controller", 0x0108),
    ("RAID bus controller", 0x0104),
    ("PCI bridge", 0x0604),
    ("Host bridge", 0x0600),
    ("Processing accelerators", 0x1200),
)


def is_tree(text: str) -> bool:
    """Whether the text holds an `lspci -t` tree."""
    return bool(_ROOT.search(text))


def is_details(text: str) -> bool:
    """Whether the text holds devices of `lspci -v`."""
    return any(_HEAD.match(line) for line in text.splitlines())


def read_tree(text: str, file: str) -> DumpFacts:
    """Which function lies below which bridge; FormatError for a branch that hangs in the air."""
    facts = DumpFacts(file, TREE)
    opened: dict[int, tuple[str, str, str]] = {}
    for number, line in enumerate(text.expandtabs().splitlines(), 1):
        if re.match(r"[\s|]*[-+\\]+-?[\[0-9a-f]", line):
            _branch(line, number, opened, facts)
    return facts


def _branch(line: str, number: int, opened: dict[int, tuple[str, str, str]], facts: DumpFacts) -> None:
    """Follow one line of the tree from where it branches off; `opened` has parent, domain and bus by column."""
    at = re.match(r"[\s|]*", line).end()  # type: ignore[union-attr]
    bdf = opened.get(at, ("", "0000", ""))
    if line[at] in "+\\" and at not in opened:
        cause = "this branch of the tree starts nowhere"
        hint = "keep the blanks at the start of the lines"
        raise FormatError(cause, location=Location(facts.path, number), hint=hint)
    for column in [column for column in opened if column > at]:
        del opened[column]
    while at < len(line):
        if line[at] in "+\\-":
            if line[at] == "+" or (line[at] == "-" and not opened):
                opened[at] = bdf
            at += 1
        elif bus := _BUS.match(line, at):
            domain = (bus[1] or bdf[1]).lstrip("0").rjust(4, "0")
            bdf = (bdf[0] or f"root:{domain}:{bus[2]}", domain, bus[2])
            at = bus.end()
        elif slot := _SLOT.match(line, at):
            name = f"{bdf[1]}:{bdf[2]}:{slot[1]}"
            facts.add(name, "parent", bdf[0], "tree", number)
            bdf, at = (name, bdf[1], ""), slot.end()
            if line[at : at + 1] != "-":
                return _named(name, line[at:].strip(), number, facts)
        else:
            return None
    return None


def _named(name: str, words: str, line: int, facts: DumpFacts) -> None:
    _ids(name, words, "tree", line, facts)
    facts.add(name, "name", words, "tree", line)


def _ids(bdf: str, words: str, what: str, line: int, facts: DumpFacts) -> None:
    ids = _IDS.findall(words)
    if ids:
        facts.add(bdf, "vendor", int(ids[-1][0], 16), what, line)
        facts.add(bdf, "device", int(ids[-1][1], 16), what, line)


def read_details(text: str, file: str) -> DumpFacts:
    """What -v, -vv and -vvv say of every function in the text."""
    facts = DumpFacts(file, DETAILS)
    bdf, part = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.match(line)
        if head:
            bdf, part = address(head[1]) or "", ""
            _title(bdf, head[2], number, facts)
        elif line[:1].isspace() and bdf:
            part = _detail(bdf, line.strip(), part, number, facts)
        elif line.strip():
            bdf = ""
    return facts


def _title(bdf: str, words: str, line: int, facts: DumpFacts) -> None:
    code = _CLASS.search(words)
    kind, _, name = words.partition(": ")
    number = int(code[1], 16) if code else next((n for word, n in _WORDS if kind.startswith(word)), None)
    facts.add(bdf, "class", number if number is not None or not name else OTHER, "class", line)
    _ids(bdf, name, "title", line, facts)
    name = name.partition(" (")[0] if name.endswith(")") else name
    facts.add(bdf, "name", re.sub(r" \[[0-9a-f]{4}:[0-9a-f]{4}\]$", "", name), "title", line)


def _detail(bdf: str, words: str, part: str, line: int, facts: DumpFacts) -> str:
    """One indented line; the register that the lines below belong to."""
    start = re.match(r"(DevCap|DevCtl|DevSta|LnkCap|LnkSta|LnkCtl|ACSCtl|ACSCap)\d?:", words)
    part = start[0].rstrip(":") if start else part
    if "Express (v" in words or re.search(r"\] Express ", words):
        facts.add(bdf, "port", next((name for word, name in _PORTS.items() if word in words), None), "Express", line)
    elif part in ("LnkCap", "LnkSta") and (link := _LINK.search(words)):
        now = "_now" if part == "LnkSta" else ""
        facts.add(bdf, f"gen{now}", generation(link[1]), part, line)
        facts.add(bdf, f"lanes{now}", width(link[2]), part, line)
    elif part == "DevCap" and (size := re.search(r"MaxPayload (\d+) bytes", words)):
        facts.add(bdf, "payload_max", first(size[1]), part, line)
    elif part == "DevCtl" and (sizes := re.search(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes", words)):
        facts.add(bdf, "payload", first(sizes[1]), part, line)
        facts.add(bdf, "read_request", first(sizes[2]), part, line)
    elif part == "ACSCtl" and "ReqRedir" in words:
        facts.add(bdf, "acs", "ReqRedir+" in words, part, line)
    elif node := re.match(r"NUMA node: (\d+)", words):
        facts.add(bdf, "numa", first(node[1]), "NUMA node", line)
    elif group := re.match(r"IOMMU group: (\d+)", words):
        facts.add(bdf, "iommu_group", first(group[1]), "IOMMU group", line)
    elif functions := re.search(r"Total VFs: (\d+), Number of VFs: (\d+)", words):
        facts.add(bdf, "vfs_max", first(functions[1]), "SR-IOV", line)
        facts.add(bdf, "vfs", first(functions[2]), "SR-IOV", line)
    return part
