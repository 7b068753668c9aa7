"""Links that have fewer lanes than their device can, in lines that people cut out of dumps of many tools.

Whole dumps of lspci are read by discover, which knows both ends of a link. These lines are of one device that somebody
singled out: one that has fewer lanes is what is asked about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from lanewise import late_re as re
from lanewise.results.posted import Statement

NumberedLine: TypeAlias = tuple[int, str]
# The columns of nvidia-smi --query-gpu=... --format=csv; the width at most is that of GPU and slot together.
_WIDTH, _MOST_WIDTH = "pcie.link.width.current", "pcie.link.width.max"
# The link of an idle GPU trains down: its generation counts only where the same row says that the GPU works.
_GEN, _MOST_GEN, _BUSY = "pcie.link.gen.current", "pcie.link.gen.max", "utilization.gpu [%]"
_BUSY_FROM = 50
_COUNT = re.compile(r"[0-9]{1,3}")
_SYSFS = re.compile(r"([^/\s]{1,40})/(current|max)_link_width(?: <==)?\s*$")
# The line that begins a device in a dump of lspci.
_DEVICE = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \S")
_ADDRESS = re.compile(r"lspci .*-\w{0,6}s (\S{5,12})")
_BRIDGE = re.compile(r"bridge|Root Port|Switch", re.IGNORECASE)
# These do not lower the generation of their link when idle, as GPUs do.
_STEADY = re.compile(r"Infiniband controller|Ethernet controller|Non-Volatile memory controller")
_LSPCI_MOST = re.compile(r"LnkCap:.*Width x(\d{1,2})")
_LSPCI_NOW = re.compile(r"LnkSta:.*Width x(\d{1,2})\b")
_SPEED = re.compile(r"Lnk(Cap|Sta):.*Speed (\d{1,2}(?:\.\d)?)GT/s")
# Properties of a device as Windows and the kernel (sysfs) name them.
_MOST = re.compile(r"(?:MaxLinkWidth|max_link_width|Supported Link Width)\s{0,40}[=:]?\s{0,40}x?(\d{1,2})\b")
_NOW = re.compile(r"(?:CurrentLinkWidth|current_link_width)\s{0,40}[=:]?\s{0,40}x?(\d{1,2})\b")
# A vendor's own words, of the port above its device: the port may have more lanes than the device.
_PORT_MOST = re.compile(r"Maximum link width: (\d{1,2}) lanes")
_PORT_NOW = re.compile(r"Link width is (\d{1,2}) lanes")
# FreeBSD's pciconf: lanes and speed in use, and in brackets what the device can.
_PCICONF = re.compile(r"\blink x(\d{1,2})\(x(\d{1,2})\) speed \d")
_PCICONF_DEVICE = re.compile(r"pciconf .*?(\S{1,16})\s*$")
# ethtool's modes of a port, and its speed now, Mb/s.
_MODE, _SPEED_OF_PORT = re.compile(r"\b(\d{1,6})base\w{1,8}/Full\b"), re.compile(r"Speed: (\d{1,6})Mb/s")
# The names and rates of ports in ibstat and ibstatus (rdma-core, infiniband-diags), whole or cut down by grep.
_IB_DEVICE = re.compile(r"\s{0,8}(?:CA|Infiniband device) '(\w{1,24})'")
_IB_RATE = re.compile(r"\s{1,16}[Rr]ate: ?\s{0,20}(\d{1,4})(?: Gb/sec.{0,40})?\s*$")
_FEW = 2


def narrow_links_of_pciconf(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """Links of fewer lanes than their device has, of one or two devices that somebody singled out."""
    links = [(number, match) for number, line in lines if (match := _PCICONF.search(line))]
    named = [match[1] for _, line in lines if "pciconf" in line and (match := _PCICONF_DEVICE.search(line))]
    for number, match in links if len(links) <= _FEW else ():
        if 0 < int(match[1]) < int(match[2]):
            device = named[0] if named and not named[0].startswith("-") else "a device"
            yield Statement("link width", f"{device} x{match[1]} of x{match[2]}", f"{file}:{number}")


def narrow_links(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """The links that such lines show to have fewer lanes than they can."""
    whole = not _singled_out(lines)
    most, address = 0, "a device"
    for number, line in lines:
        if match := _ADDRESS.search(line):
            address = match[1]
        if match := _LSPCI_MOST.search(line) or _MOST.search(line) or _PORT_MOST.search(line):
            most = int(match[1])
        now = _NOW.search(line) or (None if whole else _LSPCI_NOW.search(line))
        port = _PORT_NOW.search(line)
        if match := now or port:
            lanes = int(match[1])
            if not most and re.search(r"Width x\d{1,2} \((?:downgraded|down-?trained|degraded)\)", line, re.IGNORECASE):
                yield Statement("link width", f"{address} x{lanes}, downgraded", f"{file}:{number}")
            if 0 < lanes < most and (port is None or lanes == 1):
                yield Statement("link width", f"{address} x{lanes} of x{most}", f"{file}:{number}")


def slow_links(lines: Sequence[NumberedLine], file: str) -> Iterator[Statement]:
    """The links of network cards and drives that somebody singled out, at a lower generation than the device can."""
    if not _singled_out(lines):
        return
    device, most, steady = "a device", 0.0, False
    for number, line in lines:
        if _DEVICE.match(line):
            device, most, steady = line.split()[0], 0.0, bool(_STEADY.search(line))
        match = _SPEED.search(line)
        if match and match[1] == "Cap" and device == "a device":
            most = float(match[2])
        elif match and "GT/s (downgraded)" in line and device == "a device":
            yield Statement("link speed now", f"{match[2]} GT/s (downgraded)", f"{file}:{number}")
            if lanes := _LSPCI_NOW.search(line):
                best = f"{most or 2 * float(match[2]):g} GT/s"
                yield Statement("link now", f"{match[2]} GT/s x{lanes[1]}, can {best}", f"{file}:{number}")
        elif match and "GT/s (downgraded)" in line and steady and not most:
            yield Statement("link speed", f"{device} {match[2]} GT/s (downgraded)", f"{file}:{number}")
        if steady and (match := _SPEED.search(line)):
            rate = float(match[2])
            if match[1] == "Cap":
                most = rate
            elif rate < most:
                yield Statement("link speed", f"{device} {rate:g} of {most:g} GT/s", f"{file}:{number}")


def _singled_out(lines: Sequence[NumberedLine]) -> bool:
    """Whether the lines are of one or two devices that somebody chose, without the bridges above them."""
    heads = [line for _, line in lines if _DEVICE.match(line)]
    return len(heads) <= 2 and not any(map(_BRIDGE.search, heads))


def lesser_ports(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The ports that ethtool shows at a lower speed than the fastest mode that they support."""
    most, supported = 0, False
    for number, line in enumerate(lines, 1):
        label = line.partition(":")[0].strip() if ":" in line else ""
        supported = label == "Supported link modes" if label else supported
        modes = [int(mode) for mode in _MODE.findall(line)] if supported else []
        most = max([most, *modes])
        if (match := _SPEED_OF_PORT.fullmatch(line.strip())) and most:
            if int(match[1]) < most:
                value = f"{int(match[1]) / 1000:g} Gb/s of {most / 1000:g} Gb/s"
                yield Statement("port speed", value, f"{file}:{number}")
            most = 0


