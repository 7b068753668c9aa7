"""A captured /sys: PCI functions with their place and links, what drives them, NUMA nodes, sockets, IOMMU, md."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping

from lanewise import late_re as re
from lanewise import units
from lanewise.discovery.capture import GROUPS, Capture
from lanewise.discovery.config import decode
from lanewise.discovery.cpu_dumps import cpuinfo
from lanewise.discovery.facts import MACHINE, DumpFacts, address, width
from lanewise.errors import FormatError, Location
from lanewise.topology.speeds import generation

KIND = "sysfs"
_BUS = "sys/bus/pci/devices/"
_NODE = re.compile(r"sys/devices/system/node/node(\d{1,4})/cpu(?:map|list)")
_CORE = re.compile(r"sys/devices/system/cpu/cpu(\d{1,5})/topology/")
_MEMORY = re.compile(r"sys/devices/system/node/node(\d{1,4})/meminfo")
_MAX_CPUS, _MAX_FUNCTIONS = 65_536, 65_536
_ROOT = re.compile(r"pci([0-9a-f]{4,8}:[0-9a-f]{2})")
_NVIDIA = 0x10DE
_DISPLAYS = (0x03, 0x12)
VOLUME = "volume:"
_BLOCK = re.compile(r"sys/block/(?:sd|vd|hd|nvme|mmcblk|pmem)[^/]*")  # no optical drives, no floppies
_SUBSYSTEM = re.compile(r"(?:^|/)nvme-subsystem/([^/]+)/")


def read_sysfs(capture: Capture) -> DumpFacts:
    """The facts of a capture; FormatError if it holds neither PCI devices nor NUMA nodes."""
    facts = DumpFacts(capture.file, KIND)
    devices = _devices(capture)
    nodes = _nodes(capture, facts)
    if not devices and not nodes:
        hint = "capture /sys/bus/pci/devices with /sys/devices, e.g. with lanewise discover --capture machine.tar.zst"
        raise FormatError("the capture holds no PCI devices", location=Location(capture.file), hint=hint)
    for bdf, path in sorted(devices.items()):
        _device(bdf, path, capture, nodes, facts)
    shared = _subsystems(capture)
    _classes(capture, shared, facts)
    _volumes(capture, shared, facts)
    _machine(capture, nodes, facts)
    return facts


def _devices(capture: Capture) -> dict[str, str]:
    """The folder of every function by address."""
    folders: dict[str, str] = {}
    for path, target in capture.links.items():
        bdf = address(path.rpartition("/")[2])
        if path.startswith(_BUS) and bdf:
            folders[bdf] = _home(path, target)
    for path in capture.texts:
        folder = posixpath.dirname(path)
        bdf = address(posixpath.basename(folder))
        if bdf:
            folders.setdefault(bdf, folder)
    if len(folders) > _MAX_FUNCTIONS:
        cause = f"more than {_MAX_FUNCTIONS:,} PCI functions"
        raise FormatError(cause, location=Location(capture.file), hint="name the capture of one machine")
    return folders


def _nodes(capture: Capture, facts: DumpFacts) -> dict[int, int]:
    """The CPUs of every node that has some, as a mask; a node with memory alone is noted."""
    masks: dict[int, int] = {}
    for path in capture.texts:
        node = _NODE.fullmatch(path)
        text = capture.text(path)
        if node and text:
            mask = _mask(text) if path.endswith("cpumap") else _list(text)
            if mask:
                facts.add(f"node:{int(node[1])}", "cpus", True, path.removeprefix("sys/devices/system/"))
                masks[int(node[1])] = mask
    cores = [int(core[1]) for path in capture.texts if (core := _CORE.match(path))]
    if not masks and cores:
        masks[0] = sum(1 << core for core in cores)
        facts.add("node:0", "cpus", True, "cpu/cpu*, as the kernel knows no NUMA nodes")
    for path in capture.texts:
        memory = _MEMORY.fullmatch(path)
        size = re.search(r"MemTotal:\s*(\d{1,15}) kB", capture.text(path)) if memory else None
        if memory and size:
            node_number, kib = int(memory[1]), int(size[1])
            facts.add(f"node:{node_number}", "memory", f"{kib * 1024 / 1e9:.1f} GB", "MemTotal")
            if masks and node_number not in masks and kib:
                facts.notes.append(f"{facts.file}: NUMA node {node_number} has memory and no CPU; it is left out")
    return masks


def _device(bdf: str, path: str, capture: Capture, nodes: dict[int, int], facts: DumpFacts) -> None:
    for key in ("class", "vendor", "device"):
        text = capture.text(f"{path}/{key}")
        number = int(text, 16) if re.fullmatch(r"0x[0-9a-f]{1,8}", text) else None
        facts.add(bdf, key, number >> 8 if number is not None and key == "class" else number, key)
    if f"proc/driver/nvidia/gpus/{bdf}" in capture.names:
        facts.add(bdf, "vendor", _NVIDIA, "/proc/driver/nvidia/gpus")
    facts.add(bdf, "parent", _parent(path), "the path of its folder")
    _add_numa_node(bdf, path, capture, nodes, facts)
    _groups(bdf, path, capture, facts)
    _link(bdf, path, capture, facts)


def _parent(path: str) -> str | None:
    above = posixpath.basename(posixpath.dirname(path))
    root = _ROOT.fullmatch(above)
    return f"root:{root[1]}" if root else address(above)


def _add_numa_node(bdf: str, path: str, capture: Capture, nodes: dict[int, int], facts: DumpFacts) -> None:
    stated = capture.number(f"{path}/numa_node")
    if stated is not None:
        facts.add(bdf, "numa", stated, "numa_node")
        return
    near = _mask(capture.text(f"{path}/local_cpus"))
    inside = [node for node, mask in nodes.items() if near and near & ~mask == 0]
    around = [node for node, mask in sorted(nodes.items()) if near & mask]
    if inside or (around and len(around) < len(nodes)):
        facts.add(bdf, "numa", (inside or around)[0], "local_cpus")
        if not inside:
            facts.notes.append(f"{facts.file}: {bdf} is near NUMA nodes {around}; the first is taken")


def _link(bdf: str, path: str, capture: Capture, facts: DumpFacts) -> None:
    for key, word in (("", "max"), ("_now", "current")):
        facts.add(bdf, f"gen{key}", generation(capture.text(f"{path}/{word}_link_speed")), f"{word}_link_speed")
        lanes = capture.text(f"{path}/{word}_link_width")
        facts.add(bdf, f"lanes{key}", width(lanes), f"{word}_link_width")
        facts.add(bdf, "off_bus", True if lanes == "63" else None, f"{word}_link_width 63")
    for key, value in decode(capture.texts.get(f"{path}/config", b"")).items():
        facts.add(bdf, key, value, "config")


def _groups(bdf: str, path: str, capture: Capture, facts: DumpFacts) -> None:
    """SR-IOV and the IOMMU group."""
    for key, file in (("vfs", "sriov_numvfs"), ("vfs_max", "sriov_totalvfs")):
        facts.add(bdf, key, capture.number(f"{path}/{file}"), file)
    facts.add(bdf, "physfn", address(posixpath.basename(capture.links.get(f"{path}/physfn", ""))), "physfn")
    group = posixpath.basename(capture.links.get(f"{path}/iommu_group", ""))
    facts.add(bdf, "iommu_group", units.whole(group), "iommu_group")


def _machine(capture: Capture, nodes: dict[int, int], facts: DumpFacts) -> None:
    said = cpuinfo(capture.text("proc/cpuinfo"))
    for node, mask in nodes.items():
        for key, value in said.items():
            facts.add(f"node:{node}", key, value, "/proc/cpuinfo")
        first = (mask & -mask).bit_length() - 1
        socket = capture.text(f"sys/devices/system/cpu/cpu{first}/topology/physical_package_id")
        facts.add(f"node:{node}", "socket", socket if socket.isdigit() else "", "physical_package_id")
    kinds = _group_kinds(capture, facts)
    if kinds & {"DMA", "DMA-FQ"}:
        facts.add(MACHINE, "iommu", "translate", "/sys/kernel/iommu_groups/*/type")
    elif "identity" in kinds:
        facts.add(MACHINE, "iommu", "passthrough", "/sys/kernel/iommu_groups/*/type")
    elif GROUPS in capture.names and not kinds:
        facts.add(MACHINE, "iommu", "off", "/sys/kernel/iommu_groups, which is empty")


def _group_kinds(capture: Capture, facts: DumpFacts) -> set[str]:
    """The types of the IOMMU groups: of the GPUs' groups where known, as peer copies pass through them, else of all."""
    types = {path.split("/")[3]: capture.text(path) for path in capture.texts if path.startswith(f"{GROUPS}/")}
    gpus = {fact.about for fact in facts.facts if fact.key == "class" and int(fact.value) >> 8 in _DISPLAYS}
    groups = {str(fact.value) for fact in facts.facts if fact.key == "iommu_group" and fact.about in gpus}
    return {types[group] for group in groups if group in types} or {*types.values()}


