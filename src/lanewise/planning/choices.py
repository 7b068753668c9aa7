"""A planning question as plain data: items that choose one option each, and flows that exist under some choices."""

from __future__ import annotations

from dataclasses import dataclass

Pick = tuple[int, ...]
"""The option that each item takes, by index."""


@dataclass(frozen=True, slots=True)
class ItemOption:
    """One thing an item may do, with its cost: devices moved, devices in use, rank of the class (0: nearest)."""

    name: str
    moves: int = 0
    used: int = 0
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A device with the options that it may take."""

    name: str
    options: tuple[ItemOption, ...]


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows counted together against a `demand` in B/s; `bounded` if more than that is never used.

    A group that is not `counted` takes its share of resources, but no goal asks for it.
    """

    name: str
    demand: float
    bounded: bool
    counted: bool = True


@dataclass(frozen=True, slots=True)
class FlowVariant:
    """One flow of a group as it runs under the choices `when` ((item, option) pairs, all of them).

    `uses` gives for each resource the part of it that 1 B/s takes; `cap` is the flow's own ceiling in B/s.
    """

    group: int
    when: tuple[tuple[int, int], ...]
    uses: tuple[tuple[tuple[str, ...], float], ...]
    cap: float


@dataclass(frozen=True, slots=True)
class PortCapacity:
    """A port with a limit (lanes, or cables); each (item, option) in `takes` needs that amount of it."""

    name: str
    takes: tuple[tuple[int, int, int], ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Items, flows and goals in order of weight: 'worst' and 'total' share of what groups want, 'near' classes.

    `alike` are neighbours of which the later may always take the later option. `sound` says that no placement can
    get more than the variants state, so that the solver's bound is a proof.
    """

    items: tuple[Item, ...]
    groups: tuple[FlowGroup, ...]
    variants: tuple[FlowVariant, ...]
    goals: tuple[str, ...]
    rooms: tuple[PortCapacity, ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    sound: bool = True

    def chosen(self, pick: Pick) -> tuple[ItemOption, ...]:
        """The options of a pick."""
        return tuple(item.options[index] for item, index in zip(self.items, pick, strict=True))

    def moves(self, pick: Pick) -> int:
        """How many devices a pick moves."""
        return sum(option.moves for option in self.chosen(pick))

    def used(self, pick: Pick) -> int:
        """How many devices a pick uses."""
        return sum(option.used for option in self.chosen(pick))


@dataclass(frozen=True, slots=True)
class FlowBundle:
    """Variants of one group that differ in the device only, as one: each adds up to `cap` B/s where it is chosen."""

    group: int
    whens: tuple[tuple[tuple[int, int], ...], ...]
    uses: tuple[tuple[tuple[str, ...], float], ...]
    cap: float


def bundles(problem: Problem) -> list[FlowBundle]:
    """The variants, those of identical devices taken together.

    What only one device or one flow ever uses is left out: it bounds that flow alone, and its cap says so already.
    """
    owners: dict[tuple[str, ...], set[tuple[bool, int]]] = {}
    for variant in problem.variants:
        bounded = problem.groups[variant.group].bounded
        # A device serves one tenant at a time, and a plain flow runs in one way at a time.
        owner = (bounded, variant.when[0][0] if bounded else variant.group)
        for key, _ in variant.uses:
            owners.setdefault(key, set()).add(owner)
    merged: dict[object, FlowBundle] = {}
    for variant in problem.variants:
        uses = tuple((key, part) for key, part in variant.uses if len(owners[key]) > 1)
        # Only variants with one choice add up: of those with two, one flow takes a single one.
        sign = (variant.group, uses, variant.cap, len(merged) if len(variant.when) != 1 else None)
        before = merged.get(sign)
        whens = (variant.when,) if before is None else (*before.whens, variant.when)
        merged[sign] = FlowBundle(variant.group, whens, uses, variant.cap)
    return list(merged.values())
