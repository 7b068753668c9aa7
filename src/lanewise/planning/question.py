"""From a system, what may move and the work to the plain choices that the search understands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from lanewise.errors import InputError, LanewiseError
from lanewise.perf.plans import plan
from lanewise.planning.choices import Group, Item, Option, Pick, Problem, Room, Variant
from lanewise.planning.score import GB, service_flow
from lanewise.planning.spots import Movable, Move, Spot, above, alone, apply
from lanewise.planning.work import Serving, Tenant, Work
from lanewise.routes.model import Via
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from lanewise.perf.flow import Flow
    from lanewise.perf.plans import Planned
    from lanewise.topology.model import System

MOST_TOGETHER = 4_096
FREELY = 1e15  # B/s of a flow that nothing known limits: the search needs a number


@dataclass(frozen=True, slots=True)
class State:
    """One option of a device in full: where it is, and the tenant it serves by number (None: no tenant)."""

    spot: Spot
    tenant: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be placed: devices with their spots, tenants and flows, and how many cables a port takes at most."""

    system: System
    movables: tuple[Movable, ...]
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
        moving = {each.device for each in question.movables}
        fixed = [
            Movable(name, (Spot(question.system.device(name).host),))
            for name in question.system.of_kind(Kind.GPU)
            if question.tenants and name not in moving and question.system.device(name).host is not None
        ]
        order = list(question.system.devices)
        self.devices = sorted((*question.movables, *fixed), key=lambda each: order.index(each.device))
        self.numbers = {each.device: number for number, each in enumerate(self.devices)}
        self.states = [self._states(each) for each in self.devices]
        if question.tenants and not any(state.tenant is not None for each in self.states for state in each):
            raise self._nobody()
        self.problem = self._problem()

    def moves(self, pick: Pick) -> tuple[Move, ...]:
        """The devices that a pick moves, in the order of the description."""
        found = zip(self.devices, self.states, pick, strict=True)
        return tuple(
            Move(each.device, each.spots[0], states[index].spot)
            for each, states, index in found
            if states[index].spot != each.spots[0]
        )

    def work(self, pick: Pick) -> Work:
        """The flows, and for each tenant the GPUs that a pick gives it."""
        found = zip(self.devices, self.states, pick, strict=True)
        chosen = [(each.device, states[index].tenant) for each, states, index in found]
        services = tuple(
            Serving(tenant, tuple(name for name, serves in chosen if serves == number))
            for number, tenant in enumerate(self.question.tenants)
        )
        return Work(self.question.flows, services, self.question.by)

    def _states(self, each: Movable) -> tuple[State, ...]:
        """What a device may do; of devices that are alike the first do what comes first."""
        states: list[State] = []
        tied = any(each.device in (flow.src, flow.dst) for flow in self.question.flows)
        gpu = self.question.system.device(each.device).kind is Kind.GPU
        for spot in each.spots:
            if gpu and spot.host is not None:
                states += [State(spot, number) for number in self._servable(each, spot)]
            # A GPU that nobody asks for has no reason to move, and a free one stays free as the last thing it may do.
            moves_idle = tied or not self.question.tenants or not gpu
            if spot.host is not None if spot is each.spots[0] else moves_idle:
                states.append(State(spot))
        return tuple(states if each.spots[0].host is not None else [*states, State(each.spots[0])])

    def _servable(self, each: Movable, spot: Spot) -> Iterator[int]:
        for number, tenant in enumerate(self.question.tenants):
            if not tenant.takes(each.device, spot.host):
                continue
            try:
                service_flow(self._with({each.device: spot}), tenant, each.device)
            except InputError as error:
                self._unknown_rate = self._unknown_rate or error
                continue
            yield number

    def _nobody(self) -> LanewiseError:
        if self._unknown_rate is not None:
            return self._unknown_rate
        named = ", ".join(sorted({name for each in self.question.tenants for name in each.load.gpus}))
        where = f" on {named}" if named else ""
        name = self.question.system.name
        return InputError(f"no GPU of {name} can serve{where}", hint="name GPUs that may move with --move 'gpu[0-3]'")

    def _with(self, spots: Mapping[str, Spot]) -> System:
        """The system with these devices at their spots, and room for them."""
        moving = [each.device for each in self.question.movables]
        system = alone(self.question.system, moving, spots)
        today = {device: Spot(system.device(device).host) for device in spots}
        return apply(system, [Move(name, today[name], spot) for name, spot in spots.items() if spot != today[name]])[0]

    def _problem(self) -> Problem:
        question = self.question
        groups = [Group(each.name, each.wanted, bounded=True) for each in question.tenants]
        variants = list(self._service_variants())
        for flow in question.flows:
            variants += self._flow_variants(flow, len(groups))
            groups.append(Group(flow.name, GB, bounded=False, counted=not question.tenants))
        goals = ("total", "worst") if question.by == "total" and not question.tenants else ("worst", "total")
        items = tuple(
            Item(each.device, tuple(self._option(each, state) for state in states))
            for each, states in zip(self.devices, self.states, strict=True)
        )
        alike = tuple(self._alike())
        return Problem(items, tuple(groups), tuple(variants), goals, tuple(self._rooms()), alike, not self._network)

    def _option(self, each: Movable, state: State) -> Option:
        serves = "" if state.tenant is None else f" for {self.question.tenants[state.tenant].name}"
        moved = int(state.spot != each.spots[0])
        return Option(state.spot.show() + serves, moves=moved, used=int(state.tenant is not None))

    def _service_variants(self) -> Iterator[Variant]:
        for number, (each, states) in enumerate(zip(self.devices, self.states, strict=True)):
            for index, state in enumerate(states):
                if state.tenant is None:
                    continue
                spots = {each.device: state.spot}
                flow = service_flow(self._with(spots), self.question.tenants[state.tenant], each.device)
                found = self._variant(spots, flow, state.tenant, ((number, index),))
                if found is not None:
                    yield found

    def _flow_variants(self, flow: Flow, group: int) -> Iterator[Variant]:
        """The flow under every combination of the states of the devices it runs between."""
        ends = [self.numbers[name] for name in self._ends(flow) if name in self.numbers]
        together = list(product(*(range(len(self.states[number])) for number in ends)))
        if len(together) > MOST_TOGETHER:
            raise InputError(f"{flow.name} runs over too many devices that may move", hint="let fewer of them move")
        for indices in together:
            when = tuple(zip(ends, indices, strict=True))
            spots = {self.devices[number].device: self.states[number][index].spot for number, index in when}
            found = self._variant(spots, flow, group, when)
            if found is not None:
                yield found

    def _ends(self, flow: Flow) -> list[str]:
        names: list[str] = []
        for end in (flow.src, flow.dst):
            volume = self.question.system.volumes.get(end)
            names += volume.drives if volume else [end]
        return list(dict.fromkeys(names))

    def _variant(
        self, spots: Mapping[str, Spot], flow: Flow, group: int, when: tuple[tuple[int, int], ...]
    ) -> Variant | None:
        """What the flow takes with its ends at these spots; None where they cannot be or it cannot run."""
        try:
            planned = plan(self._with(spots), flow)
        except LanewiseError:
            return None
        self._network = self._network or any(route.via is Via.NETWORK for route in planned.routes)
        uses = parts_of(planned)
        return Variant(group, when, uses, ceiling(planned))

    def _rooms(self) -> Iterator[Room]:
        """Lanes that switches and CPUs have for devices that move, and slots as the question states them."""
        moving = [each.device for each in self.question.movables]
        bare = alone(self.question.system, moving, [])
        ports = {state.spot.at for states in self.states for state in states if state.spot.at}
        for port in sorted(ports | set(self.question.slots)):
            part = bare.part(port)
            lanes = None if part is None or part.kind in ("adapter", "raid") else part.number("pcie.lanes")
            cables = [link for link in bare.links_at(port) if link.kind in (LinkKind.PCIE, LinkKind.FABRIC)]
            taken = sum(link.lanes or 0 for link in cables)
            takes = tuple(self._takes(port))
            if lanes is not None:
                yield Room(port, takes, int(lanes) - taken)
            if port in self.question.slots:
                yield Room(port, tuple((i, j, 1) for i, j, _ in takes), self.question.slots[port])

    def _takes(self, port: str) -> Iterator[tuple[int, int, int]]:
        for number, (each, states) in enumerate(zip(self.devices, self.states, strict=True)):
            here = above(self.question.system, each.device)
            for index, state in enumerate(states):
                if (state.spot.at or here) == port and each in self.question.movables:
                    links = self._with({each.device: state.spot}).links_at(each.device)
                    yield number, index, sum(link.lanes or 0 for link in links if link.kind is LinkKind.PCIE)

    def _alike(self) -> Iterator[tuple[int, int]]:
        """Neighbours among devices that could stand for each other: same part, cable, spots, and the same flows."""
        last: dict[object, int] = {}
        for number, each in enumerate(self.devices):
            device = self.question.system.device(each.device)
            links = sorted(
                (link.other(each.device), str(replace(link, a="", b="", port="", location=None)))
                for link in self.question.system.links_at(each.device)
            )
            domain = self.question.system.domain_of(each.device)
            sign = (device.kind, device.part, each.spots, self.states[number], str(links), domain and domain.name)
            before = last.get(sign)
            if before is not None and self._swappable(self.devices[before].device, each.device):
                yield before, number
            last[sign] = number

    def _swappable(self, one: str, other: str) -> bool:
        names = {one: other, other: one}
        if any({one, other}.intersection(volume.drives) for volume in self.question.system.volumes.values()):
            return False
        plain = Counter(self.question.flows)
        swapped = Counter(
            replace(flow, src=names.get(flow.src, flow.src), dst=names.get(flow.dst, flow.dst))
            for flow in self.question.flows
        )
        return plain == swapped


def parts_of(planned: Planned) -> tuple[tuple[tuple[str, ...], float], ...]:
    """The part of each resource that 1 B/s of a flow takes."""
    return tuple((use.resource.key, use.amount / use.resource.capacity) for use in planned.uses)


def ceiling(planned: Planned) -> float:
    """The most that a flow can do by itself in B/s, its staging at its best."""
    return min([planned.cap("overlapped"), *(1.0 / part for _, part in parts_of(planned) if part > 0), FREELY])
