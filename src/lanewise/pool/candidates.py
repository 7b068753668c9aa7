"""The servers that a request may go to, with the classes of blocks that each may be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.errors import Contradiction
from lanewise.pool.equivalence import block_classes, free_servers, server_classes
from lanewise.pool.model import CompositionRequest, CompositionState, NoOffer, Offer, PathRequirement, Pool
from lanewise.pool.operations import check_server
from lanewise.pool.placement import Counts, Placements, ServerChoice, of_class, server_choice
from lanewise.pool.prediction import predicted_offer
from lanewise.pool.rates import PoolRates
from lanewise.pool.rules import ServerSpace, why_no_space
from lanewise.pool.search import search
from lanewise.topology.model import Kind

Spaces = Mapping[str, ServerSpace]


@dataclass(frozen=True)
class Candidates:
    """What a request may have: servers with classes of blocks, and why some servers have no space (`full`)."""

    pool: Pool
    request: CompositionRequest
    rates: PoolRates
    choices: tuple[ServerChoice, ...]
    full: Mapping[str, str]
    spaces: Spaces | None = None

    def placements(self, requirements: tuple[PathRequirement, ...]) -> Placements:
        """The placements that a search for these requirements looks at, scored."""
        placements = Placements(self.pool, self.rates, requirements, self.request.extends)
        search(placements, self.choices)
        return placements

    def offer(self, placements: Placements, choice: ServerChoice, counts: Counts) -> Offer:
        """The offer of one placement, its rates predicted in full."""
        blocks, pairs = placements.blocks(choice, counts)
        request = CompositionRequest(placements.requirements, choice.server, blocks, extends=self.request.extends)
        return predicted_offer(self.pool, self.rates, choice.server, blocks, request, dict(pairs), choice.alike)

    def best(self, requirements: tuple[PathRequirement, ...]) -> Offer | None:
        """The best offer for these requirements that gives everybody what was requested, None if there is none."""
        placements = self.placements(requirements)
        ranked = placements.ranked()
        return self.offer(placements, *ranked[0][1:]) if ranked and ranked[0][0].good else None


def candidates(pool: Pool, request: CompositionRequest, spaces: Spaces | None = None) -> Candidates:
    """The candidates for a request; Contradiction or UnknownName for a server or composition that takes nothing."""
    kinds = {requirement.kind for requirement in request.requirements}
    kinds |= {Kind.NIC} if any(requirement.nics for requirement in request.requirements) else set()
    classes = [members for members in block_classes(pool) if members.kind in kinds]
    allowed = check_target(pool, request)
    groups = [allowed] if len(allowed) == 1 else server_classes(pool)
    choices, full = [], {}
    for alike in groups:
        for index, server in enumerate(alike):
            reason = _why_full(pool, request, server, spaces)
            if not reason:  # the others are read for their space only when it is their turn
                choices.append(server_choice(pool, alike[index:], classes))
                break
            full[server] = reason
    return Candidates(pool, request, PoolRates(pool), tuple(choices), full, spaces)


def check_target(pool: Pool, request: CompositionRequest) -> tuple[str, ...]:
    """The servers that a request may go to; refused if it names one that is taken, or a composition that has ended."""
    if request.extends is not None:
        owner = pool.composition(request.extends)
        if owner.state is not CompositionState.COMPOSED:
            raise Contradiction(f"composition {owner.name} is {owner.state} and takes no blocks")
        if request.server not in (None, owner.server):
            raise Contradiction(f"composition {owner.name} is on {owner.server}, not on {request.server}")
        return (owner.server,)
    if request.name and request.name in pool.compositions:
        raise Contradiction(f"composition {request.name} exists already", hint="choose another name")
    if request.server is not None:
        check_server(pool, request.server)
        return (request.server,)
    free = free_servers(pool)
    if not free:
        taken = ", ".join(f"{one.server} has {one.name}" for one in list(pool.compositions.values())[:4])
        hint = "add blocks to a composition, or release one"
        raise NoOffer(f"none of {len(pool.servers)} servers is free ({taken})", hint=hint)
    return free


def _why_full(pool: Pool, request: CompositionRequest, server: str, spaces: Spaces | None) -> str:
    """Why a server has no space for a request, judged by the first free blocks that fit."""
    space = None if spaces is None else spaces.get(server)
    if space is None:
        return ""
    devices: list[str] = []
    for requirement in request.requirements:
        fitting = [b.device for b in pool.free(requirement.kind) if requirement.part in (None, b.part)]
        devices += fitting[: requirement.count]
        devices += [block.device for block in pool.free(Kind.NIC)][: requirement.nics]
    return why_no_space(pool.system, server, devices, space)


def available(choice: ServerChoice, requirement: PathRequirement) -> int:
    """How many blocks for a requirement reach a server."""
    return sum(len(members.blocks) for members in choice.classes if of_class(members, requirement))
