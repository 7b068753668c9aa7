"""Names and more of what drives the PCI functions in a captured /sys: RDMA devices, network interfaces, drives, md."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict

from lanewise.discovery.capture import Capture
from lanewise.discovery.facts import DumpFacts, address

VOLUME = "volume:"
_BLOCK = re.compile(r"sys/block/(?:sd|vd|hd|nvme|mmcblk|pmem)[^/]*")  # no optical drives, no floppies
_SUBSYSTEM = re.compile(r"(?:^|/)nvme-subsystem/([^/]+)/")


def say_classes(capture: Capture, facts: DumpFacts) -> None:
    """The facts of RDMA devices, network interfaces, NVMe drives, block devices and md volumes."""
    for path, target in sorted(capture.links.items()):
        kind, _, name = path.removeprefix("sys/class/").partition("/")
        bdf = _function(target, capture)
        if kind in ("infiniband", "nvme") and bdf:
            facts.add(bdf, "alias", name, f"/sys/class/{kind}")
        if kind == "infiniband" and bdf:
            _ports(bdf, name, _home(path, target), capture, facts)
        elif kind == "nvme" and bdf:
            facts.add(bdf, "name", capture.text(f"{_home(path, target)}/model"), f"/sys/class/nvme/{name}/model")
    _interfaces(capture, facts)
    _drives(capture, facts)
    _volumes(capture, facts)


def _home(path: str, target: str) -> str:
    """Where a link leads, from the top of the capture."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _function(target: str, capture: Capture) -> str:
    """The PCI function that a device lies below; several ways to one NVMe drive count as the first of them."""
    above = [bdf for part in target.split("/") if (bdf := address(part))]
    if above:
        return above[-1]
    shared = _SUBSYSTEM.search(target)
    prefix = f"sys/devices/virtual/nvme-subsystem/{shared[1]}/" if shared else ""
    functions = [
        _function(to, capture) for path, to in sorted(capture.links.items()) if prefix and path.startswith(prefix)
    ]
    return next(filter(None, functions), "")


def _ports(bdf: str, name: str, home: str, capture: Capture, facts: DumpFacts) -> None:
    """The first port of an RDMA device."""
    for key in ("link_layer", "rate", "state"):
        facts.add(bdf, key, capture.text(f"{home}/ports/1/{key}"), f"/sys/class/infiniband/{name}/ports/1/{key}")


def _interfaces(capture: Capture, facts: DumpFacts) -> None:
    names: dict[str, list[str]] = defaultdict(list)
    for path, target in sorted(capture.links.items()):
        bdf = _function(target, capture)
        if not (path.startswith("sys/class/net/") and bdf):
            continue
        name = posixpath.basename(path)
        names[bdf].append(name)
        speed = capture.text(f"{_home(path, target)}/speed")
        if speed.isdigit() and int(speed):
            facts.add(bdf, "rate", f"{int(speed) / 1000:g} Gb/s", f"/sys/class/net/{name}/speed")
    for bdf, interfaces in names.items():
        facts.add(bdf, "netdev", " ".join(interfaces), "/sys/class/net")


def _drives(capture: Capture, facts: DumpFacts) -> None:
    """The block devices of every function, with their sizes."""
    drives: dict[str, list[str]] = defaultdict(list)
    for path, target in sorted(capture.links.items()):
        bdf = _function(target, capture)
        if _BLOCK.fullmatch(path) and bdf:
            sectors = capture.text(f"{_home(path, target)}/size")
            size = f" ({int(sectors) * 512 / 1e9:.1f} GB)" if sectors.isdigit() else ""
            drives[bdf].append(posixpath.basename(path) + size)
    for bdf, names in drives.items():
        facts.add(bdf, "block", ", ".join(names), "/sys/block")


def _volumes(capture: Capture, facts: DumpFacts) -> None:
    """md arrays: level, chunk and the functions that their members lie on."""
    for path in capture.texts:
        named = re.fullmatch(r"sys/devices/virtual/block/(md\d+)/md/level", path)
        if not named:
            continue
        about, home = VOLUME + named[1], posixpath.dirname(posixpath.dirname(path))
        slaves = [
            (posixpath.basename(link), _function(to, capture))
            for link, to in sorted(capture.links.items())
            if link.startswith(f"{home}/slaves/")
        ]
        facts.add(about, "level", capture.text(path), f"{named[1]}/md/level")
        for key, file in (("disks", "raid_disks"), ("chunk", "chunk_size")):
            text = capture.text(f"{home}/md/{file}")
            facts.add(about, key, int(text) if text.isdigit() else None, f"{named[1]}/md/{file}")
        facts.add(about, "members", " ".join(bdf or name for name, bdf in slaves), f"{named[1]}/slaves")
