"""Offers for a request: servers and blocks with predicted rates and what others lose, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.errors import Contradiction, FormatError, LanewiseError, Unreachable
from lanewise.pool.candidates import Spaces, candidates, check_target
from lanewise.pool.model import CompositionRequest, NoOffer, Offer, PathRequirement, Pool
from lanewise.pool.prediction import predicted_offer
from lanewise.pool.rates import PoolRates
from lanewise.pool.refusal import of_rates, too_few
from lanewise.pool.rules import why_no_space, why_not, why_not_fitting
from lanewise.topology.model import Kind

MOST_OFFERS = 5
_GIVEN = (Kind.GPU, Kind.SSD, Kind.NIC)


def offers(
    pool: Pool, request: CompositionRequest, most: int = MOST_OFFERS, spaces: Spaces | None = None
) -> tuple[Offer, ...]:
    """At most so many offers that give everybody the requested rates, the best first.

    Ranked by what other compositions lose, then by the total rate, the slowest path, and links passed. `spaces` is
    what running servers have left, by server. NoOffer names the limit and the nearest offer; FormatError, Contradiction
    or UnknownName for a request that cannot be meant.
    """
    _check(request)
    if request.blocks:
        return _of_blocks(pool, request, most, spaces)
    usable = candidates(pool, request, spaces)
    placements = usable.placements(request.requirements)
    ranked = placements.ranked()
    if not ranked:
        raise too_few(usable, request)
    good = [entry for entry in ranked if entry[0].good]
    if not good:
        raise of_rates(usable, request, placements)
    best = {choice.server: (choice, counts) for _, choice, counts in reversed(good)}
    varied = [entry for entry in good if best[entry[1].server] == entry[1:]][:most]
    varied += [entry for entry in good if entry not in varied][: most - len(varied)]
    return tuple(usable.offer(placements, choice, counts) for _, choice, counts in sorted(varied, key=good.index))


def preview(
    pool: Pool,
    server: str,
    blocks: Sequence[str],
    requirements: Sequence[PathRequirement] = (),
    extends: str | None = None,
    spaces: Spaces | None = None,
) -> Offer:
    """What these blocks would get on a server, be it enough or not; with `extends`, added to that composition.

    Without blocks, what the composition gets that `extends` names.
    Unreachable, Contradiction or UnknownName, with the reason, for a block that cannot go there.
    """
    request = CompositionRequest(tuple(requirements), server, tuple(blocks), extends=extends)
    if blocks:
        check_target(pool, request)
    return _preview(pool, PoolRates(pool), server, request, spaces)


def _preview(pool: Pool, rates: PoolRates, server: str, request: CompositionRequest, spaces: Spaces | None) -> Offer:
    for name in request.blocks:
        reason = why_not(pool, name, server)
        if reason:
            error = Unreachable if pool.block(name).free else Contradiction
            raise error(reason, location=pool.system.device(pool.block(name).device).location)
    devices = [pool.block(name).device for name in request.blocks]
    full = why_no_space(pool.system, server, devices, None if spaces is None else spaces.get(server))
    if full:
        raise Unreachable(full, hint="name another server, or fewer blocks")
    return predicted_offer(pool, rates, server, request.blocks, request)


def _of_blocks(pool: Pool, request: CompositionRequest, most: int, spaces: Spaces | None) -> tuple[Offer, ...]:
    """The offers of the blocks that a request names, on the servers that it allows."""
    _check_blocks(pool, request)
    rates = PoolRates(pool)
    previews: list[Offer] = []
    refusals: list[LanewiseError] = []
    for server in check_target(pool, request):
        try:
            previews.append(_preview(pool, rates, server, request, spaces))
        except LanewiseError as error:
            refusals.append(error)
    previews.sort(key=_rank)
    good = [offer for offer in previews if offer.met]
    if good:
        return tuple(good[:most])
    if not previews:
        first = refusals[0]
        raise NoOffer(first.cause, location=first.location, hint=first.hint)
    raise of_rates(candidates(pool, request, spaces), request, None, previews)


def _rank(offer: Offer) -> tuple[float, ...]:
    slowest = min((rate.rate for rate in offer.rates), default=0.0)
    return round(offer.lost, -6), -round(offer.total, -6), -round(slowest, -6), offer.hops


def _check(request: CompositionRequest) -> None:
    hint = "ask for GPUs, drives (ssd) or network cards (nic), or name blocks"
    if not request.requirements and not request.blocks:
        raise FormatError("the request asks for nothing", hint=hint)
    for requirement in request.requirements:
        if requirement.kind not in _GIVEN:
            raise FormatError(f"a {requirement.kind} is nothing that a pool gives", hint=hint)
        if requirement.count < 1 or requirement.nics < 0:
            raise FormatError(f"{requirement.count} devices of kind {requirement.kind} cannot be requested", hint=hint)
        if requirement.rate is not None and not requirement.rate > 0:
            raise FormatError(
                f"a rate of {requirement.rate} B/s cannot be requested", hint="leave it out, or name one above zero"
            )


def _check_blocks(pool: Pool, request: CompositionRequest) -> None:
    if len(set(request.blocks)) < len(request.blocks):
        raise Contradiction("the request names a block twice")
    left = [pool.block(name) for name in request.blocks]
    for requirement in request.requirements:
        fitting = [block for block in left if not why_not_fitting(block, requirement)][: requirement.count]
        if len(fitting) < requirement.count:
            wrong = next((why_not_fitting(block, requirement) for block in left if block not in fitting), "")
            cause = f"{len(fitting)} of the blocks named are what {requirement.count} should be"
            raise Contradiction(f"{cause}: {wrong}" if wrong else cause, hint="name more blocks, or ask for fewer")
        left = [block for block in left if block not in fitting]
