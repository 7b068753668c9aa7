"""`lspci -v` to `-vvvxxxx`: what each function says of itself, and the tree that the buses of the bridges make."""

from __future__ import annotations

from collections import defaultdict

from lanewise import late_re as re
from lanewise.discovery.config import decode, decode_header
from lanewise.discovery.facts import OTHER, DumpFacts, Value, address, first, width
from lanewise.discovery.pci_ids import ids_in
from lanewise.topology.speeds import generation
from lanewise.units import whole

DETAILS = "lspci -vvv"
_BDF = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# `lspci -PP` writes the bridges above a function before it.
_HEAD = re.compile(rf"((?:{_BDF}/){{0,64}})({_BDF}) (.+)")
_CLASS = re.compile(r"\[([0-9a-f]{4})\]:")
_NUMBERS = re.compile(r"(?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})")
_QUOTED = re.compile(r"(?:> ?){1,8}")
_REVISION = re.compile(r"\(rev ([0-9a-f]{2})\)")
_LINK = re.compile(r"Speed ([\d.]+ ?GT/s|unknown)[^,]{0,40}, Width (x\d+)")
_BUSES = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_BYTES = re.compile(r"([0-9a-f]{2,3}):((?: [0-9a-f]{2}){16})")
_PORTS = {"Root Port": "root", "Upstream Port": "up", "Downstream Port": "down"}
# What lspci writes to stderr, which pasted text has in between.
_WARNINGS = ("lspci: ", "pcilib: ")
_NOT_DECODED = ("<access denied>", "<unreadable>")
_ALL_ONES = 63
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


def is_details(text: str) -> bool:
    """Whether the text holds devices of `lspci -v`."""
    return any(_head(line) for line in text.splitlines() if line)


def _head(line: str) -> re.Match[str] | None:
    quoted = _QUOTED.match(line)
    return _HEAD.fullmatch(line, quoted.end() if quoted else 0)


def read_details(text: str, file: str) -> DumpFacts:
    """What -v, -vv, -vvv and -x say of every function in the text, and the bridge above each by the buses."""
    facts = DumpFacts(file, DETAILS)
    reader = _Reader(facts)
    for number, line in enumerate(text.splitlines(), 1):
        quoted = _QUOTED.match(line)
        reader.read(line[quoted.end() :] if quoted else line, number)
    reader.close()
    add_parents(facts)
    if reader.closed:
        note = f"the capabilities of {reader.closed} functions were closed to lspci: speeds, payloads and ACS of their"
        facts.notes.append(f"{facts.file}: {note} ports are unknown; run it with sudo")
    return facts


