"""The flows of a row typed in, and the kind of path that their ends' names say."""

from __future__ import annotations

from dataclasses import replace

from lanewise import late_re as re
from lanewise.errors import FormatError, LanewiseError
from lanewise.perf.flow import Flow, names_of, parse_flows, pieces_of
from lanewise.readers.typed import fields, values
from lanewise.readers.typed.fields import OF_COLLECTIVES, is_counted, metric_of
from lanewise.readers.words.devices import named_collective
from lanewise.yaml_positions import YamlNode

_OF_A_RING = ("all_reduce", "all_gather", "reduce_scatter")
# What people call copies between all pairs, of so many GPUs at most.
_PAIRWISE, _MOST_PAIRED = re.compile(r"\bcop(?:y|ies)\b|memcpy|\bpairs?\b|\bp2p\b", re.IGNORECASE), 64
_GPU_MEMORY = re.compile(r"(?i)\s*(?:gpu|cuda|device|rocm|vram|hbm|d d)s?(?: memory)?\s*")
_BETWEEN_FLOWS = re.compile(r"\s+(?=[\w:.\[\]-]+->)")
_RANGE = re.compile(r"[a-z]+(?:\d+|\[[\d,-]+\])", re.IGNORECASE)
_WITHIN = re.compile(r"gpu\d*|host\d*(?::\d+)?")
_HOST = re.compile(r"host|cpu\d")
# What people call a machine of a network.
_MACHINE = re.compile(
    r"(?:client|server|node|pc|nas|desktop|laptop|workstation|mac|win|linux|pi|rpi|vm|guest|pod|container|docker|"
    r"router|switch|sender|receiver|source|target|initiator|master|worker|peer|remote|internet|cloud|site|machine|box)"
    r"[\w.-]*$",
    re.IGNORECASE,
)
_OF_PCIE = re.compile(
    r"gpu|cuda|hip|rocm|dev|fpga|capture|card|pci|switch|tile|tensix|[adhinqtv]pu|accel|die|gcd|hba|root|slot",
    re.IGNORECASE,
)
# Drives, arrays, and file systems or volumes over a network.
_STORAGE = re.compile(
    r"sd\d|sd-?card|ssd|nvme|drive|vol|raid|storage|md|roc|pmem|mmcblk|disk|hdd|sata|emmc|optane|usb|rbd|ceph|zfs|zpool|"
    r"pool|nfs|smb|"
    r"cifs|share|lustre|gpfs|beegfs|weka|s3|bucket|minio|ebs|iscsi|lun\d|dm-|loop\d|gluster|moosefs|juicefs|hdfs|longhorn|"
    r"drbd|sshfs|(?:object|block|cloud|network|shared|local)-(?:stor|share|disk|drive|vol)|object|webdav|orangefs|btrfs|bcache|efs\d*$|fsx|filestore|(?:sd|hd|vd|xvd)[a-z]\d*$"
)


_REMOTE = re.compile(
    r"nfs|smb|cifs|share|rbd|ceph|s3|bucket|minio|lustre|gpfs|beegfs|weka|iscsi|gluster|moosefs|juicefs|hdfs|longhorn|"
    r"drbd|sshfs|webdav|orangefs|efs\d*$|fsx|filestore|object|(?:cloud|network)-", re.IGNORECASE,
)  # fmt: skip


def flows_of(row: YamlNode, p2p: bool) -> tuple[Flow, ...]:
    """The flows of a row, of one whose value is that of both ways two; FormatError with its line where it has none."""
    try:
        flows = _flows(row, p2p)
    except LanewiseError as error:
        raise FormatError(error.cause, location=row["flows"].location, hint=error.hint) from None
    flows = tuple(map(_of_its_gpu, flows)) if _of_gpus(row) else flows
    if len(flows) == 1 and values.of_what(row["value"].as_written())[1] == "both":
        return (*flows, replace(flows[0], src=flows[0].dst, dst=flows[0].src))
    return flows


def _flows(row: YamlNode, p2p: bool) -> tuple[Flow, ...]:
    """The flows: of a collective its ring, of a service on several GPUs each, and copies within a memory."""
    collective, counted = metric_of(row, "") in ("", *OF_COLLECTIVES), is_counted(row)
    text = row["flows"].needed()
    source, target = _ends(row)
    if _is_pairwise(row):
        return parse_flows(f"{source}->{target} all-to-all", p2p)
    names = names_of(source) if (collective or counted) and source == target else []
    if len(names) == 1 and named_collective(row["path"].text()) and names[0].startswith("gpu"):
        names = _of_all_ranks(row) or names
    if source == target == "gpu" and not (counted or row["metric"].given or named_collective(row["path"].text())):
        raise row["flows"].error("nobody says how many GPUs these are", "write gpu[0-7]; of a collective its path:")
    if counted and len(names) > 1:
        return tuple(Flow(name, name, p2p=p2p) for name in names)
    if len(names) > 1:
        return tuple(Flow(a, b, p2p=p2p) for a, b in zip(names, [*names[1:], names[0]], strict=True))
    text = _BETWEEN_FLOWS.sub(", ", text)
    if any(_pairs_within(piece) for piece in pieces_of(text)):
        flows = tuple(flow for piece in pieces_of(text) if piece for flow in _of_a_piece(piece, p2p))
        flows = tuple(sorted(flows, key=lambda flow: flow.src == flow.dst))  # the kind of path is that of the others
    else:
        flows = parse_flows(text, p2p)
    if collective and len(flows) == 1 and flows[0].src == flows[0].dst and row["hosts"].given:
        return (replace(flows[0], dst="host1"),)  # one GPU a host
    return flows