def _mask(text: str) -> int:
    words = [word for word in text.split(",") if re.fullmatch(r"[0-9a-f]{1,8}", word)]
    return int("".join(word.zfill(8) for word in words) or "0", 16)


def _list(text: str) -> int:
    value = 0
    for start, end in re.findall(r"(?<!\d)(\d{1,9})(?:-(\d{1,9}))?(?!\d)", text):
        low, high = int(start), min(int(end or start), _MAX_CPUS - 1)
        value |= (1 << high + 1) - (1 << low) if low <= high else 0
    return value


def _classes(capture: Capture, shared: Mapping[str, str], facts: DumpFacts) -> None:
    """RDMA devices with their first ports, network interfaces, NVMe drives and block devices with their sizes."""
    interfaces: dict[str, list[str]] = defaultdict(list)
    drives: dict[str, list[str]] = defaultdict(list)
    for path, target in sorted(capture.links.items()):
        kind, _, name = path.removeprefix("sys/class/").partition("/")
        bdf = _function(target, shared)
        if not bdf:
            continue
        home = _home(path, target)
        if kind in ("infiniband", "nvme"):
            facts.add(bdf, "alias", name, f"/sys/class/{kind}")
        if kind == "infiniband":
            for key in ("link_layer", "rate", "state"):
                facts.add(bdf, key, capture.text(f"{home}/ports/1/{key}"), f"/{path}/ports/1/{key}")
        elif kind == "nvme":
            facts.add(bdf, "name", capture.text(f"{home}/model"), f"/{path}/model")
        elif kind == "net":
            interfaces[bdf].append(name)
            if speed := capture.number(f"{home}/speed"):
                facts.add(bdf, "rate", f"{speed / 1000:g} Gb/s", f"/{path}/speed")
        elif _BLOCK.fullmatch(path):
            sectors = capture.number(f"{home}/size")
            size = f" ({sectors * 512 / 1e9:.1f} GB)" if sectors is not None else ""
            drives[bdf].append(posixpath.basename(path) + size)
    for bdf, names in interfaces.items():
        facts.add(bdf, "netdev", " ".join(names), "/sys/class/net")
    for bdf, names in drives.items():
        facts.add(bdf, "block", ", ".join(names), "/sys/block")


