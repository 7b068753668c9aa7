"""A machine's check-up: every row judged, and one finding for each thing that is wrong, with all it explains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanewise.catalog import Catalog, builtin
from lanewise.checking.causes.machine import MachineState, machine_causes, non_peers_by_design, with_intended_policies
from lanewise.checking.collective_rows import MISFIT
from lanewise.checking.earlier_runs import expect_earlier
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.findings import CauseSearch, Finding, findings_of, incomplete_results, unjudged_findings
from lanewise.checking.lone_dips import without_lone_dips
from lanewise.checking.notes import (
    OTHER_GPU,
    downgraded_notes,
    idle_link_notes,
    library_notes,
    misfit_notes,
    pageable_notes,
    short_block_notes,
    small_block_notes,
    unused_statement_notes,
    without_nvlink_notes,
)
from lanewise.checking.references.gpu_memory import with_copies_within
from lanewise.checking.references.judged import References
from lanewise.checking.references.judgement import ASKED_FOR_NO_MORE
from lanewise.checking.references.stated_limits import NO_MEASUREMENT
from lanewise.checking.row_judge import RowJudge, is_of_bounds, with_described_ends
from lanewise.checking.symptom import ResultTable
from lanewise.checking.unjudged import LookFirst, aside_notes, look_first
from lanewise.checking.verdict import PathResult, Verdict, judge
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import System

EXIT_FINE, EXIT_WRONG, EXIT_OPEN = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Checkup:
    """The judged rows, the worst first, the findings, notes on what could not be looked at, and rows `left_aside`.

    The model predicts nothing of those; they have no verdict and no part in the exit code. `described`: whether a
    description, dumps or earlier runs say what the machine is. `look_first`: what is commonest on such paths where no
    row could be compared with anything; it says nothing of these rows.
    """

    results: tuple[PathResult, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    left_aside: tuple[Observation, ...] = ()
    described: bool = True
    look_first: tuple[LookFirst, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many rows have that verdict."""
        return sum(result.verdict is verdict for result in self.results)

    @property
    def exit_1_findings(self) -> int:
        """How many findings make the exit code 1."""
        return sum(finding.kind in ("fault", Verdict.SLOW) for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """1 for a slow path or a fault, else 3 where a row is unknown, failed or too fast, or there is none, else 0."""
        if self.exit_1_findings:
            return EXIT_WRONG
        fine = any(result.verdict is Verdict.OK for result in self.results)
        # Collectives are never ok: where other rows are, they leave nothing open.
        is_open = any(result.verdict is not Verdict.OK for result in self.results if not is_of_bounds(result.row))
        is_open = is_open or any(
            finding.kind in (Verdict.UNKNOWN, Verdict.FAST) and not (finding.results and all(
                is_of_bounds(result.row) and result.verdict is Verdict.UNKNOWN for result in finding.results
            )) for finding in self.findings
        )  # fmt: skip
        return EXIT_OPEN if is_open or not fine else EXIT_FINE


def check(
    rows: Iterable[Observation],
    machine: MachineState | None = None,
    target: System | None = None,
    earlier: Sequence[tuple[str, Iterable[Observation]]] = (),
    tolerance: float | None = None,
    device_of_word: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    posted: PostedFacts | None = None,
    catalog: Catalog | None = None,
) -> Checkup:
    """Judge measured rows and say why they are not what they should be.

    Expected is what the model predicts on `target`, else on the machine as found with the policies that it should have;
    or what `earlier` runs measured, by the names of their files. The model tells causes apart in any case. `tolerance`
    (0..1) takes the place of every tolerance, `device_of_word` has the device that a word in the results means. Rows
    of which the model says nothing are compared with what the parts of `catalog` named in `posted` can do, and with
    each other.
    """
    machine, posted, catalog = machine or MachineState(), posted or PostedFacts(), catalog or builtin()
    model = _model(machine, target, device_of_word or {})
    system = model.system if model is not None else None
    rows = with_described_ends(with_copies_within(rows, posted, catalog), model)
    aside: list[PathResult] = []
    row_judge = RowJudge(model, References(rows, posted, catalog, system), device_of_word or {}, tolerance)
    if earlier:
        expect = expect_earlier(earlier)
        judged = [judge(row, expect(row), relative_tolerance=tolerance) for row in rows]
    else:
        judged, aside = row_judge.results(rows)
    undisturbed = without_lone_dips([*judged, *aside])[: len(judged)]
    results = ResultTable(sorted(undisturbed, key=_worst_first))
    known = machine_causes(machine, target)
    search = CauseSearch(results, machine.conditions, known, model, posted, row_judge.with_titles, tuple(aside))
    findings = (*findings_of(search), *unjudged_findings(results, posted), *incomplete_results(rows, system))
    rows_aside = tuple(result.row for result in aside)
    is_known = bool(earlier) or any(finding.kind == "fault" for finding in findings)
    return Checkup(
        tuple(results), findings, (*notes, *_notes(search, catalog, of_runs=bool(earlier))), left_aside=rows_aside,
        described=bool(earlier) or system is not None or not rows,
        look_first=look_first([] if is_known else _rows_without_comparison(results, rows_aside), posted),
    )  # fmt: skip


def _model(
    machine: MachineState, target: System | None, device_of_word: Mapping[str, str]
) -> ExpectationModel | None:  # fmt: skip
    """The model of the machine as it should be; None where nothing describes it."""
    if target is not None:
        return ExpectationModel(target, device_of_word)
    if machine.system is None:
        return None
    return ExpectationModel(with_intended_policies(machine.system), device_of_word, non_peers_by_design(machine))


def _notes(search: CauseSearch, catalog: Catalog, *, of_runs: bool) -> tuple[str, ...]:
    """What is said besides the findings: what was left out, and what fine rows do not show."""
    results, posted, model = search.results, search.posted, search.model
    rows_aside = [result.row for result in search.left_aside]
    unasked = [each.note for each in results if each.note == ASKED_FOR_NO_MORE and each.verdict is Verdict.OK]
    notes = [
        *aside_notes(rows_aside, alone=not results),
        *unused_statement_notes(posted, model.system if model is not None else None, catalog),
        *pageable_notes(results), *without_nvlink_notes(results), *small_block_notes(results),
        *short_block_notes(rows_aside), *dict.fromkeys(unasked),
        *idle_link_notes(search.conditions, results), *downgraded_notes(posted, results),
    ]  # fmt: skip
    if model is not None:
        notes += misfit_notes(results, model.system, model.device)
        notes += library_notes(results, model.system) if not of_runs else ()
    return tuple(notes)


def _worst_first(result: PathResult) -> tuple[int, float]:
    """The worst first: slow, fast, failed, unknown, fine; the farthest from its expectation first."""
    order = list(Verdict).index(result.verdict)
    ratio = result.ratio or 1.0
    return (order, -max(ratio, 1 / ratio) if result.verdict in (Verdict.SLOW, Verdict.FAST) else 0.0)


def _rows_without_comparison(results: Sequence[PathResult], aside: Sequence[Observation]) -> list[Observation]:
    """The measured rows of this machine where none could be compared with anything; else none."""
    open_notes = (OTHER_GPU, MISFIT, NO_MEASUREMENT)
    unknown = [each for each in results if each.verdict is Verdict.UNKNOWN and not each.note.startswith(open_notes)]
    compared = any(each.verdict in (Verdict.OK, Verdict.SLOW, Verdict.FAST) for each in results)
    return [] if compared else [*(each.row for each in unknown), *aside]
