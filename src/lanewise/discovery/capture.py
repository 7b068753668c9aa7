"""A captured /sys (and what of /proc belongs to it) as texts and links by path, from a tar and to a tar."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import IO

import zstandard

from lanewise.discovery.config import clean_config
from lanewise.discovery.nvml import same_record
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
_MAX_FILES = 2_000_000
_ZSTD = b"\x28\xb5\x2f\xfd"
SUFFIXES = (".tar.zst", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar")
# Names that the kernel or udev make of a hardware address: enx0123456789ab, rocex0123456789abcdef.
_HARDWARE_NAME = re.compile(r"(?:^|/)[a-z]+x[0-9a-f]{12,16}(?:/|$)")
_HARDWARE = re.compile(r"/pci[0-9a-f]{4,8}:|/virtual/block/md\d+$|/nvme-subsystem/")


@dataclass(frozen=True)
class Capture:
    """Contents of files and targets of links by path from `sys/` or `proc/` on; `names` are further paths seen."""

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
        return int(text) if text.isdigit() else None


def inner(path: str) -> str:
    """The path from `sys/` or `proc/` on, or the name of a record; empty if it is neither."""
    match = re.search(r"(?:^|/)((?:sys|proc)/.*|(?:capture|nvml)\.json)$", path.rstrip("/"))
    return match[1] if match else ""


def name_of(path: str) -> str:
    """What the mere existence of a path says: a GPU of NVIDIA's driver, that the kernel knows IOMMU groups."""
    match = _GPU.match(path)
    return f"proc/driver/nvidia/gpus/{match[1]}" if match else GROUPS if path == GROUPS else ""


def limit(path: str) -> int:
    """How many bytes of a file are read at most: those of /sys are small, records grow with GPUs and their links."""
    return _LIMIT_OF_RECORD if path.endswith(".json") else _LIMIT


def read_tar(data: bytes, file: str) -> Capture:
    """The capture in a tar; nothing is unpacked to disk, and only what is wanted is read."""
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    try:
        stream = _stream(data)
        with tarfile.open(fileobj=stream, mode="r:*" if isinstance(stream, io.BytesIO) else "r|") as archive:
            for number, member in enumerate(archive):
                path = inner(member.name)
                if number > _MAX_FILES:
                    break
                if member.isfile() and WANTED.fullmatch(path):
                    content = archive.extractfile(member)
                    texts[path] = content.read(limit(path)) if content else b""
                elif member.issym() and LINKS.fullmatch(path):
                    links[path] = member.linkname
                names.add(name_of(path))
        _complete(stream, data)
    except (tarfile.TarError, EOFError, OSError, ValueError, zstandard.ZstdError) as error:
        hint = "make it again with lanewise discover --capture, hwloc-gather-topology, or tar of /sys"
        raise FormatError(f"not a readable tar: {error}", location=Location(file), hint=hint) from None
    return Capture(file, texts, links, frozenset(names - {""}))


def _stream(data: bytes) -> IO[bytes]:
    if not data.startswith(_ZSTD):
        return io.BytesIO(data)
    stream: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(data)
    return stream


def _complete(stream: IO[bytes], data: bytes) -> None:
    """EOFError for a zstd stream that ends early, which nothing else notices."""
    while not isinstance(stream, io.BytesIO) and stream.read(1 << 20):
        pass
    size = zstandard.frame_content_size(data) if data.startswith(_ZSTD) else -1
    if size >= 0 and stream.tell() != size:
        raise EOFError("it is cut off")


def write_tar(capture: Capture, suffix: str) -> bytes:
    """The capture as a tar that says nothing of who made it, compressed as one of SUFFIXES says."""
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
        return _lines(data, rb"(?:model name|cpu)\s*:.*")
    if path.endswith("/meminfo"):
        return _lines(data, rb"Node \d+ MemTotal:.*")
    return same_record(data) if path == "nvml.json" else data


def _lines(data: bytes, pattern: bytes) -> bytes:
    """The lines of that form, each once."""
    return b"".join(line + b"\n" for line in dict.fromkeys(re.findall(rb"^" + pattern + rb"$", data, re.MULTILINE)))
