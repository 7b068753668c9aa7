"""How long an all_reduce of GPUs without NVLinks lasts at most within one host, by its bytes and its steps."""

from __future__ import annotations

import re

from lanewise.checking.expectation import expectation
from lanewise.checking.named.abilities import GpuAbility
from lanewise.checking.references.parts import LEAST_OF_CARDS, START, is_card
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict

_ALL_REDUCE, _LEAST = re.compile(r"\ball_?reduce", re.IGNORECASE), 10**6


def slower_than_any_ring(result: PathResult, part: GpuAbility | None) -> PathResult:
    """The result of the typed time of an all_reduce, slow if no healthy ring takes so long, staged as it may be.

    2 (n - 1) steps of n ranks each start a copy, and move 2 (n - 1) / n of the bytes (nccl-tests, doc/PERFORMANCE.md).
    """
    row, ranks = result.row, result.row.settings.get("ranks", 0)
    size, hosts = row.settings.get("bytes", 0), row.settings.get("hosts", 1)
    known = part is not None and is_card(part)  # a bridge of NVLinks only makes it faster
    typed = row.how.get("tool") == "typed in" and row.metric == "time" and _ALL_REDUCE.search(row.scenario)
    if result.verdict is not Verdict.UNKNOWN or not (known and typed and row.value) or hosts > 1:
        return result
    if part is None or size < _LEAST or not 2 <= ranks <= row.flow.count("->"):  # more ranks are on other hosts
        return result
    moved, steps = 2 * (ranks - 1) / ranks * size, 2 * (ranks - 1) * START
    rate = part.peer_rate()
    most = moved / (LEAST_OF_CARDS * rate) + steps
    if row.value <= most:
        return result
    limit = f"ring over Gen{part.gen} x{part.lanes} of {part.title}"
    expected = expectation(row, basis="parts", value=moved / rate + steps, limit=limit).expected
    return PathResult(row, expected, TOLERANCES["parts"], Verdict.SLOW, None, most)
