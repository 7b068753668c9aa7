"""Positions of a device (a host, and a port for its cable), and the moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.errors import InputError, LanewiseError, unknown_name
from lanewise.topology.compose import attach, detach
from lanewise.topology.model import Kind, LinkKind, System


@dataclass(frozen=True, slots=True)
class Position:
    """A host (None: bound to none) and the switch or CPU the cable goes to (None: where it is)."""

    host: str | None
    at: str | None = None

    def show(self) -> str:
        """'host1', 'host1 at sw2' or 'no host'."""
        return (self.host or "no host") + (f" at {self.at}" if self.at else "")


@dataclass(frozen=True, slots=True)
class Move:
    """A device that moves from `origin` to `to`."""

    device: str
    origin: Position
    to: Position

    def show(self) -> str:
        """The move in words."""
        return f"attach {self.device} to {self.to.show()}"


@dataclass(frozen=True, slots=True)
class MovableDevice:
    """A device that may move, with its positions, the current one first."""

    device: str
    positions: tuple[Position, ...]


def movables(
    system: System, devices: Sequence[str], hosts: Sequence[str] | None, places: Sequence[str] = ()
) -> tuple[MovableDevice, ...]:
    """Each device with the hosts (None: all) and ports it can go to; LanewiseError for names that cannot be meant."""
    for host in hosts or ():
        if host not in system.hosts:
            raise unknown_name(f"host of {system.name}", host, system.hosts)
    for place in places:
        if system.device(place).kind not in (Kind.SWITCH, Kind.CPU):
            switches = ", ".join(system.of_kind(Kind.SWITCH)) or "none"
            raise InputError(f"no cable goes below {place}", hint=f"name CPUs or switches; switches: {switches}")
    return tuple(_movable(system, name, devices, hosts or system.hosts, places) for name in devices)


def default_devices(system: System) -> list[str]:
    """The GPUs that more than one host can hold, or that are free."""
    devices = []
    for name in system.of_kind(Kind.GPU):
        hosts = [host for host in system.hosts if host != system.device(name).host]
        if any(_fits(system, name, Position(host), [name]) is None for host in hosts):
            devices.append(name)
    return devices


def apply(system: System, moves: Iterable[Move]) -> tuple[System, tuple[Move, ...]]:
    """The system after all moves, and the order in which they work; LanewiseError if no order does."""
    remaining, ordered = list(moves), []
    while remaining:
        refused: LanewiseError | None = None
        for move in remaining:
            try:
                system = put(system, move.device, move.to)
            except LanewiseError as error:
                refused = refused or error
                continue
            remaining.remove(move)
            ordered.append(move)
            break
        else:
            assert refused is not None
            raise refused
    return system, tuple(ordered)


def put(system: System, device: str, position: Position) -> System:
    """The system with the device at a position; LanewiseError as `attach` and `detach` say."""
    if system.device(device).host is not None:
        system = detach(system, device)
    return system if position.host is None else attach(system, device, position.host, position.at)


def without_cables(system: System, movable: Iterable[str], keep: Iterable[str]) -> System:
    """The system without the cables of the movable devices, except those to `keep`."""
    removed = set(movable) - set(keep)
    links = tuple(
        link for link in system.links if link.kind is not LinkKind.PCIE or not removed.intersection((link.a, link.b))
    )
    return replace(system, links=links)


def port_of(system: System, device: str) -> str | None:
    """The switch or CPU that the device's only PCIe cable goes to."""
    cables = [link for link in system.links_at(device) if link.kind is LinkKind.PCIE]
    return cables[0].a if len(cables) == 1 else None


def show_moves(moves: Iterable[Move]) -> str:
    """Several moves in one line, those to one position together: 'attach gpu2, gpu3 to host1; gpu4 to host2'."""
    positions: dict[str, list[str]] = {}
    for move in moves:
        positions.setdefault(move.to.show(), []).append(move.device)
    text = "; ".join(f"{', '.join(names)} to {position}" for position, names in positions.items())
    return f"attach {text}" if text else ""


def commands(system: System, ref: str, moves: Sequence[Move], parts: Sequence[str] = ()) -> list[str]:
    """The `lanewise system` commands that make the moves, each on the file that the one before wrote.

    `ref` is the name or file of the system, `parts` the user's part files.
    """
    lines: list[str] = []
    changed = [
        f"--set {name}={value}"
        for name, value in system.settings.items()
        if name not in system.parameters or value != system.parameters[name].default
    ]
    steps = [(move, verb) for move in moves for verb in ("detach", "attach")]
    for move, verb in steps:
        if (move.origin if verb == "detach" else move.to).host is None:
            continue
        where = f" {move.to.host}{f' --at {move.to.at}' if move.to.at else ''}" if verb == "attach" else ""
        source, settings = (ref, changed) if not lines else (f"plan-{len(lines)}.yaml", [])
        options = "".join(f" {option}" for option in (*settings, *(f"--parts {file}" for file in parts)))
        lines.append(f"lanewise system {verb} {source} {move.device}{where}{options} -o plan-{len(lines) + 1}.yaml")
    return lines


def _movable(
    system: System, device: str, devices: Sequence[str], hosts: Sequence[str], places: Sequence[str]
) -> MovableDevice:
    today = Position(system.device(device).host)
    bare = without_cables(system, devices, [device])
    port = port_of(system, device)
    candidates = [Position(host) for host in hosts]
    candidates += [Position(host, at) for host in hosts for at in places if at != port]
    refused: LanewiseError | None = None
    positions = [today]
    for position in candidates:
        if position == today:
            continue
        why = _fits(bare, device, position, [device])
        if why is None:
            positions.append(position)
        refused = refused or why
    if len(positions) == 1 and today.host is None and refused is not None:
        raise refused  # a device that is free and can go nowhere was named by mistake
    return MovableDevice(device, tuple(positions))


def _fits(system: System, device: str, position: Position, keep: Sequence[str]) -> LanewiseError | None:
    """Why a device cannot be at a position, None if it can."""
    try:
        put(system, device, position)
    except LanewiseError as error:
        return error
    return None
