"""One cause of a slow or fast row, or of a machine's fault, and the order of causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from lanewise.checking import changes
from lanewise.checking.changes import ModelChange
from lanewise.checking.verdict import PathResult


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that slows paths down, or may do so: `key` tells causes apart, `what` names it in a clause.

    `evidence` is where it was observed (empty: no direct evidence), `step` the command to type next, `change` how the
    model predicts with it (None: it cannot), `left_open` that the description does not settle it. A `fault` is reported
    even if no path suffers; an `inconclusive` cause only shows that something is wrong. `devices`: whose. Of one row,
    `predicted` is its value with that change (SI; None: the model cannot say), with its `interval` where that tells,
    and whether that `explains` the measured one.
    """

    key: tuple[str, ...]
    what: str
    step: str
    _: KW_ONLY
    evidence: str = ""
    change: ModelChange | None = None
    fault: bool = False
    devices: frozenset[str] = frozenset()
    inconclusive: bool = False
    predicted: float | None = None
    interval: tuple[float, float] | None = None
    explains: bool = False
    left_open: bool = False

    @property
    def rank(self) -> int:
        """0 (likeliest): evidence, and explains the loss; 1: evidence, no prediction; 2: explains it, no evidence,
        or the description leaves it open; 3: evidence, explains a part of the loss; 4: the rest; 5: what is only
        common on such a path."""
        if self.explains:
            return 0 if self.evidence else 2
        if not self.evidence:
            return 2 if self.left_open else 5 if self.inconclusive else 4
        return 1 if self.predicted is None and not self.inconclusive else 3

    def distance(self, result: PathResult) -> float:
        """How far the prediction with it lies from the measured value, relative to that; 1 where unknown.

        0 of what the description leaves open, as some link of another width explains any rate.
        """
        value = result.row.value
        if self.left_open:
            return 0.0
        return abs(self.predicted / value - 1) if self.predicted is not None and value else 1.0


def slow_link(
    device: str, gen: int | None, lanes: int | None, could: str, evidence: str, port: str = "",
    same_rate: Sequence[tuple[int, int]] = (),
) -> Cause:  # fmt: skip
    """A link that runs below what it `could`; without evidence it may do so, or at another link of the `same_rate`."""
    verb = "runs" if evidence else "may be running"
    port_text, could_text = f" below {port}" if port else "", f" ({could})" if could else ""
    what = f"{device}'s link {verb} at {speeds(same_rate or [(gen, lanes)])}{port_text}{could_text}"
    look = f"sudo lspci -vv -s {port} | grep Lnk" if port else "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'"
    step = f"reseat the card or its cable, try another slot, then look again under load: {look}"
    change = changes.link_speed(device, gen, lanes)
    return Cause(
        ("link", device), what, step, evidence=evidence, change=change, fault=True, devices=frozenset({device})
    )


def speed(gen: int | None, lanes: int | None) -> str:
    """A link's speed as people write it."""
    return f"Gen{gen or '?'} x{lanes or '?'}"


def speeds(links: Sequence[tuple[int | None, int | None]]) -> str:
    """Links of which one is meant: 'Gen3 x8, Gen2 x16 or Gen4 x4'."""
    *others, last = [speed(*link) for link in links]
    return f"{', '.join(others)} or {last}" if others else last