def _home(path: str, target: str) -> str:
    """Where a link leads, from the top of the capture."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _function(target: str, shared: Mapping[str, str]) -> str:
    """The PCI function that a device lies below; `shared` has that of each NVMe subsystem."""
    above = next((bdf for part in reversed(target.split("/")) if ":" in part and (bdf := address(part))), None)
    if above or not shared:
        return above or ""
    subsystem = _SUBSYSTEM.search(target)
    return shared.get(subsystem[1], "") if subsystem else ""


def _subsystems(capture: Capture) -> dict[str, str]:
    """The PCI function of each NVMe subsystem; several ways to one drive count as the first of them."""
    functions: dict[str, str] = {}
    for path, target in sorted(capture.links.items()):
        subsystem = _SUBSYSTEM.search(path)
        if subsystem and (bdf := _function(target, {})):
            functions.setdefault(subsystem[1], bdf)
    return functions


def _volumes(capture: Capture, shared: Mapping[str, str], facts: DumpFacts) -> None:
    """md arrays: level, chunk and the functions that their members lie on."""
    members: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for link, target in sorted(capture.links.items()):
        home, slaves, name = link.rpartition("/slaves/")
        if slaves:
            members[home].append((name, _function(target, shared)))
    for path in capture.texts:
        named = re.fullmatch(r"sys/devices/virtual/block/(md\d+)/md/level", path)
        if not named:
            continue
        about, home = VOLUME + named[1], posixpath.dirname(posixpath.dirname(path))
        facts.add(about, "level", capture.text(path), f"{named[1]}/md/level")
        for key, file in (("disks", "raid_disks"), ("chunk", "chunk_size")):
            facts.add(about, key, capture.number(f"{home}/md/{file}"), f"{named[1]}/md/{file}")
        facts.add(about, "members", " ".join(bdf or name for name, bdf in members[home]), f"{named[1]}/slaves")
