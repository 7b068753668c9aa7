"""What a server may be given for a request: classes of free blocks with the load that each would be to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lanewise.errors import LanewiseError
from lanewise.pool.equivalence import BlockClass
from lanewise.pool.loads import PathLoad, path_load
from lanewise.pool.model import PathRequirement, Pool
from lanewise.pool.rates import OwnPaths, PlacementScore, PoolRates
from lanewise.routes.paths import PCIE_AND_FABRIC, reach
from lanewise.topology.compose import attach
from lanewise.topology.model import Kind, System

# Of each requirement, how many blocks of which class: ((class, count), ...), classes ascending.
Counts = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class ServerChoice:
    """A server (and others `alike`), the classes of blocks that reach it with their loads, and why others do not."""

    server: str
    alike: tuple[str, ...]
    classes: tuple[BlockClass, ...]
    loads: tuple[PathLoad, ...]
    refusals: Mapping[BlockClass, str]

    def options(self, requirement: PathRequirement) -> list[int]:
        """The classes that a requirement may be met from, by number."""
        return [number for number, members in enumerate(self.classes) if of_class(members, requirement)]


def of_class(members: BlockClass, requirement: PathRequirement) -> bool:
    """Whether blocks of a class are of the kind and part that a requirement names."""
    return members.kind is requirement.kind and requirement.part in (None, members.part)


def server_choice(pool: Pool, servers: tuple[str, ...], classes: Iterable[BlockClass]) -> ServerChoice:
    """What the first of some servers that are alike may be given."""
    server = servers[0]
    system, reached, refusals = pool.system, [], {}
    for members in classes:
        try:
            system = attach(system, pool.block(members.blocks[0]).device, server)
            reached.append(members)
        except LanewiseError as error:
            refusals[members] = error.cause
    fitting, loads = [], []
    for members in reached:
        try:
            loads.append(path_load(system, pool.block(members.blocks[0]), server))
            fitting.append(members)
        except LanewiseError as error:
            refusals[members] = error.cause
    return ServerChoice(server, servers, tuple(fitting), tuple(loads), refusals)


class Placements:
    """The placements of one request, each scored once."""

    def __init__(
        self, pool: Pool, rates: PoolRates, requirements: tuple[PathRequirement, ...], owner: str | None = None
    ) -> None:
        self.pool, self.rates, self.requirements, self.owner = pool, rates, requirements, owner
        self.scores: dict[tuple[str, Counts], PlacementScore] = {}
        self._choices: dict[str, ServerChoice] = {}

    def score(self, choice: ServerChoice, counts: Counts) -> PlacementScore | None:
        """The score of so many blocks of each class on a server; None if they are not there."""
        key = (choice.server, counts)
        if key not in self.scores:
            if not self._available(choice, counts):
                return None
            cards = self.cards(choice, counts) if self.complete(counts) else []
            if cards is None:
                return None
            own = [
                OwnPaths(choice.loads[number], count, requirement.rate)
                for requirement, chosen in zip(self.requirements, counts, strict=True)
                for number, count in chosen
            ]
            self.scores[key] = self.rates.score(own, self.owner, sum(distance for _, _, distance in cards))
            self._choices[choice.server] = choice
        return self.scores[key]

    def complete(self, counts: Counts) -> bool:
        """Whether there are as many blocks as requested; a search scores smaller placements too, as its steps."""
        return all(
            sum(count for _, count in chosen) == requirement.count
            for requirement, chosen in zip(self.requirements, counts, strict=True)
        )

    def ranked(self) -> list[tuple[PlacementScore, ServerChoice, Counts]]:
        """All placements scored so far, the best first; of equal ones those of few classes, then the first server."""
        order = {server: number for number, server in enumerate(self.pool.servers)}
        entries = [
            (score, self._choices[server], counts)
            for (server, counts), score in self.scores.items()
            if self.complete(counts)
        ]
        return sorted(entries, key=lambda entry: (*entry[0].key, _classes(entry[2]), order[entry[1].server], entry[2]))

    def blocks(self, choice: ServerChoice, counts: Counts) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The first blocks of the classes, in the order of the requirements; and each card with the block it serves."""
        left = {number: list(members.blocks) for number, members in enumerate(choice.classes)}
        taken = [(r, left[number].pop(0)) for r, chosen in enumerate(counts) for number, n in chosen for _ in range(n)]
        pairs = []
        for card, server_of, _ in self.cards(choice, counts) or ():
            r, index = server_of
            device = [name for requirement, name in taken if requirement == r][index]
            pairs.append((left[card].pop(0), device))
        return (*(name for _, name in taken), *(card for card, _ in pairs)), tuple(pairs)

    def cards(self, choice: ServerChoice, counts: Counts) -> list[tuple[int, tuple[int, int], int]] | None:
        """The class of each network card that comes along, the first device it serves, and the links to all it serves.

        A device is the number of its requirement and its own there; links count from switch to switch. None if there
        are not enough cards.
        """
        left = {n: len(members.blocks) for n, members in enumerate(choice.classes) if members.kind is Kind.NIC}
        for chosen in counts:
            for number, count in chosen:
                if number in left:
                    left[number] -= count
        cards = []
        for r, (requirement, chosen) in enumerate(zip(self.requirements, counts, strict=True)):
            devices = [number for number, count in chosen for _ in range(count)]
            for card in range(requirement.nics):
                index = card * len(devices) // requirement.nics
                served = devices[index : (card + 1) * len(devices) // requirement.nics] or [devices[index]]
                apart = {
                    n: sum(self._distance(choice.classes[m].above, choice.classes[n].above) for m in served)
                    for n, count in left.items()
                    if count > 0
                }
                if not apart:
                    return None
                nearest = min(apart, key=lambda n: (apart[n], n))
                left[nearest] -= 1
                cards.append((nearest, (r, index), apart[nearest]))
        return cards

    def _available(self, choice: ServerChoice, counts: Counts) -> bool:
        used: dict[int, int] = {}
        for chosen in counts:
            for number, count in chosen:
                used[number] = used.get(number, 0) + count
        return all(count <= len(choice.classes[number].blocks) for number, count in used.items())

    def _distance(self, a: str, b: str) -> int:
        return distance(self.pool.system, a, b)


def _classes(counts: Counts) -> int:
    return sum(len(chosen) for chosen in counts)


def distance(system: System, a: str, b: str) -> int:
    """The number of PCIe and fabric links between two switches."""
    if a == b:
        return 0
    hops = reach(system, a, PCIE_AND_FABRIC).get(b)
    return len(hops) if hops is not None else len(system.devices)