def slower_ports(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The devices of ibstat or ibstatus whose port has a lower rate than most ports of the host."""
    rates: dict[str, tuple[int, int]] = {}
    device = ""
    for number, line in enumerate(lines, 1):
        if match := _IB_DEVICE.match(line):
            device = match[1]
        elif device and (match := _IB_RATE.match(line)):
            rates.setdefault(device, (int(match[1]), number))
    usual = Counter(rate for rate, _ in rates.values()).most_common(1)
    for device, (rate, number) in rates.items() if usual and usual[0][1] > len(rates) / 2 else ():
        if rate < usual[0][0]:
            yield Statement("slower port", f"{device} at {rate} of {usual[0][0]} Gb/s", f"{file}:{number}")


def listed_links(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """Links of fewer lanes than they can, in files of sysfs whose values stand in the line below their names."""
    widths: dict[str, dict[str, int]] = {}
    name: tuple[str, str] | None = None
    for number, line in enumerate(lines, 1):
        if match := _SYSFS.search(line):
            name = (match[1], match[2])
        elif name and line.strip():
            if line.strip().isdigit():
                device = widths.setdefault(name[0], {})
                device[name[1]] = int(line)
                now, most = device.get("current", 0), device.get("max", 0)
                if 0 < now < most:
                    yield Statement("link width", f"{name[0]} x{now} of x{most}", f"{file}:{number}")
            name = None


def queried_links(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The links that a table of `nvidia-smi --query-gpu` shows to be narrower or, of busy GPUs, slower than can be."""
    for number, row in _queried(lines):
        gpu = f"GPU {row['index']}" if row.get("index", "").isdigit() else row.get("name", "a GPU")
        if _is_less(row, _WIDTH, _MOST_WIDTH):
            yield Statement("link width", f"{gpu} x{row[_WIDTH]} of x{row[_MOST_WIDTH]}", f"{file}:{number}")
        busy = row.get(_BUSY, "").removesuffix("%").strip()
        if _is_less(row, _GEN, _MOST_GEN) and _COUNT.fullmatch(busy) and int(busy) >= _BUSY_FROM:
            value = f"{gpu} Gen{row[_GEN]} of Gen{row[_MOST_GEN]}, the GPU {busy} % in use"
            yield Statement("link speed", value, f"{file}:{number}")


def _is_less(row: Mapping[str, str], key: str, most: str) -> bool:
    """Whether a value of a row is known and below the most that is possible."""
    now, best = row.get(key, ""), row.get(most, "")
    return bool(_COUNT.fullmatch(now) and _COUNT.fullmatch(best)) and 0 < int(now) < int(best)


def queried_gpu(lines: Sequence[str]) -> str:
    """The name of all GPUs of such a table, empty where they differ: tools may number them otherwise."""
    names = {row.get("name", "") for _, row in _queried(lines)}
    return names.pop() if len(names) == 1 else ""


def _queried(lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of the tables of links with their lines, each by the names of its columns."""
    head: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")] if "," in line else []
        if _WIDTH in cells or _GEN in cells:
            head = cells
        elif head and len(cells) == len(head):
            yield number, dict(zip(head, cells, strict=True))
        else:
            head = []