class _Reader:
    """Reads line after line; the function, register and configuration bytes that the lines before belong to."""

    def __init__(self, facts: DumpFacts) -> None:
        self.facts, self.closed = facts, 0
        self.bdf = self.register = ""
        self.line = 0
        self.config = bytearray()
        self.known: dict[str, set[str]] = defaultdict(set)

    def read(self, line: str, number: int) -> None:
        head = _HEAD.fullmatch(line)
        if head:
            self.close()
            self.bdf, self.register, self.line = address(head[2]) or "", "", number
            self._title(head[3], number)
            above = address(head[1].rstrip("/").rpartition("/")[2])
            self.add("parent", above, "path", number)
        elif self.bdf and (row := _BYTES.match(line)):
            if int(row[1], 16) == len(self.config) < 4096:
                self.config += bytes.fromhex(row[2])
        elif line[:1].isspace() and self.bdf:
            self._detail(line.strip(), number)
        elif line.strip() and not line.startswith(_WARNINGS):
            self.close()

    def add(self, key: str, value: Value | None, what: str, line: int) -> None:
        if value is not None:
            self.known[self.bdf].add(key)
        self.facts.add(self.bdf, key, value, what, line)

    def close(self) -> None:
        """End the function: what its configuration bytes say and its text did not."""
        data = bytes(self.config)
        if self.bdf and len(data) >= 64:
            for key, value in {**decode_header(data), **decode(data)}.items():
                if key not in self.known[self.bdf]:
                    self.facts.add(self.bdf, key, value, "configuration space", self.line)
        self.bdf = ""
        self.config = bytearray()

    def _title(self, words: str, line: int) -> None:
        numbers = _NUMBERS.match(words)
        if numbers:
            for key, text in zip(("class", "vendor", "device"), numbers.groups(), strict=True):
                self.add(key, int(text, 16), "title", line)
        else:
            self._named(words, line)
        revision = _REVISION.search(words)
        self.add("revision", int(revision[1], 16) if revision else None, "title", line)
        if revision and revision[1] == "ff":
            self.add("off_bus", True, "(rev ff)", line)

    def _named(self, words: str, line: int) -> None:
        code = _CLASS.search(words)
        kind, _, name = words.partition(": ")
        number = int(code[1], 16) if code else next((n for word, n in _WORDS if kind.startswith(word)), None)
        self.add("class", number if number is not None or not name else OTHER, "class", line)
        name = re.split(r" \((?:rev|prog-if) ", name, maxsplit=1)[0]
        for key, value in zip(("vendor", "device"), ids_in(name) or (), strict=False):
            self.add(key, value, "title", line)
        self.add("name", re.sub(r" \[[0-9a-f]{4}:[0-9a-f]{4}\]$", "", name), "title", line)

    def _detail(self, words: str, line: int) -> None:
        """One indented line."""
        start = re.match(r"(DevCap|DevCtl|DevSta|LnkCap|LnkSta|LnkCtl|ACSCtl|ACSCap)\d?:", words)
        self.register = start[0].rstrip(":") if start else self.register
        if "Express (v" in words or re.search(r"\] Express ", words):
            self.register = ""
            self.add("port", next((name for word, name in _PORTS.items() if word in words), None), "Express", line)
        elif words.startswith("Capabilities: ") and words.endswith(_NOT_DECODED):
            self.closed += 1
        elif words.startswith("!!! Unknown header type 7f"):
            self.add("off_bus", True, "header type 7f", line)
        elif buses := _BUSES.match(words):
            self.add("secondary", int(buses[1], 16), "Bus", line)
            self.add("subordinate", int(buses[2], 16), "Bus", line)
        elif not self._registers(words, line):
            self._places(words, line)

    def _registers(self, words: str, line: int) -> bool:
        """Read a line of a link, device or ACS register; whether it was one."""
        if self.register in ("LnkCap", "LnkSta") and (link := _LINK.search(words)):
            now = "_now" if self.register == "LnkSta" else ""
            self.add(f"gen{now}", generation(link[1]), self.register, line)
            self.add(f"lanes{now}", width(link[2]), self.register, line)
            if whole(link[2][1:]) == _ALL_ONES:
                self.add("off_bus", True, f"{self.register} x{_ALL_ONES}", line)
        elif self.register == "DevCap" and (size := re.search(r"MaxPayload (\d+) bytes", words)):
            self.add("payload_max", first(size[1]), self.register, line)
        elif self.register == "DevCtl" and (
            sizes := re.search(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes", words)
        ):
            self.add("payload", first(sizes[1]), self.register, line)
            self.add("read_request", first(sizes[2]), self.register, line)
        elif self.register == "ACSCtl" and "ReqRedir" in words:
            self.add("acs", "ReqRedir+" in words, self.register, line)
        else:
            return False
        return True

    def _places(self, words: str, line: int) -> None:
        """NUMA node, IOMMU group, slot, virtual functions, driver."""
        if words.startswith(("Flags: ", "NUMA node: ", "IOMMU group: ")):  # all in one line of Flags with a single -v
            for key, name in (("numa", "NUMA node"), ("iommu_group", "IOMMU group")):
                number = re.search(rf"{name}:? (\d+)", words)
                self.add(key, first(number[1]) if number else None, name, line)
        elif slot := re.match(r"Physical Slot: (\S{1,40})", words):
            self.add("slot", slot[1], "Physical Slot", line)
        elif functions := re.search(r"Total VFs: (\d+), Number of VFs: (\d+)", words):
            self.add("vfs_max", first(functions[1]), "SR-IOV", line)
            self.add("vfs", first(functions[2]), "SR-IOV", line)
        elif places := re.match(r"VF offset: (\d{1,5}), stride: (\d{1,5})", words):
            self.add("vf_offset", first(places[1]), "SR-IOV", line)
            self.add("vf_stride", first(places[2]), "SR-IOV", line)
        elif serial := re.search(r"Device Serial Number ([0-9a-f-]{23})", words):
            self.add("serial", serial[1], "Device Serial Number", line)


def add_parents(facts: DumpFacts) -> None:
    """Add the bridge or host bridge above each function by the buses of the bridges in the same text.

    Where the bridge of a bus is not in it, `below` names the next bridge above that is.
    """
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for fact in facts.facts:
        if fact.key in ("secondary", "subordinate", "class") or (fact.key, fact.value) == ("port", "root"):
            numbers[fact.about].setdefault(fact.key, 1 if fact.key == "port" else int(fact.value))
    buses = {bdf: (bdf.rpartition(":")[0].rpartition(":")[0], int(bdf.rpartition(":")[0][-2:], 16)) for bdf in numbers}
    secondary: dict[tuple[str, int], str] = {}
    ranges: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    roots: set[tuple[str, int]] = set()
    for bdf, said in numbers.items():
        domain, bus = buses[bdf]
        below = said.get("secondary", 0)
        if below > bus and (domain, below) not in secondary:
            secondary[domain, below] = bdf
            ranges[domain].append((below, max(below, said.get("subordinate", 0)), bdf))
        if said.get("class") == 0x0600 or "port" in said:
            roots.add((domain, bus))
    bridged = {buses[bdf] for bdf in secondary.values()}
    above = {place: _covering(place, ranges) for place in {*buses.values()} if place not in secondary}
    roots |= {place for place in bridged if place not in secondary and not above[place]}
    stated = {fact.about for fact in facts.facts if fact.key == "parent"}
    for bdf, place in buses.items():
        if bdf in stated:
            continue
        if place in secondary:
            facts.add(bdf, "parent", secondary[place], "Bus: secondary")
        elif place in roots:
            facts.add(bdf, "parent", f"root:{place[0]}:{place[1]:02x}", "Bus: primary")
        else:
            facts.add(bdf, "below", above[place], "Bus: subordinate")


def _covering(place: tuple[str, int], ranges: dict[str, list[tuple[int, int, str]]]) -> str:
    """The innermost bridge whose buses hold this one; empty if none does."""
    inside = [(low, bdf) for low, high, bdf in ranges[place[0]] if low < place[1] <= high]
    return max(inside, default=(0, ""))[1]
