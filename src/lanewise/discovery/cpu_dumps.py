"""`lscpu`, /proc/cpuinfo and `numactl --hardware`: models, sockets and NUMA nodes of the CPUs."""

from __future__ import annotations

import re

from lanewise.discovery.facts import MACHINE, DumpFacts
from lanewise.units import whole

LSCPU, CPUINFO, NUMACTL = "lscpu", "/proc/cpuinfo", "numactl --hardware"
_NODE = re.compile(r"NUMA node(\d{1,4}) CPU\(s\)")
_CPUS = re.compile(r"node (\d{1,4}) cpus:[ \t]*(\d?)")
# Arm CPUs that have no name in cpuinfo, by implementer and part.
_ARM = {("0x41", "0xd4f"): "Neoverse-V2", ("0x41", "0xd0c"): "Neoverse-N1", ("0x41", "0xd40"): "Neoverse-V1"}
# Sockets of one machine, and lines of a cpuinfo with what one CPU says.
_MAX_SOCKETS, _FIRST_LINES = 64, 40


def is_lscpu(text: str) -> bool:
    """Whether the text is that of lscpu."""
    return all(re.search(rf"^[ \t]*{word}:", text, re.MULTILINE) for word in ("Architecture", r"CPU\(s\)"))


def is_cpuinfo(text: str) -> bool:
    """Whether the text is that of /proc/cpuinfo."""
    return bool(re.search(r"^processor[ \t]*:[ \t]*\d", text, re.MULTILINE))


def read_lscpu(text: str, file: str) -> DumpFacts:
    """Model, sockets and NUMA nodes with CPUs."""
    facts = DumpFacts(file, LSCPU)
    said: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        key, colon, value = line.partition(":")
        if colon:
            said.setdefault(key.strip(), (value.strip(), number))
    model, sockets = (said.get(key, ("", 0)) for key in ("Model name", "Socket(s)"))
    facts.add(MACHINE, "model", model[0], "Model name", model[1])
    facts.add(MACHINE, "sockets", _sockets(sockets[0]), "Socket(s)", sockets[1])
    values = [said.get(key, ("", 0))[0] for key in ("Vendor ID", "CPU family", "Model")]
    facts.add(MACHINE, "cpu_id", " ".join(values) if all(values) else None, "CPU family")
    for key, (value, number) in said.items():
        node = _NODE.fullmatch(key)
        if node and value:
            facts.add(f"node:{int(node[1])}", "cpus", True, key, number)
    return facts


def read_cpuinfo(text: str, file: str) -> DumpFacts:
    """Model and sockets."""
    facts = DumpFacts(file, CPUINFO)
    for key, value in cpuinfo(text).items():
        facts.add(MACHINE, key, value, CPUINFO)
    packages = set(re.findall(r"^physical id[ \t]*:[ \t]*(\d{1,9})$", text, re.MULTILINE))
    facts.add(MACHINE, "sockets", _sockets(str(len(packages))) if packages else None, "physical id")
    return facts


def is_numactl(text: str) -> bool:
    """Whether the text is that of numactl --hardware."""
    return any(map(_CPUS.match, text.split("\n")))


def read_numactl(text: str, file: str) -> DumpFacts:
    """NUMA nodes with CPUs."""
    facts = DumpFacts(file, NUMACTL)
    for number, line in enumerate(text.split("\n"), 1):
        node = _CPUS.match(line)
        if node and node[2]:
            facts.add(f"node:{int(node[1])}", "cpus", True, "cpus", number)
    return facts


def cpuinfo(text: str) -> dict[str, str]:
    """The `model` of the first CPU, and its `cpu_id`: vendor, family and model number; what is unknown is left out."""
    said: dict[str, str] = {}
    for line in text.split("\n", _FIRST_LINES)[:_FIRST_LINES]:
        key, colon, value = line.partition(":")
        if colon:
            said.setdefault(key.strip(), value.strip())
    model = said.get("model name") or said.get("cpu") or ""
    model = model or _ARM.get((said.get("CPU implementer", ""), said.get("CPU part", "")), "")
    values = [said.get(key, "") for key in ("vendor_id", "cpu family", "model")]
    facts = {"model": model, "cpu_id": " ".join(values) if all(values) else ""}
    return {key: value for key, value in facts.items() if value}


def _sockets(text: str) -> int | None:
    number = whole(text)
    return number if number is not None and 1 <= number <= _MAX_SOCKETS else None
