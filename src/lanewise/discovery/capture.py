"""A captured /sys (and what of /proc belongs to it) as texts and links by path, from a tar and to a tar."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import zstandard

from lanewise import late_re as re
from lanewise import units
from lanewise.discovery.config import clean_config
from lanewise.errors import FormatError, Location

_DEVICE = r"(?:[^/]+/)*[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_ATTRIBUTES = (
    "class|vendor|device|numa_node|local_cpus|config|sriov_numvfs|sriov_totalvfs"
    "|max_link_speed|max_link_width|current_link_speed|current_link_width"
)
_BELOW = (
    r"infiniband/[^/]+/ports/\d+/(?:link_layer|rate|state)|net/[^/]+/speed|nvme/[^/]+/model"
    r"|(?:[^/]+/)*block/[^/]+/size|nvme/[^/]+/nvme[^/]+/size|virtio\d+/net/[^/]+/speed"
)
WANTED = re.compile(
    rf"sys/(?:bus/pci/devices|devices)/{_DEVICE}/(?:{_ATTRIBUTES}|{_BELOW})"
    r"|sys/devices/virtual/block/md\d+/(?:size|md/(?:level|raid_disks|chunk_size))"
    r"|sys/devices/system/node/node\d+/(?:cpumap|cpulist|meminfo)"
    r"|sys/devices/system/cpu/cpu\d+/topology/physical_package_id"
    r"|sys/kernel/iommu_groups/\d+/type|proc/cpuinfo|capture\.json|nvml\.json"
)
LINKS = re.compile(
    r"sys/bus/pci/devices/[^/]+|sys/class/(?:infiniband|nvme|iommu|net)/[^/]+|sys/block/[^/]+"
    rf"|sys/devices/{_DEVICE}/(?:physfn|iommu_group)"
    r"|sys/devices/virtual/block/md\d+/slaves/[^/]+|sys/devices/virtual/nvme-subsystem/[^/]+/nvme\d+"
)
GROUPS = "sys/kernel/iommu_groups"
_GPU = re.compile(r"proc/driver/nvidia/gpus/([^/]+)(?:/|$)")
_LIMIT, _LIMIT_OF_RECORD = 65_536, 4 * 2**20
# Of one capture: members, bytes unpacked, bytes of one name (long names, pax headers), bytes kept with their names.
_MAX_MEMBERS, _MAX_UNPACKED, _MAX_NAME, MAX_KEPT = 500_000, 4 * 2**30, 16_384, 64 * 2**20
_ZSTD = b"\x28\xb5\x2f\xfd"
SUFFIXES = (".tar.zst", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar")
# Names that the kernel or udev make of a hardware address: enx0123456789ab, rocex0123456789abcdef.
_HARDWARE_NAME = re.compile(r"(?:^|/)[a-z]+x[0-9a-f]{12,16}(?:/|$)")
_HARDWARE = re.compile(r"/pci[0-9a-f]{4,8}:|/virtual/block/md\d+$|/nvme-subsystem/")


@dataclass(frozen=True)
class Capture:
    """Contents of files and targets of links by path from `sys/` or `proc/` on; `names` are further paths."""

    file: str
    texts: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    def text(self, path: str) -> str:
        """The content of a file, stripped; empty if it is not there."""
        return self.texts.get(path, b"").decode("ascii", "replace").strip().strip("\0")

    def number(self, path: str) -> int | None:
        """The whole number that a file holds; None if it holds none or is not there."""
        text = self.text(path)
        return units.whole(text)


def inner(path: str) -> str:
    """The path from `sys/` or `proc/` on, or the name of a record; empty if it is neither."""
    match = re.search(r"(?:^|/)((?:sys|proc)/.*|(?:capture|nvml)\.json)$", path.rstrip("/"), re.DOTALL)
    return match[1] if match else ""


def name_of(path: str) -> str:
    """What the mere existence of a path says: a GPU of NVIDIA's driver, that the kernel knows IOMMU groups."""
    match = _GPU.match(path)
    return f"proc/driver/nvidia/gpus/{match[1]}" if match else GROUPS if path == GROUPS else ""


def limit(path: str) -> int:
    """How many bytes of a file are read at most: those of /sys are small, records grow with GPUs and their links."""
    return _LIMIT_OF_RECORD if path.endswith(".json") else _LIMIT


def read_tar(data: bytes, file: str) -> Capture:
    """The capture in a tar; nothing is unpacked to disk, and only what is wanted is read.

    FormatError for what is no tar, and for one that holds more than the /sys of a machine.
    """
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    kept = number = 0
    try:
        unpacked = _Unpacked(data)
        with tarfile.open(fileobj=unpacked, mode="r:", tarinfo=_Member) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # which it would keep all
                number += 1
                path = inner(member.name)
                content = b""
                if member.isfile() and WANTED.fullmatch(path):
                    stream = archive.extractfile(member)
                    texts[path] = content = stream.read(limit(path)) if stream else b""
                elif member.issym() and LINKS.fullmatch(path):
                    links[path] = member.linkname
                    content = member.linkname.encode(errors="replace")
                elif not name_of(path) or name_of(path) in names:
                    path = ""
                names.add(name_of(path))
                kept += len(content) + len(path)
                if number > _MAX_MEMBERS:
                    raise _TooMuch(f"more than {_MAX_MEMBERS:,} members")
                if kept > MAX_KEPT:
                    raise _TooMuch(f"more than {MAX_KEPT >> 20} MiB of what discovery reads")
        while unpacked.read(1 << 20):
            pass
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        hint = "make it again with lanewise discover --capture, hwloc-gather-topology, or tar of /sys"
        raise FormatError(f"not a readable tar: {error}", location=Location(file), hint=hint) from None
    except RecursionError:
        hint = "make it again with lanewise discover --capture"
        raise FormatError("not a readable tar: names upon names", location=Location(file), hint=hint) from None
    return Capture(file, texts, links, frozenset(names - {""}))


