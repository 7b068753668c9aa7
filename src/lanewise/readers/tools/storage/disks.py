"""What dd, hdparm and disk benchmarks for desktops print: CrystalDiskMark, KDiskMark, and the table of PiBenchmarks.

dd gives decimal units beside binary sizes, hdparm MB of 2^20 bytes, the others MB of 1e6. Sources: coreutils' and
hdparm's manual pages, the header of CrystalDiskMark's reports ("MB/s = 1,000,000 bytes/s"); PiBenchmarks' Storage.sh
(github.com/TheRemote/PiBenchmarks), which sums up hdparm, dd of blocks of 4 KiB, fio (KiB/s) and IOzone (KiB/s).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import MIB, ImportedResults, ToolValue, observation
from lanewise.results.observation import Observation

# Where a locale writes commas for points, so does dd.
_DD = re.compile(
    r"\d{1,18} bytes .{0,60}copied,\s{1,2}\d[\d.,e-]{0,14} s(?:econds)?,\s{1,2}(\d[\d.,]{0,12}) ([kMGT]?)B/s"
)
# Of other systems, whose own rates have other units: macOS and BSD ("transferred in 0.5 secs"), BusyBox ("2.0GB/s").
_DD_ELSEWHERE = re.compile(
    r"(\d{1,18}) bytes (?:\(.{1,30}\) copied,|transferred in)\s{1,2}(\d[\d.]{0,14}) sec(?:ond)?s"
    r"(?: \(\d|, \d[\d.]{0,12}[kMGT]?B/s)"
)
_COMMAND = re.compile(r"(?:^|[\s$#`])dd ((?:\S{1,200}\s{0,4}){1,16})")
_OPERAND = re.compile(r"\b(if|of|bs|iflag|oflag)=(\S{1,200})")
_NO_FILE = re.compile(r"/dev/(?:zero|null|u?random|shm/)|^-$")
_HDPARM = re.compile(
    r"\s*Timing (buffered disk|O_DIRECT disk) reads: .{0,40} seconds =\s{1,3}(\d[\d.]{0,12}) ([kMG]B)/sec"
)
_DISK = re.compile(r"/dev/([\w/-]{1,40}):$")
_MARK = re.compile(
    r"\s*(?:(?P<kind>SEQ|RND)\s{1,6}(?P<size>\d{1,4})(?P<unit>[KM]i?B)|(?P<old>Sequential|Random) (?P<way>Read|Write)"
    r"(?: (?P<old_size>\d{1,4})(?P<old_unit>[KM]i?B))?) ?"
    r"\(Q=\s{0,4}(?P<depth>\d{1,4}), ?T=\s{0,4}(?P<threads>\d{1,4})\) ?:\s{1,12}(?P<rate>\d[\d.]{0,12}) MB/s"
)
_TABLE = re.compile(
    r"\s*(?P<tool>HDParm|DD|FIO|IOZone)\s{2,24}(?P<test>Disk Read|Disk Write|4k (?:random )?(?:read|write))\s{2,24}"
    r"(?:\d{1,9} IOPS \()?(?P<rate>\d[\d.]{0,12}) ?(?P<unit>[KMG]B)/s"
)
# What empties the page cache between two runs.
_EMPTIES = re.compile(r"drop_caches|vmtouch -e|\bumount\b|\breboot\b|posix_fadvise|nocache")
# A second read of a file that comes from memory is at least so many times as fast as the drive was; repeated reads of
# one path differ by a few per cent (`checking.tolerances`).
_FROM_MEMORY = 1.5
# What PiBenchmarks runs: dd in blocks of 4 KiB through the page cache, the others past it, fio 64 requests at once.
_OF_TABLE = {"hdparm": {"depth": 1}, "dd": {"depth": 1, "bytes": 4096}, "fio": {"depth": 64, "bytes": 4096},
             "iozone": {"depth": 1, "bytes": 4096}}  # fmt: skip
_WAY = re.compile(r"\s*\[(Read|Write)\]")
_POWERS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"kB": 1024.0, "MB": MIB, "GB": 1024 * MIB}
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold rates of one of these tools."""
    return any(pattern.match(line) for line in lines for pattern in (_DD, _DD_ELSEWHERE, _HDPARM, _MARK, _TABLE))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each rate; FormatError with the line of a figure that is none."""
    copies, notes = _from_the_drive([*_copies(lines, file)], file)
    rows = (*copies, *_timings(lines, file), *_marks(lines, file), *_table(lines, file))
    tools = dict.fromkeys(row.how["tool"] for row in rows)
    return ImportedResults(", ".join(tools), rows, notes=tuple(notes))


def _from_the_drive(copies: Sequence[tuple[Observation, int]], file: str) -> tuple[list[Observation], list[str]]:
    """The copies without repeated reads that come from the page cache, and notes on those.

    Each copy with how often the page cache was emptied before it.
    """
    first: dict[tuple[object, ...], float] = {}
    kept: list[Observation] = []
    notes: list[str] = []
    for row, emptied in copies:
        key = (row.flow, row.how.get("folder"), tuple(row.settings.items()), emptied)
        rate = row.value or 0.0
        reads = row.how["mode"] == "cached" and not row.flow.startswith("host")
        if reads and rate > _FROM_MEMORY * first.get(key, rate):
            shown = units.show(rate, "GB/s", 3)
            notes.append(f"{file}: dd read {row.flow.split('->')[0]} again without iflag=direct: {shown} come from the "
                         "page cache, and say nothing of the drive")  # fmt: skip
        else:
            first.setdefault(key, rate)
            kept.append(row)
    return kept, notes


def _copies(lines: Sequence[str], file: str) -> Iterator[tuple[Observation, int]]:
    """What dd copied from or to a file or drive, if its command stands above; between two files nothing is said.

    Each with how often the page cache was emptied before it.
    """
    emptied = 0
    operands: dict[str, str] = {}
    # Of commands in the background, whose results follow one another.
    at_once: list[dict[str, str]] = []
    ended = 0
    for number, line in enumerate(lines, 1):
        emptied += _EMPTIES.search(line) is not None
        if match := _COMMAND.search(line):
            operands = dict(_OPERAND.findall(match[1]))
            at_once = at_once if line.endswith("&") else []
            at_once += [operands] if line.endswith("&") else []
            ended = 0
        match, elsewhere = _DD.match(line), _DD_ELSEWHERE.match(line)
        if match or elsewhere:
            operands = at_once[ended] if ended < len(at_once) else operands
            ended += 1
            reads, writes = (_name(operands.get(key, "")) for key in ("if", "of"))
            if bool(reads) is bool(writes):
                continue
            flag = operands.get("iflag" if reads else "oflag", "")
            flow = f"{reads}->host0" if reads else f"host0->{writes}"
            at = Location(file, number)
            rate = figure(match[1].replace(",", "."), at) * _POWERS[match[2]] if match else 0.0
            rate = figure(elsewhere[1], at) / max(figure(elsewhere[2], at), 1e-9) if elsewhere else rate
            settings = {"depth": 1, **_block(operands.get("bs", ""))}
            folder = operands.get("if" if reads else "of", "").rpartition("/")[0]
            name = "dd" if len(at_once) < 2 else f"dd, {len(at_once)} at once"
            mode = "direct" if "direct" in flag else "cached"
            yield _row("dd", flow, rate, mode, settings, folder=folder, name=name), emptied


def _name(path: str) -> str:
    """The name of a drive or file as an end of a flow; empty for what is none."""
    return "" if not path or _NO_FILE.match(path) else re.sub(r"[^\w.-]", "_", path.rstrip("/").rpartition("/")[2])


def _block(text: str) -> dict[str, int]:
    match = re.fullmatch(r"(\d{1,12})([KMG]?)(?:i?B)?", text, re.IGNORECASE)
    return {"bytes": int(match[1]) * _SIZES.get(match[2].upper(), 1)} if match else {}


def _timings(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """hdparm's reads: one program, one request after another."""
    disk = "drive"
    for number, line in enumerate(lines, 1):
        if match := _DISK.match(line.strip()):
            disk = match[1].rpartition("/")[2]
        elif match := _HDPARM.match(line):
            rate = figure(match[2], Location(file, number)) * _BINARY[match[3]]
            yield _row("hdparm", f"{disk}->host0", rate, "direct" if "DIRECT" in match[1] else "cached", {"depth": 1})


