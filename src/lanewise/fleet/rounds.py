"""Which pairs of nodes measure their network at the same time: rounds of matchings, so that no two share a NIC.

Up to MOST_ALL_PAIRS nodes every pair is measured once, by the circle method of round-robin tournaments: n - 1 rounds
for even n, n for odd (one node rests in each). Above, a stated number of these rounds is chosen at random. Then each
suspect is measured with a trusted partner: all suspects at once, and then halves of them, divided by each bit of their
numbers. A suspect that is slow in all of these rounds is slow by itself. One that is fine once others rest shares
something with them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeAlias

from lanewise.options.fleet import RANDOM_ROUNDS

MOST_ALL_PAIRS = 32
# More suspects than these are no single faults; the first so many are divided.
MOST_SUSPECTS = 64
# Rounds in which pairs that were slow at first are measured a second time.
MOST_AGAIN = 2

# Pairs of nodes that are measured at the same time; no node is in two of them.
Round: TypeAlias = tuple[tuple[str, str], ...]


def all_pairs(nodes: Sequence[str]) -> tuple[Round, ...]:
    """Every pair once, in n - 1 rounds for an even number of nodes and n for an odd one; none for fewer than two."""
    if len(nodes) < 2:
        return ()
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    half = len(seats) // 2
    rounds = []
    for _ in range(len(seats) - 1):
        pairs = zip(seats[:half], reversed(seats[half:]), strict=True)
        rounds.append(tuple((a, b) for a, b in pairs if a is not None and b is not None))
        seats = [seats[0], seats[-1], *seats[1:-1]]  # the first stays, the others move on by one
    return tuple(rounds)


def random_rounds(nodes: Sequence[str], count: int, seed: int) -> tuple[Round, ...]:
    """`count` rounds (all there are, where those are fewer) in which no pair comes twice, chosen by `seed`."""
    # Two rounds of the circle method share no pair, so neither do any that are chosen of them.
    chance = random.Random(seed)
    order = chance.sample(list(nodes), len(nodes))
    rounds = all_pairs(order)
    return tuple(chance.sample(rounds, min(count, len(rounds))))


def network_rounds(nodes: Sequence[str], count: int = RANDOM_ROUNDS, seed: int = 0) -> tuple[Round, ...]:
    """All pairs of up to MOST_ALL_PAIRS nodes, else `count` random rounds."""
    return all_pairs(nodes) if len(nodes) <= MOST_ALL_PAIRS else random_rounds(nodes, count, seed)


def bisection_rounds(suspects: Sequence[str], trusted: Sequence[str]) -> tuple[Round, ...]:
    """Rounds of each suspect with a trusted node: all at once, then for each bit of their numbers one half, the other.

    1 + 2 ceil(log2 n) rounds for n suspects, and any two are in different halves at least once. As many suspects take
    part as there are trusted nodes, MOST_SUSPECTS at most; a suspect has another partner in each round, as far as the
    trusted suffice.
    """
    chosen = suspects[: min(MOST_SUSPECTS, len(trusted))]
    if not chosen:
        return ()
    groups = [list(range(len(chosen)))]
    for bit in range((len(chosen) - 1).bit_length()):
        groups += [[i for i in groups[0] if (i >> bit & 1) == side] for side in (0, 1)]
    return tuple(
        tuple((chosen[i], trusted[(i + number) % len(trusted)]) for i in group) for number, group in enumerate(groups)
    )


def rounds_again(nodes: int) -> int:
    """How many rounds measure slow pairs again, at most; of two nodes nothing says that their pair is slow."""
    return MOST_AGAIN if nodes > 2 else 0


def most_rounds(nodes: int, count: int = RANDOM_ROUNDS) -> int:
    """How many rounds a survey of so many nodes takes at most, bisection included."""
    if nodes < 2:
        return 0
    if nodes <= MOST_ALL_PAIRS:
        return nodes - 1 + nodes % 2
    suspects = min(MOST_SUSPECTS, nodes // 2)
    return min(count, nodes - 1 + nodes % 2) + 1 + 2 * (suspects - 1).bit_length()
