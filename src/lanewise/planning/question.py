"""A planning question (a system, movable devices, the work) as the plain choices that the search takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from lanewise.errors import InputError, LanewiseError
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import FlowDemand, flow_demand
from lanewise.planning.positions import MovableDevice, Move, Position, apply, port_of, without_cables
from lanewise.planning.score import GB
from lanewise.planning.solver import FlowGroup, FlowVariant, Item, ItemOption, Pick, PortCapacity, Problem
from lanewise.planning.work import Tenant, TenantGpus, Work
from lanewise.routes.model import Via
from lanewise.serving.steady import service_flow
from lanewise.topology.model import Kind, LinkKind, System

MOST_TOGETHER = 4_096
FREELY = 1e15  # B/s of a flow that nothing known limits: the search needs a number


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One option of a device: its position, and the number of the tenant that it serves (None: no tenant)."""

    position: Position
    tenant: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What to place: devices with their positions, tenants and flows, and how many cables a port takes at most."""

    system: System
    movables: tuple[MovableDevice, ...]
    tenants: tuple[Tenant, ...] = ()
    flows: tuple[Flow, ...] = ()
    by: str = "total"
    slots: Mapping[str, int] = field(default_factory=dict)


class Choices:
    """A question as a Problem, and the way back from a pick to moves and work."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._unknown_rate: LanewiseError | None = None
        self._network = False
        moving = {movable.device for movable in question.movables}
        fixed = [
            MovableDevice(name, (Position(question.system.device(name).host),))
            for name in question.system.of_kind(Kind.GPU)
            if question.tenants and name not in moving and question.system.device(name).host is not None
        ]
        order = list(question.system.devices)
        self.devices = sorted((*question.movables, *fixed), key=lambda movable: order.index(movable.device))
        self.numbers = {movable.device: number for number, movable in enumerate(self.devices)}
        self.states = [self._states(movable) for movable in self.devices]
        if question.tenants and not any(state.tenant is not None for states in self.states for state in states):
            raise self._no_server()
        self.problem = self._problem()

    def moves(self, pick: Pick) -> tuple[Move, ...]:
        """The devices that a pick moves, in the order of the description."""
        rows = zip(self.devices, self.states, pick, strict=True)
        return tuple(
            Move(movable.device, movable.positions[0], states[index].position)
            for movable, states, index in rows
            if states[index].position != movable.positions[0]
        )

    def work(self, pick: Pick) -> Work:
        """The flows, and for each tenant the GPUs that a pick gives it."""
        rows = zip(self.devices, self.states, pick, strict=True)
        chosen = [(movable.device, states[index].tenant) for movable, states, index in rows]
        services = tuple(
            TenantGpus(tenant, tuple(name for name, serves in chosen if serves == number))
            for number, tenant in enumerate(self.question.tenants)
        )
        return Work(self.question.flows, services, self.question.by)

    def _states(self, movable: MovableDevice) -> tuple[DeviceState, ...]:
        """The options of a device; of identical devices the first takes the first option."""
        states: list[DeviceState] = []
        tied = any(movable.device in (flow.src, flow.dst) for flow in self.question.flows)
        gpu = self.question.system.device(movable.device).kind is Kind.GPU
        for position in movable.positions:
            if gpu and position.host is not None:
                states += [DeviceState(position, number) for number in self._servable(movable, position)]
            # A GPU without a tenant has no reason to move; for a free one, staying free is the last option.
            moves_idle = tied or not self.question.tenants or not gpu
            if position.host is not None if position is movable.positions[0] else moves_idle:
                states.append(DeviceState(position))
        return tuple(states if movable.positions[0].host is not None else [*states, DeviceState(movable.positions[0])])

    def _servable(self, movable: MovableDevice, position: Position) -> Iterator[int]:
        for number, tenant in enumerate(self.question.tenants):
            if not tenant.takes(movable.device, position.host):
                continue
            try:
                service_flow(self._with({movable.device: position}), tenant.load, movable.device, tenant.gpu_rate)
            except InputError as error:
                self._unknown_rate = self._unknown_rate or error
                continue
            yield number

    def _no_server(self) -> LanewiseError:
        if self._unknown_rate is not None:
            return self._unknown_rate
        named = ", ".join(sorted({name for tenant in self.question.tenants for name in tenant.load.gpus}))
        where = f" on {named}" if named else ""
        name = self.question.system.name
        return InputError(f"no GPU of {name} can serve{where}", hint="name GPUs that may move with --move 'gpu[0-3]'")

    def _with(self, positions: Mapping[str, Position]) -> System:
        """The system with these devices at their positions, and room for them."""
        moving = [movable.device for movable in self.question.movables]
        system = without_cables(self.question.system, moving, positions)
        today = {device: Position(system.device(device).host) for device in positions}
        return apply(
            system,
            [Move(name, today[name], position) for name, position in positions.items() if position != today[name]],
        )[0]

    def _problem(self) -> Problem:
        question = self.question
        groups = [FlowGroup(tenant.name, tenant.demand, bounded=True) for tenant in question.tenants]
        variants = list(self._service_variants())
        for flow in question.flows:
            variants += self._flow_variants(flow, len(groups))
            groups.append(FlowGroup(flow.name, GB, bounded=False, counted=not question.tenants))
        goals = ("total", "worst") if question.by == "total" and not question.tenants else ("worst", "total")
        items = tuple(
            Item(movable.device, tuple(self._option(movable, state) for state in states))
            for movable, states in zip(self.devices, self.states, strict=True)
        )
        alike = tuple(self._alike())
        return Problem(items, tuple(groups), tuple(variants), goals, tuple(self._rooms()), alike, not self._network)

    def _option(self, movable: MovableDevice, state: DeviceState) -> ItemOption:
        serves = "" if state.tenant is None else f" for {self.question.tenants[state.tenant].name}"
        moved = int(state.position != movable.positions[0])
        return ItemOption(state.position.show() + serves, moves=moved, used=int(state.tenant is not None))

    def _service_variants(self) -> Iterator[FlowVariant]:
        for number, (movable, states) in enumerate(zip(self.devices, self.states, strict=True)):
            for index, state in enumerate(states):
                if state.tenant is None:
                    continue
                positions = {movable.device: state.position}
                tenant = self.question.tenants[state.tenant]
                flow = service_flow(self._with(positions), tenant.load, movable.device, tenant.gpu_rate)
                variant = self._variant(positions, flow, state.tenant, ((number, index),))
                if variant is not None:
                    yield variant

    def _flow_variants(self, flow: Flow, group: int) -> Iterator[FlowVariant]:
        """The flow under every combination of the states of the devices it runs between."""
        ends = [self.numbers[name] for name in self._ends(flow) if name in self.numbers]
        together = list(product(*(range(len(self.states[number])) for number in ends)))
        if len(together) > MOST_TOGETHER:
            raise InputError(f"{flow.name} runs over too many devices that may move", hint="let fewer of them move")
        for indices in together:
            when = tuple(zip(ends, indices, strict=True))
            positions = {self.devices[number].device: self.states[number][index].position for number, index in when}
            variant = self._variant(positions, flow, group, when)
            if variant is not None:
                yield variant

    def _ends(self, flow: Flow) -> list[str]:
        names: list[str] = []
        for end in (flow.src, flow.dst):
            volume = self.question.system.volumes.get(end)
            names += volume.drives if volume else [end]
        return list(dict.fromkeys(names))

    def _variant(
        self, positions: Mapping[str, Position], flow: Flow, group: int, when: tuple[tuple[int, int], ...]
    ) -> FlowVariant | None:
        """What the flow takes with its ends at these positions; None where they cannot be or it cannot run."""
        try:
            demand = flow_demand(self._with(positions), flow)
        except LanewiseError:
            return None
        self._network = self._network or any(route.via is Via.NETWORK for route in demand.routes)
        return FlowVariant(group, when, parts_of(demand), ceiling(demand))

    def _rooms(self) -> Iterator[PortCapacity]:
        """Lanes that switches and CPUs have for devices that move, and slots as the question states them."""
        moving = [movable.device for movable in self.question.movables]
        bare = without_cables(self.question.system, moving, [])
        ports = {state.position.at for states in self.states for state in states if state.position.at}
        for port in sorted(ports | set(self.question.slots)):
            part = bare.part(port)
            lanes = None if part is None or part.kind in ("adapter", "raid") else part.number("pcie.lanes")
            cables = [link for link in bare.links_at(port) if link.kind in (LinkKind.PCIE, LinkKind.FABRIC)]
            taken = sum(link.lanes or 0 for link in cables)
            takes = tuple(self._takes(port))
            if lanes is not None:
                yield PortCapacity(port, takes, int(lanes) - taken)
            if port in self.question.slots:
                yield PortCapacity(port, tuple((i, j, 1) for i, j, _ in takes), self.question.slots[port])

    def _takes(self, port: str) -> Iterator[tuple[int, int, int]]:
        for number, (movable, states) in enumerate(zip(self.devices, self.states, strict=True)):
            port_today = port_of(self.question.system, movable.device)
            for index, state in enumerate(states):
                if (state.position.at or port_today) == port and movable in self.question.movables:
                    links = self._with({movable.device: state.position}).links_at(movable.device)
                    yield number, index, sum(link.lanes or 0 for link in links if link.kind is LinkKind.PCIE)

    def _alike(self) -> Iterator[tuple[int, int]]:
        """Neighbours among interchangeable devices: same part, cable, positions, and the same flows."""
        last: dict[object, int] = {}
        for number, movable in enumerate(self.devices):
            device = self.question.system.device(movable.device)
            links = sorted(
                (link.far_end(movable.device), str(replace(link, a="", b="", port="", location=None)))
                for link in self.question.system.links_at(movable.device)
            )
            domain = self.question.system.domain_of(movable.device)
            sign = (
                device.kind,
                device.part,
                movable.positions,
                self.states[number],
                str(links),
                domain and domain.name,
            )
            before = last.get(sign)
            if before is not None and self._swappable(self.devices[before].device, movable.device):
                yield before, number
            last[sign] = number

    def _swappable(self, first: str, second: str) -> bool:
        names = {first: second, second: first}
        if any({first, second}.intersection(volume.drives) for volume in self.question.system.volumes.values()):
            return False
        plain = Counter(self.question.flows)
        swapped = Counter(
            replace(flow, src=names.get(flow.src, flow.src), dst=names.get(flow.dst, flow.dst))
            for flow in self.question.flows
        )
        return plain == swapped


def parts_of(demand: FlowDemand) -> tuple[tuple[tuple[str, ...], float], ...]:
    """The part of each resource that 1 B/s of a flow takes."""
    return tuple(
        ((resource.kind, *resource.place), amount / resource.capacity) for resource, amount in demand.per_byte.items()
    )


def ceiling(demand: FlowDemand) -> float:
    """The most that a flow can do by itself in B/s, its staging at its best."""
    return min([demand.cap("high"), *(1.0 / part for _, part in parts_of(demand) if part > 0), FREELY])