def _marks(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The tests of CrystalDiskMark and KDiskMark, which pass the page cache by."""
    way = "Read"
    for number, line in enumerate(lines, 1):
        if match := _WAY.match(line):
            way = match[1]
        elif match := _MARK.match(line):
            size, unit = match["size"] or match["old_size"] or "1", match["unit"] or match["old_unit"] or "MiB"
            settings = {
                "bytes": int(size) * _SIZES[unit[0]],
                "depth": int(match["depth"]),
                "threads": int(match["threads"]),
            }
            flow = "drive->host0" if (match["way"] or way) == "Read" else "host0->drive"
            rate = figure(match["rate"], Location(file, number)) * 1e6
            yield _row(
                "DiskMark",
                flow,
                rate,
                "direct",
                settings,
                "random" if match["kind"] == "RND" or match["old"] == "Random" else "",
            )


def _table(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The lines of PiBenchmarks' table; hdparm's reads from the page cache say nothing of a drive."""
    for number, line in enumerate(lines, 1):
        if match := _TABLE.match(line):
            name, test = match["tool"].lower(), match["test"].lower()
            decimal = name == "dd"
            scale = (_POWERS if decimal else _BINARY)[match["unit"][0] if decimal else match["unit"].replace("K", "k")]
            settings = _OF_TABLE[name]
            flow = "drive->host0" if test.endswith("read") else "host0->drive"
            mode, pattern = "cached" if decimal else "direct", "random" if "random" in test else ""
            rate = figure(match["rate"], Location(file, number)) * scale
            yield _row(name, flow, rate, mode, settings, pattern)


def _row(
    tool: str,
    flow: str,
    rate: float,
    mode: str,
    settings: dict[str, int],
    pattern: str = "",
    folder: str = "",
    name: str = "",
) -> Observation:
    value = ToolValue(flow, flow, unit="GB/s", path="storage")
    folder = "" if folder in ("", "/dev", ".") else folder
    return observation(
        tool, name or tool, value, rate / 1e9, {"mode": mode, "pattern": pattern, "folder": folder}, settings
    )