class _TooMuch(ValueError):
    """A tar that holds more than the /sys of a machine."""

    def __init__(self, what: str) -> None:
        super().__init__(f"it has {what}, the most that Lanewise reads")


class _Unpacked(io.RawIOBase):
    """The bytes of a tar that may be compressed, read forwards only and no more than _MAX_UNPACKED of them."""

    def __init__(self, data: bytes) -> None:
        unpack = next((unpack for magic, unpack in _UNPACKERS.items() if data.startswith(magic)), io.BytesIO)
        self._stream: Any = unpack(data)
        self._size = zstandard.frame_content_size(data) if data.startswith(_ZSTD) else -1
        self._ahead = b""
        self._position = 0

    def peek(self, size: int) -> bytes:
        """The next bytes, which remain to be read."""
        while len(self._ahead) < size and (more := self._stream.read(size - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int = -1) -> bytes:
        """That many bytes, fewer at the end; ValueError beyond the limit, EOFError where the stream is cut off."""
        if not 0 <= size <= 1 << 20:
            raise ValueError(f"{size:,} bytes asked for at once")
        data = self.peek(size)
        self._ahead = self._ahead[size:]
        self._position += len(data)
        if self._position > _MAX_UNPACKED:
            raise _TooMuch(f"more than {_MAX_UNPACKED >> 30} GiB unpacked")
        if len(data) < size and self._position < self._size:
            raise EOFError("it is cut off")
        return data

    def tell(self) -> int:
        """How many bytes were read."""
        return self._position

    def seek(self, position: int, whence: int = 0) -> int:
        """Read on to a position; OSError for one that lies behind."""
        if whence or position < self._position:
            raise OSError("its members do not follow each other")
        while self._position < position and self.read(min(1 << 20, position - self._position)):
            pass
        return self._position


_UNPACKERS: Mapping[bytes, Callable[[bytes], Any]] = {
    _ZSTD: lambda data: zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data),
    b"\x1f\x8b": lambda data: gzip.GzipFile(fileobj=io.BytesIO(data)),
    b"\xfd7zXZ": lambda data: lzma.LZMAFile(io.BytesIO(data)),  # noqa: SIM115 - of memory
    b"BZh": lambda data: bz2.BZ2File(io.BytesIO(data)),
}


class _Member(tarfile.TarInfo):
    """A member whose headers are looked at before tarfile takes them into memory."""

    def _proc_member(self, archive: Any) -> Any:
        if self.type in (*_LONG_NAMES, *_PAX_HEADERS):
            if not 0 <= self.size <= _MAX_NAME:
                raise _TooMuch(f"{self.size:,} bytes of a name, more than {_MAX_NAME:,}")
            if self.type in _PAX_HEADERS and re.search(rb"\d{32}|GNU\.sparse", archive.fileobj.peek(self.size)):
                raise ValueError("a pax header of numbers without end or of a sparse file")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise ValueError("it has sparse files; make it without tar --sparse")
        return super()._proc_member(archive)  # type: ignore[misc]


_LONG_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def write_tar(capture: Capture, suffix: str) -> bytes:
    """The capture as a tar without owner, group or times, compressed as one of SUFFIXES says."""
    out = io.BytesIO()
    method = suffix.rpartition(".")[2]
    mode = f"w:{method}" if method in ("gz", "xz", "bz2") else "w"
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name in sorted(capture.names):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for path, content in sorted(capture.texts.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for path, target in sorted(capture.links.items()):
            member = tarfile.TarInfo(path)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    data = out.getvalue()
    return zstandard.ZstdCompressor(level=12).compress(data) if suffix == ".tar.zst" else data


def clean(capture: Capture) -> Capture:
    """The capture without what tells one machine from its twin: serial numbers, names, addresses of cards."""
    texts = {path: _content(path, data) for path, data in capture.texts.items() if _allowed(WANTED, path)}
    links = {path: to for path, to in capture.links.items() if _allowed(LINKS, path) and _leads(path, to)}
    return replace(capture, texts={path: data for path, data in texts.items() if data}, links=links)


def _allowed(pattern: re.Pattern[str], path: str) -> bool:
    return bool(pattern.fullmatch(path)) and not _HARDWARE_NAME.search(path)


def _leads(path: str, target: str) -> bool:
    """Whether a link leads to hardware: names of bridges, tunnels and mapped volumes are the owner's own."""
    chosen = path.startswith(("sys/class/net/", "sys/block/"))
    return not _HARDWARE_NAME.search(target) and (not chosen or bool(_HARDWARE.search(target)))


def _content(path: str, data: bytes) -> bytes:
    if path.endswith("/config"):
        return clean_config(data)
    if path == "proc/cpuinfo":
        return _lines(data, rb"(?:model name|cpu|vendor_id|cpu family|model|CPU implementer|CPU part)\s*:.*")
    if path.endswith("/meminfo"):
        return _lines(data, rb"Node \d+ MemTotal:.*")
    if path == "nvml.json":
        from lanewise.discovery.nvml import same_record  # its forms load pydantic

        return same_record(data)
    return data


def _lines(data: bytes, pattern: bytes) -> bytes:
    """The lines of that form, each once."""
    return b"".join(line + b"\n" for line in dict.fromkeys(re.findall(rb"^" + pattern + rb"$", data, re.MULTILINE)))
