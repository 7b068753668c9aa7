"""Finds placements for a request: all of them where they are few, else fills, a greedy choice and single moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

from lanewise.pool.model import PathRequirement
from lanewise.pool.placement import Counts, Placements, ServerChoice, of_class

MOST_OF_ALL = 500
"""So many placements are all scored; of more only those that a search comes by."""
MOST_SINGLE = 320
"""Single blocks that are tried, over all servers, to see which classes are good."""
MOST_GREEDY, MOST_IMPROVED = 3, 2
"""Servers for which the greedy choice is made, and whose best placement is improved by moving blocks."""
MOST_CLASSES = 8
"""Classes of each requirement, the best by themselves, that these two look at."""
MOST_ROUNDS = 6

_Chosen = tuple[tuple[int, int], ...]


def search(placements: Placements, choices: Sequence[ServerChoice]) -> None:
    """Score the placements worth looking at; first fit is always among them."""
    if sum(_size(placements.requirements, choice) for choice in choices) <= MOST_OF_ALL:
        for choice in choices:
            for counts in _all(placements.requirements, choice):
                placements.score(choice, counts)
        return
    good: dict[str, list[list[int]]] = {}
    for choice in choices:
        fit = first_fit(placements, choice)
        if fit is not None:
            placements.score(choice, fit)
            good[choice.server] = _good_classes(placements, choice, MOST_SINGLE // len(choices))
            _fill(placements, choice, good[choice.server])
    for choice, _ in _best_of_servers(placements)[:MOST_GREEDY]:
        _greedy(placements, choice, good[choice.server])
    for choice, counts in _best_of_servers(placements)[:MOST_IMPROVED]:
        _improve(placements, choice, good[choice.server], counts)


def _best_of_servers(placements: Placements) -> list[tuple[ServerChoice, Counts]]:
    """The best placement on each server, the best first."""
    best: dict[str, tuple[ServerChoice, Counts]] = {}
    for _, choice, counts in placements.ranked():
        best.setdefault(choice.server, (choice, counts))
    return list(best.values())


def first_fit(placements: Placements, choice: ServerChoice) -> Counts | None:
    """The first blocks in the order of the description that reach the server; None if they are too few."""
    order = {block.name: position for position, block in enumerate(placements.pool.free())}
    members = sorted(
        ((order[name], number) for number, same in enumerate(choice.classes) for name in same.blocks),
    )
    counts: list[_Chosen] = []
    for requirement in placements.requirements:
        fitting = [entry for entry in members if of_class(choice.classes[entry[1]], requirement)][: requirement.count]
        if len(fitting) < requirement.count:
            return None
        members = [entry for entry in members if entry not in fitting]
        counts.append(_chosen(Counter(number for _, number in fitting)))
    return tuple(counts)


def _chosen(counts: Counter[int]) -> _Chosen:
    return tuple(sorted((number, count) for number, count in counts.items() if count))


def _size(requirements: Iterable[PathRequirement], choice: ServerChoice) -> int:
    """How many placements there are on a server, those counted too that take a block for two requirements."""
    sizes = []
    for requirement in requirements:
        ways = [1] + [0] * requirement.count  # to take 0, 1, ... blocks from the classes so far
        for _, most in _limits(choice, requirement):
            ways = [sum(ways[max(0, taken - most) : taken + 1]) for taken in range(len(ways))]
        sizes.append(ways[-1])
    return prod(sizes)


def _all(requirements: Sequence[PathRequirement], choice: ServerChoice) -> Iterator[Counts]:
    return product(*(list(_vectors(_limits(choice, one), one.count)) for one in requirements))


def _limits(choice: ServerChoice, requirement: PathRequirement) -> list[tuple[int, int]]:
    return [(number, len(choice.classes[number].blocks)) for number in choice.options(requirement)]


def _vectors(limits: Sequence[tuple[int, int]], count: int) -> Iterator[_Chosen]:
    """Every way to take `count` blocks from classes with so many each."""
    if count == 0:
        yield ()
    elif limits:
        (number, most), rest = limits[0], limits[1:]
        room = sum(each for _, each in rest)
        for taken in range(min(most, count), max(0, count - room) - 1, -1):
            first = ((number, taken),) if taken else ()
            for others in _vectors(rest, count - taken):
                yield (*first, *others)


def _good_classes(placements: Placements, choice: ServerChoice, most: int) -> list[list[int]]:
    """The classes for each requirement, those first that are best for one block; of many only the nearest are tried."""
    nothing: Counts = tuple(() for _ in placements.requirements)
    ordered = []
    for r, requirement in enumerate(placements.requirements):
        near = sorted(choice.options(requirement), key=lambda n: (choice.loads[n].hops, -choice.loads[n].cap))
        tried = []
        for number in near[: max(MOST_CLASSES, most)]:
            score = placements.score(choice, _changed(nothing, r, add=number))
            tried.append((score.key if score else (), number))
        ordered.append([number for _, number in sorted(tried, key=lambda entry: entry[0])] + near[len(tried) :])
    return ordered


def _fill(placements: Placements, choice: ServerChoice, good: Sequence[Sequence[int]]) -> None:
    """Score the placements that fill the best classes, and those that spread over the first 2, 4, ... of them."""
    wide = max(len(classes) for classes in good)
    width = 1
    while width < 2 * wide:
        counts = tuple(
            _spread(choice, classes, requirement.count, width)
            for classes, requirement in zip(good, placements.requirements, strict=True)
        )
        placements.score(choice, counts)
        if width > max(requirement.count for requirement in placements.requirements):
            return
        width *= 2


def _spread(choice: ServerChoice, classes: Sequence[int], count: int, width: int) -> _Chosen:
    """So many blocks, one after the other from the first `width` classes, then from those that follow."""
    counts: Counter[int] = Counter()
    pending, rest = list(classes[:width]), list(classes[width:])
    while counts.total() < count and pending:
        for number in list(pending):
            if counts.total() == count:
                break
            counts[number] += 1
            if counts[number] == len(choice.classes[number].blocks):
                pending.remove(number)
                pending += rest[:1]
                del rest[:1]
    return _chosen(counts)


def _greedy(placements: Placements, choice: ServerChoice, good: Sequence[Sequence[int]]) -> None:
    """Add one block after the other, each where the placement so far is best."""
    counts: Counts = tuple(() for _ in placements.requirements)
    for r, requirement in enumerate(placements.requirements):
        for _ in range(requirement.count):
            longer = [_changed(counts, r, add=number) for number in _distinct(placements, choice, good[r], counts)]
            best = _best(placements, choice, longer)
            if best is None:
                return
            counts = best


def _improve(placements: Placements, choice: ServerChoice, good: Sequence[Sequence[int]], counts: Counts) -> None:
    """Move one block, or all of a class, to another class as long as that is better."""
    for _ in range(MOST_ROUNDS):
        nearby = [
            _changed(counts, r, add=target, remove=number, times=times)
            for r in range(len(counts))
            for number, count in counts[r]
            for target in _distinct(placements, choice, good[r], counts)
            if target != number
            for times in sorted({1, count})
        ]
        best = _best(placements, choice, [counts, *nearby])
        if best is None or best == counts:
            return
        counts = best


def _best(placements: Placements, choice: ServerChoice, candidates: Iterable[Counts]) -> Counts | None:
    scored = [(score.key, counts) for counts in candidates if (score := placements.score(choice, counts)) is not None]
    return min(scored, key=lambda entry: entry[0], default=(None, None))[1]


def _changed(counts: Counts, r: int, add: int, remove: int | None = None, times: int = 1) -> Counts:
    changed = Counter(dict(counts[r]))
    changed[add] += times
    if remove is not None:
        changed[remove] -= times
    return (*counts[:r], _chosen(changed), *counts[r + 1 :])


def _distinct(placements: Placements, choice: ServerChoice, good: Sequence[int], counts: Counts) -> list[int]:
    """The best classes, and those chosen already; of classes alike to the placement so far only the first.

    They are alike if their paths have equal capacities where nobody else is, and are the same where somebody is.
    """
    chosen = {number for same in counts for number, _ in same}
    rates = placements.rates
    used = {resource for number in chosen for resource, _ in rates.path(choice.loads[number])}
    seen = set()
    distinct: list[int] = []
    for number in good:
        load = choice.loads[number]
        path = tuple(
            (resource if resource in used or rates.is_busy(resource) else rates.capacity(resource), amount)
            for resource, amount in rates.path(load)
        )
        sign = (path, load.cap, load.hops, len(choice.classes[number].blocks))
        if number in chosen or (sign not in seen and len(distinct) < MOST_CLASSES):
            seen.add(sign)
            distinct.append(number)
    return distinct