def _is_pairwise(row: YamlNode) -> bool:
    """Whether a row of all GPUs with each other is of copies between their pairs, not of a collective."""
    source, target = _ends(row)
    name = row["path"].text()
    copies = _PAIRWISE.search(name) and not (named_collective(name) or row["metric"].given or is_counted(row))
    return bool(copies) and source == target and 1 < len(names_of(source)) <= _MOST_PAIRED


def _of_all_ranks(row: YamlNode) -> list[str]:
    """The GPUs of one host of a collective whose row names one GPU and all ranks; none for one GPU a host."""
    ranks, hosts = (fields.count(row[key]) if row[key].given else 1 for key in ("ranks", "hosts"))
    return [f"gpu{number}" for number in range(ranks // hosts)] if ranks // hosts > 1 else []


def _of_a_piece(piece: str, p2p: bool) -> tuple[Flow, ...]:
    return tuple(Flow(a, b, p2p=p2p) for a, b in _pairs_within(piece)) or parse_flows(piece, p2p)


def _pairs_within(piece: str) -> list[tuple[str, str]]:
    """The pairs that `parse_flows` has no notation for: `gpu0->gpu0`, and all pairs of two ranges of unlike length."""
    source, _, target = (word.strip() for word in piece.partition("->"))
    if source == target and _WITHIN.fullmatch(source):
        return [(source, target)]
    if not (_RANGE.fullmatch(source) and _RANGE.fullmatch(target)):
        return []
    sources, targets = names_of(source), names_of(target)
    is_known = len(sources) == len(targets) or (1 in (len(sources), len(targets)) and not set(sources) & set(targets))
    return [] if is_known else [(a, b) for a in sources for b in targets]


def _ends(row: YamlNode) -> tuple[str, str]:
    source, _, target = (word.strip() for word in row["flows"].needed().partition("->"))
    return source, target


def _of_its_gpu(flow: Flow) -> Flow:
    """A flow between two hosts from or to the memory of host0's GPU: GPUs have the numbers of one machine."""
    src, dst = (re.sub(r"^host0$", "gpu0", end) for end in (flow.src, flow.dst))
    return replace(flow, src=src, dst=dst)


def _of_gpus(row: YamlNode) -> bool:
    """Whether a row of two hosts says that its data lies in the memory of GPUs (`memory: GPU`)."""
    text = row["memory"].as_written() if row["memory"].given else ""
    ends = {end.strip() for end in row["flows"].text().split("->")}
    return len(ends) == 2 and all(re.fullmatch(r"host\d+", end) for end in ends) and bool(_GPU_MEMORY.fullmatch(text))


def is_of_ring(row: YamlNode) -> bool:
    """Whether a row is of all GPUs with each other, `gpu[0-7]->gpu[0-7]`, or names such a collective of one host's.

    People quote the bus bandwidth of these.
    """
    source, target = _ends(row)
    if source == target and len(names_of(source)) > 1:
        return not _is_pairwise(row)
    flows = row["flows"].needed()
    of_gpus = "gpu" in flows and "host" not in flows and not row["hosts"].given
    return of_gpus and named_collective(row["path"].text()) in _OF_A_RING and not is_counted(row)


def is_over_a_network(flow: str) -> bool:
    """Whether one end of a flow is storage that lies behind a network, by its name."""
    return any(_REMOTE.match(end.strip()) for end in flow.split("->"))


def path_of(flow: Flow) -> str:
    """The kind of path as measured rows call it, by the names of the ends."""
    ends = (flow.src, flow.dst)
    if flow.src == flow.dst and flow.src.startswith("gpu"):
        return "GPU memory"
    if any(_STORAGE.match(end.lower()) for end in ends):
        return "storage"
    if any(_MACHINE.match(end) for end in ends) and not any(end.startswith("gpu") for end in ends):
        return "network"
    hosts = ["host0" if end.startswith("cpu") else end.partition(":")[0] for end in ends if _HOST.match(end)]
    other_host = len(set(hosts)) == 2 or hosts not in ([], ["host0"], ["host"], ["host0"] * 2)
    if other_host or any(end.lower().startswith(("nic", "mlx")) for end in ends):
        return "network"
    if len(hosts) == 2:
        return "host memory"
    if hosts:
        return "host to device" if _HOST.match(flow.src) else "device to host"
    if not any(map(_OF_PCIE.match, ends)):
        return "network"  # names of machines
    return "peer" if flow.p2p else "peer, staged"
