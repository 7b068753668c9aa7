"""A captured /sys (and what of /proc belongs to it) as texts and links by path, from a tar or a folder."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.errors import FormatError, Place

_DEVICE = r"(?:[^/]+/)*[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_ATTRIBUTES = (
    "class|vendor|device|numa_node|local_cpus|config"
    "|max_link_speed|max_link_width|current_link_speed|current_link_width"
)
WANTED = re.compile(
    rf"sys/(?:bus/pci/devices|devices)/{_DEVICE}/(?:{_ATTRIBUTES})"
    r"|sys/devices/system/node/node\d+/(?:cpumap|cpulist)"
    r"|sys/kernel/iommu_groups/\d+/type|proc/cpuinfo"
)
LINKS = re.compile(r"sys/bus/pci/devices/[^/]+|sys/class/(?:infiniband|nvme|iommu)/[^/]+")
_GPU = re.compile(r"proc/driver/nvidia/gpus/([^/]+)/")
LIMIT = 65_536
_MAX_FILES = 2_000_000


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


def inner(path: str) -> str:
    """The path from `sys/` or `proc/` on, empty if it has neither."""
    found = re.search(r"(?:^|/)((?:sys|proc)/.*)$", path.rstrip("/"))
    return found[1] if found else ""


def gpu_of(path: str) -> str:
    """The address in a path of NVIDIA's driver, empty if it is none; nothing else of such files is kept."""
    found = _GPU.match(path)
    return f"proc/driver/nvidia/gpus/{found[1]}" if found else ""


def read_tar(data: bytes, file: str) -> Capture:
    """The capture in a tar; nothing is unpacked to disk, and only what is wanted is read."""
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for number, member in enumerate(archive):
                path = inner(member.name)
                if number > _MAX_FILES:
                    break
                if member.isfile() and WANTED.fullmatch(path):
                    content = archive.extractfile(member)
                    texts[path] = content.read(LIMIT) if content else b""
                elif member.issym() and LINKS.fullmatch(path):
                    links[path] = member.linkname
                names.add(gpu_of(path))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        hint = "make it again with hwloc-gather-topology, or tar of /sys"
        raise FormatError(f"not a readable tar: {error}", place=Place(file), hint=hint) from None
    return Capture(file, texts, links, frozenset(names - {""}))
