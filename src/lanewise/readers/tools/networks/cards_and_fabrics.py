"""Rates of PCIe cards that are no GPUs, and of networks by libfabric's own tests (fabtests).

Sources: Xilinx' dma_ip_drivers (XDMA/linux-kernel/tools/dma_utils.c: bytes by us, so MB of 1e6 bytes), XRT's
`xbutil validate`, and fabtests (ofiwg/libfabric, fabtests/common/shared.c: bytes by us; sizes are powers of 1024).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

_XDMA = re.compile(r"/dev/(?P<card>[a-z]{1,12}\d{1,3})_(?P<way>h2c|c2h)_\d{1,3} \*\* Average BW = (?P<size>\d{1,15}), "
                   r"(?P<rate>\d[\d.]{0,15})")  # fmt: skip
_XBUTIL = re.compile(
    r"Host (?:->|<-) PCIe (?:->|<-) FPGA (?P<way>write|read) bandwidth ?= ?(?P<rate>\d[\d.]{0,12}) MB/s"
)
# The name of a card's shell has its link: xilinx_u30_gen3x4_base_1 (AMD, Alveo product details, UG1120).
_SHELL = re.compile(r"\bxilinx_\w{1,20}_gen([1-6])x(\d{1,2})_")
_BUFFER = re.compile(r"Buffer size - '(\d{1,6}) ([KMG])B'")
_FABRIC_HEAD = re.compile(r"\s*(?:name +)?bytes .{0,120}\bMB/sec\b.{0,80}\busec/xfer\b")
_FABRIC_COMMAND = re.compile(r"\b(fi_(?:pingpong|[a-z]{2,8}_(?:tagged_)?(?:bw|pingpong|lat)|bw))\b(.{0,200})")
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([kmg]?)$", re.IGNORECASE)
_POWERS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of one of these tools."""
    return any(
        _FABRIC_HEAD.match(line) or _XBUTIL.search(line) or ("Average BW" in line and _XDMA.search(line))
        for line in lines
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each rate; FormatError with the line of a figure that is none."""
    rows = (*_cards(lines, file), *_fabric(lines, file))
    check_rows(rows, Location(file, len(lines)))
    return ImportedResults(", ".join(dict.fromkeys(row.how["tool"] for row in rows)), rows)


def _cards(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """Transfers between host memory and a card: host to card (h2c, write) or card to host."""
    size, slot = 0, dict[str, str]()
    for number, line in enumerate(lines, 1):
        if match := _BUFFER.search(line):
            size = int(match[1]) * _POWERS[match[2].lower()]
        if match := _SHELL.search(line):
            slot = {"slot": f"Gen{match[1]} x{match[2]}"}
        if match := _XDMA.search(line) or _XBUTIL.search(line):
            xdma = match.re is _XDMA
            card = match["card"] if xdma else "fpga0"
            to_card = match["way"] in ("h2c", "write")
            flow = f"host0->{card}" if to_card else f"{card}->host0"
            kind = ToolValue(flow, flow, path="host to device" if to_card else "device to host")
            moved = int(match["size"]) if xdma else size
            rate = figure(match["rate"], Location(file, number)) / 1e3
            tool = "XDMA tools" if xdma else "xbutil"
            yield observation(tool, tool, kind, rate, slot, {"bytes": moved} if moved else {})


def _fabric(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """Tables of fabtests, each named by the command above it."""
    heads: list[str] = []
    name, table = "", "fabtests"
    for number, line in enumerate(lines, 1):
        if match := _FABRIC_COMMAND.search(line):
            provider = re.search(r"-p ?([\w;]{1,30})", match[2])
            name = f"{match[1]} {provider[1]}" if provider else match[1]
        if _FABRIC_HEAD.match(line):
            heads, table, name = line.split(), name or "fabtests", ""
            continue
        words = line.split()
        size = _SIZE.match(words[0]) if len(words) == len(heads) > 0 else None
        if size is None:
            heads = heads if not words or line.lstrip().startswith("#") else []
            continue
        at = Location(file, number)
        settings = {"bytes": int(float(size[1]) * _POWERS[size[2].lower()])}
        pattern = "pingpong" if "pingpong" in table or "#ack" in heads else ""
        kind = ToolValue("host0->host1", "host0->host1", path="network")
        rate = figure(words[heads.index("MB/sec")], at) / 1e3
        yield observation("fabtests", table, kind, rate, {"engine": "libfabric", "pattern": pattern}, settings)
