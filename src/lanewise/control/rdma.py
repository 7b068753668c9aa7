"""The RDMA devices of this machine, which of them and which GID to use, and queue pair addresses as messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from lanewise.control.stream import SAME_VERSION, Words
from lanewise.control.sysfs import node_in, text
from lanewise.errors import CannotMeasure, InputError

RDMA = Path("/sys/class/infiniband")
MOST_PAIRS = 256  # queue pairs in one address
_MAPPED = 20 * "0" + "ffff"  # an IPv4 address in a GID
_Number = Annotated[int, Field(ge=0, lt=1 << 64)]
_QueuePairs = Annotated[list[_Number], Field(max_length=MOST_PAIRS)]
# The native side checks each field's range and that none is missing.
RdmaAddress = Annotated[dict[str, _Number | Annotated[str, Field(max_length=64)] | _QueuePairs], Field(max_length=16)]


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """A port of an RDMA device with one of its GIDs; `kind` is what a port at the other end must have in common.

    `gid` is 32 hexadecimal digits; `node` the NUMA node of the device, None if it has none. A node tells a Frontend.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    device: Annotated[Words, Field(max_length=64)]
    port: Annotated[int, Field(ge=1, le=255)]
    gid_index: Annotated[int, Field(ge=0, le=255)]
    gid: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    kind: Annotated[Words, Field(max_length=64)]
    node: Annotated[int, Field(ge=0, lt=1024)] | None = None


def rdma_devices() -> list[str]:
    """The names of all devices that the kernel knows."""
    return sorted(path.name for path in RDMA.iterdir()) if RDMA.is_dir() else []


def rdma_device(name: str | None) -> str:
    """The RDMA device of that name, or the first whose port is up; CannotMeasure if there is none."""
    devices = rdma_devices()
    if name is not None:
        if name not in devices:
            hint = f"found: {', '.join(devices)}" if devices else "this machine has no RDMA device at all"
            raise CannotMeasure(f"there is no RDMA device {name[:40]}", hint=hint)
        return name
    active = [device for device in devices if _is_active(RDMA / device / "ports" / "1")]
    if not active:
        raise _no_active_port(devices)
    return active[0]


def gid_of(device: str, port: int = 1) -> int:
    """The index of the GID to use: RoCE v2 with an IPv4 address before any other RoCE v2, else 0."""
    folder = RDMA / device / "ports" / str(port)
    first = None
    for index in range(256):
        gid = text(folder / "gids" / str(index))
        if not gid:
            break
        if "v2" not in text(folder / "gid_attrs" / "types" / str(index)):
            continue
        if _digits(gid).startswith(_MAPPED):
            return index
        first = index if first is None else first
    return first or 0


def usable_ports(device: str | None = None, gid_index: int | None = None) -> list[RdmaPort]:
    """The active ports, known to libibverbs, of that device or of all; CannotMeasure where there is none."""
    from lanewise import _native

    try:
        known = _native.verbs_devices()
    except _native.ProbeFailure as failure:
        cause, hint = failure.args
        raise CannotMeasure(cause, hint=hint) from None
    devices = [rdma_device(device)] if device is not None else rdma_devices()
    active = [
        (name, int(folder.name))
        for name in devices
        for folder in sorted((RDMA / name / "ports").glob("[0-9]*"), key=lambda folder: int(folder.name))
        if _is_active(folder)
    ]
    if not active:
        raise _no_active_port(devices)
    if not (opened := [(name, port) for name, port in active if name in known]):
        raise CannotMeasure(
            f"libibverbs does not know the RDMA device {active[0][0]}",
            hint="install its provider (ibverbs-providers), and give this process /dev/infiniband",
        )
    ports = [_port(name, port, gid_index) for name, port in opened]
    if not (complete := [port for port in ports if port.gid.strip("0")]):
        raise CannotMeasure(
            f"{ports[0].device} has no GID {ports[0].gid_index}",
            hint="give its interface an address; show_gids, or /sys/class/infiniband/*/ports/*/gids, lists them",
        )
    return complete


def same_network(one: RdmaPort, other: RdmaPort) -> bool:
    """Whether two ports are of one kind with GIDs of one network: /24 of IPv4 addresses, else the subnet prefix."""
    digits = 30 if one.gid.startswith(_MAPPED) else 16
    return one.kind == other.kind and one.gid[:digits] == other.gid[:digits]


def connect_pairs(endpoint: Any, address: object) -> None:
    """Connect a native endpoint to the other side's `address`; InputError if it is none, CannotMeasure if it fails."""
    from lanewise import _native

    try:
        endpoint.connect(address)
    except _native.ProbeFailure as failure:
        cause, hint = failure.args
        raise CannotMeasure(cause, hint=hint) from None
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise InputError("an address of queue pairs is none", hint=SAME_VERSION) from None


def _port(device: str, port: int, gid_index: int | None) -> RdmaPort:
    folder = RDMA / device / "ports" / str(port)
    index = gid_of(device, port) if gid_index is None else gid_index
    gid = _digits(text(folder / "gids" / str(index)))
    if text(folder / "link_layer") == "InfiniBand":
        kind = f"InfiniBand {gid[:16]}"
    else:
        version = "v2" if "v2" in text(folder / "gid_attrs" / "types" / str(index)) else "v1"
        kind = f"RoCE {version} {'IPv4' if gid.startswith(_MAPPED) else 'IPv6'}"
    return RdmaPort(device[:64], port, index, gid, kind, node_in(RDMA / device))


def _is_active(folder: Path) -> bool:
    return "ACTIVE" in text(folder / "state")


def _digits(gid: str) -> str:
    return gid.replace(":", "").lower()


def _no_active_port(devices: list[str]) -> CannotMeasure:
    hint = "bring its link up, or use --transport tcp" if devices else "use --transport tcp"
    return CannotMeasure("no RDMA device with an active port", hint=hint)
