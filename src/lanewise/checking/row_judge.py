"""The verdict on each row of a check: by the model, an earlier run, or what is known of its parts and other rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from lanewise.checking.expectation import covers, nothing_described
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.notes import other_gpus
from lanewise.checking.references.judged import COLLECTIVE, References
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import is_bridged
from lanewise.checking.verdict import PathResult, Verdict, judge
from lanewise.results.observation import Observation
from lanewise.topology.model import Kind

_CPU = re.compile(r"\bcpu\d+\b")


@dataclass(frozen=True)
class RowJudge:
    """What rows are judged by: the model of the machine, if it is described, and `references` where that says nothing.

    `device_of_word` has the device that a word in the results means; `tolerance` (0..1) takes the place of every
    tolerance of the model.
    """

    model: ExpectationModel | None
    references: References
    device_of_word: Mapping[str, str] = field(default_factory=dict)
    tolerance: float | None = None

    def results(self, rows: Iterable[Observation]) -> tuple[list[PathResult], list[PathResult]]:
        """The results of rows, and apart from them those that nothing at all is expected of, which leave nothing open.

        Unknown is a row whose GPU is another one than described.
        """
        judged: list[PathResult] = []
        aside: list[PathResult] = []
        for row in rows:
            result = self._result(row)
            if self._is_aside(result):
                aside.append(result)
            else:
                judged.append(self._of_this_machine(result))
        return judged, aside

    def _result(self, row: Observation) -> PathResult:
        """The result of a row by the model, else by its references."""
        # The model has no rate of pageable memory: a core copies it into the driver's buffer.
        # A matrix shows no bridge that does not work.
        by_rows = row.how.get("host memory") == "pageable" or is_bridged(row, self.references.posted)
        predicted = self.model.expect(row) if self.model is not None else nothing_described(row)
        expected = nothing_described(row) if by_rows or of_plain_text(row) else predicted
        # Where the model does not tell of a described GPU, what its part can do does.
        references = self.with_titles if by_rows or predicted.ceiling else self.references
        return references.of_its_gpu(row).judge(judge(row, expected, relative_tolerance=self.tolerance))

    def _is_aside(self, result: PathResult) -> bool:
        if result.verdict not in (Verdict.UNKNOWN, Verdict.FAILED) or is_of_bounds(result.row):
            return False
        return not covers(result.row) or _no_latency(result.row, self.model)

    @cached_property
    def with_titles(self) -> References:
        """The references with the names of the described GPUs."""
        system = self.references.system
        if system is None:
            return self.references
        titles = {name: part.title for name in system.of_kind(Kind.GPU) if (part := system.part(name))}
        return self.references.with_posted(self.references.posted.completed(titles))

    @cached_property
    def _other_gpus(self) -> dict[str, str]:
        known = self.references
        return other_gpus(known.posted, known.system, known.catalog, self.device_of_word)

    def _of_this_machine(self, result: PathResult) -> PathResult:
        """The result of a row of this machine; of one of a GPU that is another one than described unknown, and why."""
        others = self._other_gpus
        ends = re.findall(r"[^\s,>-]+", result.row.flow) if "->" in result.row.flow else list(others)
        if result.verdict is Verdict.FAILED or not any(name in ends for name in others):
            return result
        # One text for all of them makes one finding.
        note = others[next(iter(others))]
        return replace(result, verdict=Verdict.UNKNOWN, tolerance=None, fine_low=None, fine_high=None, note=note)


def with_described_ends(rows: Iterable[Observation], model: ExpectationModel | None) -> tuple[Observation, ...]:
    """The rows, their words of ends as the description means them.

    Without one, `host0` for cpu0 where no other CPU is named: nobody says which memory of the host it is.
    """
    rows = tuple(rows)
    if model is not None:
        return tuple(_by_the_system(row, model) for row in rows)
    if {cpu for row in rows for cpu in _CPU.findall(row.flow)} != {"cpu0"}:
        return rows
    return tuple(map(_of_host, rows))


def _of_host(row: Observation) -> Observation:
    how = {key: _CPU.sub("host0", value) for key, value in row.how.items()}
    return replace(row, flow=_CPU.sub("host0", row.flow), how=how)


def _by_the_system(row: Observation, model: ExpectationModel) -> Observation:
    """A row that was typed in with the kind of its path: the description says what its words are."""
    if row.how.get("tool") != "typed in" or row.path in ("network", "storage"):
        return row
    cards = model.route_devices(row) & set(model.system.of_kind(Kind.NIC))
    return replace(row, path="network") if cards else row


def is_of_bounds(row: Observation) -> bool:
    """Whether a row is a collective, which bounds alone judge where no machine is described."""
    return row.metric == COLLECTIVE and row.value is not None


def _no_latency(row: Observation, model: ExpectationModel | None) -> bool:
    """Whether a latency is one that no figure tells: nobody described the machine, or the GPUs have none."""
    if row.metric != "latency" or row.value is None:
        return False
    return model is None or bool(model.route_devices(row))
