"""What a reader gives: results of another tool as observations, who can reach whom, what the text leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lanewise import units
from lanewise.errors import FormatError, Location
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import PostedFacts, join

GIB = 2.0**30
MIB = 2.0**20
MAX_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class ImportedResults:
    """Results read from one text or several: `tool` with its version, measured rows, `peers` and notes on the values.

    `peers[("gpu0", "gpu1")]` is whether gpu0 can access the memory of gpu1; pairs that no text mentions are absent.
    `own`: all of them are runs or samples of Lanewise, not results of another tool. `posted`: what else the text says.
    """

    tool: str
    observations: tuple[Observation, ...]
    peers: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    own: bool = False
    posted: PostedFacts = field(default_factory=PostedFacts)

    @property
    def no_peers(self) -> tuple[tuple[str, str], ...]:
        """The pairs of GPUs of which the first cannot access the second's memory."""
        return tuple(pair for pair, reached in self.peers.items() if not reached)


def merge(results: Sequence[ImportedResults]) -> ImportedResults:
    """Several results as one; where two differ about a pair of peers, the later says."""
    return ImportedResults(
        ", ".join(dict.fromkeys(result.tool for result in results if result.tool)),
        tuple(row for result in results for row in result.observations),
        {pair: reached for result in results for pair, reached in result.peers.items()},
        tuple(dict.fromkeys(note for result in results for note in result.notes)),
        own=all(result.own for result in results),
        posted=join(result.posted for result in results),
    )


def check_rows(rows: Sequence[Observation], location: Location) -> None:
    """FormatError for more rows than the outputs of a tool have."""
    if len(rows) > MAX_ROWS:
        cause = f"more than {MAX_ROWS:,} values"
        raise FormatError(cause, location=location, hint="give the output of one run of the tool in each file")


@dataclass(frozen=True, slots=True)
class ToolValue:
    """What a number of a tool is: its flow, all `flows` that ran with it, metric, unit and path."""

    flow: str
    flows: str
    metric: str = "goodput"
    unit: str = "GB/s"
    path: str = ""
    note: str = ""


def observation(
    tool: str, scenario: str, kind: ToolValue, value: float | None, how: Mapping[str, str], settings: Mapping[str, int]
) -> Observation:
    """The observation of one such number, `value` in the tool's unit."""
    words = {"tool": tool, **({"flows": kind.flows} if kind.flows else {}), **{k: v for k, v in how.items() if v}}
    note = kind.note if value is not None else kind.note or "the tool gives no value"
    return Observation(
        scenario, kind.flow, kind.metric, None if value is None else units.to_si(value, kind.unit), kind.unit,
        Source.MEASURED, settings=dict(settings), path=kind.path, how=words, note=note,
    )  # fmt: skip
