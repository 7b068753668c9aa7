"""Which published services a mechanism is chosen on, and which it is scored on.

Submitters other than NVIDIA, sorted by name without case, are taken in turn: the first, third, ... are learned from,
the second, fourth, ... and NVIDIA are scored. One submitter's machines are of one kind in every round, so that rounds
would not part them. The rule was written down on 2026-11-27 before any row was looked at by half; that 118 of 171 p99s
were within 25 %, and which missed, was known (runs/2026-11-26-service-p99-misses.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.evidence.services import PublishedService

OWN = "NVIDIA"


def submitter(service: PublishedService) -> str:
    """Who submitted a service: systems without a submitter are NVIDIA's."""
    return service.system.split("/")[0] if "/" in service.system else OWN


def learned_submitters(services: Iterable[PublishedService]) -> tuple[str, ...]:
    """The submitters whose services may be learned from."""
    others = sorted({submitter(each) for each in services} - {OWN}, key=str.casefold)
    return tuple(others[::2])
