"""Why there is no offer: the path that is too narrow or the blocks that are missing, and the nearest offers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from lanewise.errors import LanewiseError
from lanewise.pool.candidates import Candidates, available, candidates
from lanewise.pool.loads import fits
from lanewise.pool.model import CompositionRequest, NoOffer, Offer, PathRate, PathRequirement
from lanewise.pool.operations import why_not_free
from lanewise.pool.placement import Placements, ServerChoice, of_class
from lanewise.topology.model import Kind
from lanewise.units import show

NOUNS = {Kind.GPU: "GPU", Kind.SSD: "drive", Kind.NIC: "network card"}
STEP = 1e8  # a lowered rate is a multiple of it, in B/s


def of_rates(
    usable: Candidates, request: CompositionRequest, placements: Placements | None, previews: Sequence[Offer] = ()
) -> NoOffer:
    """The error where there are enough blocks, but somebody would get less than what was requested.

    `previews` are offers of the blocks that a request names; without them, `placements` are what was tried.
    """
    if placements is None:
        closest = min(previews, key=lambda offer: (_shortfall(offer), offer.lost))
        lowered = _lowered(closest)
    else:
        ranked = placements.ranked()
        closest = usable.offer(placements, *min(ranked, key=lambda entry: entry[0].shortfall)[1:])
        lowered = _lowered(usable.offer(placements, *ranked[0][1:]))
    missed = [rate for rate in closest.rates if not rate.met]
    worst = min(missed, key=lambda rate: rate.rate / (rate.required or math.inf), default=None)
    alternatives = tuple(_alternatives(usable, request, worst, lowered))
    hint = _hint(alternatives)
    if worst is None:
        loss = next(loss for loss in closest.losses if loss.breaks)
        cause = (
            f"with {_noun(len(closest.blocks), 'block')} more on {closest.server}, {loss.device} of {loss.composition} "
            f"would get {_gb(loss.after)} of the {_gb(loss.required)} that it requested"
        )
        return NoOffer(cause, rate=loss.after, alternatives=alternatives, hint=hint)
    count = sum(rate.required == worst.required and rate.kind is worst.kind for rate in closest.rates)
    cause = (
        f"{_noun(count, NOUNS[worst.kind])} on {closest.server} would get {_gb(worst.rate)}{' each' * (count > 1)}, "
        f"{_gb(worst.required)} requested; the limit is {worst.limit}"
    )
    return NoOffer(cause, limit=worst.limit, rate=worst.rate, alternatives=alternatives, hint=hint)


def too_few(usable: Candidates, request: CompositionRequest) -> NoOffer:
    """The error where no server that has space reaches enough free blocks."""
    if not usable.choices:
        reason = next(iter(usable.full.values()))
        return NoOffer(reason, hint="ask for fewer devices, or name another server")
    most = {one: max(available(choice, one) for choice in usable.choices) for one in request.requirements}
    requirement = next((one for one in request.requirements if most[one] < one.count), None)
    if requirement is None:
        cause = f"no server can be given {' and '.join(_requested(one) for one in request.requirements)} together"
        return NoOffer(cause, hint="ask for fewer of one kind")
    of_kind = {block.part or "?" for block in usable.pool.blocks.values() if block.kind is requirement.kind}
    if requirement.part is not None and requirement.part not in of_kind:
        noun = NOUNS[requirement.kind]
        hint = f"{noun}s of the pool: {', '.join(sorted(of_kind))}" if of_kind else ""
        return NoOffer(f"the pool has no {requirement.part} {noun}", hint=hint)
    choice = max(usable.choices, key=lambda each: available(each, requirement))
    cause = f"{choice.server} can be given {most[requirement]} of {_requested(requirement)} requested"
    reasons = "; ".join(_reasons(usable, choice, requirement))
    fewer = _fewer(usable, requirement, most[requirement])
    alternatives = tuple(offer for offer in (_elsewhere(usable, request), fewer) if offer is not None)
    return NoOffer(f"{cause}: {reasons}" if reasons else cause, alternatives=alternatives, hint=_hint(alternatives))


def _alternatives(
    usable: Candidates, request: CompositionRequest, worst: PathRate | None, lowered: Offer | None
) -> Iterator[Offer]:
    """Offers that can be had: on another server, with fewer devices, with a lower rate."""
    elsewhere = _elsewhere(usable, request)
    if elsewhere is not None:
        yield elsewhere
    narrow = [one for one in request.requirements if worst and (one.kind, one.rate) == (worst.kind, worst.required)]
    requirement = next(iter([*narrow, *request.requirements]), None)
    fewer = None
    if requirement is not None and not request.blocks:
        fits_about = int(requirement.count * worst.rate / worst.required) if worst and worst.required else 1
        fewer = _fewer(usable, requirement, requirement.count - 1, fits_about)
    if fewer is not None:
        yield fewer
    if lowered is not None:
        yield lowered


def _elsewhere(usable: Candidates, request: CompositionRequest) -> Offer | None:
    """The best offer on any server, where the request names one."""
    if request.server is None or request.extends is not None or not request.requirements:
        return None
    with suppress(LanewiseError):
        anywhere = candidates(usable.pool, replace(request, server=None, blocks=()), usable.spaces)
        return anywhere.best(request.requirements)
    return None


def _fewer(usable: Candidates, requirement: PathRequirement, most: int, first: int = 1) -> Offer | None:
    """The offer with the most devices, up to `most` of one requirement, that can be had; `first` are tried first."""
    least, best, count = 1, None, min(max(1, first), most)
    while least <= most:
        fewer = replace(requirement, count=count, nics=min(requirement.nics, count))
        offer = usable.best(tuple(fewer if one is requirement else one for one in usable.request.requirements))
        if offer is None:
            most = count - 1
        else:
            best, least = offer, count + 1
        # After the first guess the next one up, which mostly is too many, then halves.
        count = least if count == first and offer is not None else (least + most + 1) // 2
    return best


def _lowered(offer: Offer) -> Offer | None:
    """The offer with the requested rates lowered to what its paths give; None if somebody lost the requested rates."""
    rates: dict[PathRequirement, float | None] = {}
    for one in offer.requirements:
        given = [path.rate for path in offer.rates if (path.kind, path.required) == (one.kind, one.rate)]
        floor = math.floor(min(given, default=0.0) / STEP) * STEP
        rates[one] = one.rate if one.rate is None else min(one.rate, floor)
        if rates[one] == 0.0:
            return None
    lower = {(one.kind, one.rate): rate for one, rate in rates.items()}
    paths = [replace(path, required=lower.get((path.kind, path.required), path.required)) for path in offer.rates]
    requirements = tuple(replace(one, rate=rates[one]) for one in offer.requirements)
    lowered = replace(offer, rates=tuple(paths), requirements=requirements)
    return lowered if lowered.met else None


def _shortfall(offer: Offer) -> float:
    return max((1 - path.rate / path.required for path in offer.rates if path.required and not path.met), default=0.0)


def _reasons(usable: Candidates, choice: ServerChoice, requirement: PathRequirement) -> Iterator[str]:
    """Why the other blocks of a requirement cannot be given, those of one reason counted together."""
    fitting = [block for block in usable.pool.blocks.values() if fits(block, requirement)]
    states = Counter(why_not_free(block) for block in fitting)
    for reason, number in states.most_common():
        if reason:
            yield f"{number} {'is' if number == 1 else 'are'} {reason}"
    for members, reason in choice.refusals.items():
        if of_class(members, requirement):
            number = len(members.blocks)
            yield f"{number} {'is' if number == 1 else 'are'} out of reach, {reason}"


def _hint(alternatives: Sequence[Offer]) -> str:
    return "; or ".join(f"{'nearest: ' * (not n)}{_words(offer)}" for n, offer in enumerate(alternatives))


def _words(offer: Offer) -> str:
    requested = " and ".join(_requested(one) for one in offer.requirements)
    return f"{requested or _noun(len(offer.blocks), 'block')} on {offer.server}"


def _requested(one: PathRequirement) -> str:
    rate = "" if one.rate is None else f" at {_gb(one.rate)}{' each' * (one.count > 1)}"
    part = "" if one.part is None else f"{one.part} "
    return f"{one.count} {part}{NOUNS[one.kind]}{'s' * (one.count != 1)}{rate}"


def _noun(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _gb(rate: float | None) -> str:
    return show(rate, "GB/s")
