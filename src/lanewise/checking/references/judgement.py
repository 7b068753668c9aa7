"""A row with the reference that decided on it, as a result; what to say of one that nothing decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise import units
from lanewise.checking.cause import speed
from lanewise.checking.expectation import expectation
from lanewise.checking.named.abilities import link_rate
from lanewise.checking.references.parts import Reference
from lanewise.checking.references.siblings import flows_of
from lanewise.checking.references.stated_limits import STATED_LIMIT
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.figure_words import BYTES_OF, OF_A_RANK_OR_ALL
from lanewise.results.observation import Observation

ASKED_FOR_NO_MORE = "iperf sends UDP at 1 Mb/s unless it is asked for more: measure with -b 0"
HOST_COPIES = ("host to device", "device to host")
# nccl-tests' average counts each size once, the shortest as much as the longest.
_OVER_SIZES = re.compile(r"\b(?:average|avg|mean)\b.{0,16}\b(?:all|every|each) .{0,10}sizes?\b", re.IGNORECASE)


def met_limit(references: Sequence[Reference], verdicts: Sequence[Verdict]) -> Reference | None:
    """The limit that somebody states of the path and that a row meets, where only its parts call the row slow."""
    slow = [each for each, verdict in zip(references, verdicts, strict=True) if verdict is Verdict.SLOW]
    met = [each for each, verdict in zip(references, verdicts, strict=True)
           if verdict is Verdict.OK and each.source == STATED_LIMIT]  # fmt: skip
    return met[0] if met and slow and all(each.basis == "parts" for each in slow) else None


def link_with_rate(row: Observation) -> str:
    """The link of 16 lanes whose typical rate a lone copy between host and GPU has; empty if none."""
    if row.path not in HOST_COPIES or row.metric != "goodput" or len(flows_of(row)) != 1 or row.value is None:
        return ""
    rates = {gen: link_rate(gen, 16, row.path == "host to device") for gen in (2, 3, 4, 5)}
    return next((speed(gen, 16) for gen, rate in rates.items() if 0.88 < row.value / rate < 1.12), "")


def by_reference(row: Observation, reference: Reference, verdict: Verdict) -> PathResult:
    """The result of a row by one reference, with that verdict."""
    tolerance = TOLERANCES[reference.basis]
    expected = expectation(
        row, basis=reference.basis, value=reference.nominal, limit=reference.limit, rests_on=(reference.source,)
    ).expected
    low = reference.slow_below if verdict is Verdict.SLOW else reference.fine_low
    return PathResult(row, expected, tolerance, verdict, low, reference.fine_high)


def compared(row: Observation, reference: Reference) -> str:
    """What share of a reference a row has, as text."""
    share = 100 * (row.value or 0.0) / reference.nominal
    return f"{share:.0f} % of {units.show(reference.nominal, row.display_unit)} ({reference.limit})"


def verdict_by(row: Observation, reference: Reference, older_host: str) -> Verdict:
    """What a reference says of a row: the parts of an older host may be what slows its own copies."""
    verdict = reference.verdict(row.value or 0.0)
    if verdict is Verdict.SLOW and row.how.get(BYTES_OF) == OF_A_RANK_OR_ALL:  # of a rank they are many times as many
        verdict = reference.verdict((row.value or 0.0) * row.settings.get("ranks", 1))
        verdict = verdict if verdict is Verdict.SLOW else Verdict.UNKNOWN
    if verdict is Verdict.SLOW and reference.basis in ("parts", "line") and _OVER_SIZES.search(row.scenario):
        verdict = Verdict.UNKNOWN
    may_be_fine = older_host and reference.own and reference.basis == "parts" and verdict is Verdict.SLOW
    return Verdict.UNKNOWN if may_be_fine else verdict


def between(row: Observation, own: Reference, older_host: str) -> PathResult:
    """A row that its own path's reference calls neither fine nor slow."""
    note = older_host or f"{compared(row, own)}: too little to call it fine, too much to call it slow"
    return replace(by_reference(row, own, Verdict.UNKNOWN), note=note)


def of_unasked(result: PathResult) -> PathResult:
    """A rate that its program sends unless it is asked for more: fine if a tool says that all of it arrived."""
    row = result.row
    arrived = row.how.get("protocol") == "UDP" and not float(row.how.get("lost") or 1)
    if arrived and not row.how.get("asked for"):
        rate = row.value or 0.0
        own = Reference("as posted", rate, rate, 0.0, None, "1 Mb/s of UDP, iperf's own choice", "iperf's manual")
        result = by_reference(row, own, Verdict.OK)
    return replace(result, note=ASKED_FOR_NO_MORE)
