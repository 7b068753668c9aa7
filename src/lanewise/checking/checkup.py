"""A machine's check-up: every row judged, and one finding for each thing that is wrong, with all it explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lanewise.catalog import Catalog, builtin
from lanewise.checking.cause import Cause
from lanewise.checking.causes.collectives import CollectiveChanges, next_steps
from lanewise.checking.causes.contention import OTHERS
from lanewise.checking.causes.machine import MachineState, machine_causes, non_peers_by_design, with_intended_policies
from lanewise.checking.causes.modelled import causes
from lanewise.checking.causes.modelled_symptom import Symptom
from lanewise.checking.causes.nvlink_steps import lost_links
from lanewise.checking.causes.posted import posted_faults, stated_causes
from lanewise.checking.causes.rows import row_causes
from lanewise.checking.causes.units import mistaken_unit
from lanewise.checking.collective_rows import MISFIT
from lanewise.checking.expectation import (
    Expect,
    ExpectationModel,
    covers,
    expect_earlier,
    nothing_described,
)
from lanewise.checking.finding_order import Diagnosis, farthest_first, grouped, likeliest
from lanewise.checking.lone_dips import without_lone_dips
from lanewise.checking.notes import (
    OTHER_GPU,
    downgraded_notes,
    idle_link_notes,
    library_notes,
    misfit_notes,
    other_gpus,
    pageable_notes,
    short_block_notes,
    small_block_notes,
    unused_statement_notes,
    without_nvlink_notes,
)
from lanewise.checking.references.gpu_memory import GPU_MEMORY, with_copies_within
from lanewise.checking.references.judged import ASKED_FOR_NO_MORE, COLLECTIVE, References
from lanewise.checking.references.side_by_side import side_by_side
from lanewise.checking.references.stated_limits import NO_MEASUREMENT
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import ResultTable, RowSymptom, is_bridged
from lanewise.checking.unjudged import LookFirst, aside_notes, look_first, unjudged
from lanewise.checking.verdict import PathResult, Verdict, judge
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import Kind, System

EXIT_FINE, EXIT_WRONG, EXIT_OPEN = 0, 1, 3
MOST_CAUSES = 3
_FLOW = re.compile(r"(?<![^\s,])[^\s,]+->[^\s,]+")
_CPU = re.compile(r"\bcpu\d+\b")
# What measures a kind of path again; all others are the GPUs'.
_AGAIN = {"host memory": "host", "storage": "storage FILE", "network": "network HOST"}
# These measure every GPU that they see.
_EVERY_GPU = ("nvbandwidth", "p2pBandwidthLatencyTest", "rocm_bandwidth_test", "busGrind", "dcgmi")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not fine: `kind` is fault (known from the captures alone) or the verdict of its `results`.

    The first of `causes` is the likeliest, as the model judges it for the first row; `step` is the command to type.
    """

    kind: str
    title: str
    results: tuple[PathResult, ...]
    causes: tuple[Cause, ...]
    step: str


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
        is_open = any(result.verdict is not Verdict.OK for result in self.results if not _of_bounds(result.row))
        is_open = is_open or any(
            finding.kind in (Verdict.UNKNOWN, Verdict.FAST) and not (finding.results and all(
                _of_bounds(result.row) and result.verdict is Verdict.UNKNOWN for result in finding.results
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
    machine, posted = machine or MachineState(), posted or PostedFacts()
    rows = tuple(with_copies_within(rows, posted, catalog or builtin()))
    system = target or (with_intended_policies(machine.system) if machine.system is not None else None)
    by_design = non_peers_by_design(machine) if target is None else frozenset()
    model = ExpectationModel(system, device_of_word or {}, by_design) if system is not None else None
    left_aside: list[PathResult] = []
    expect: Expect = model.expect if model is not None else nothing_described
    results = []
    rows = tuple(_by_the_system(row, model) for row in rows) if model is not None else _of_one_cpu(rows)
    others = other_gpus(posted, system, catalog or builtin(), device_of_word or {})
    titles = {name: part.title for name in system.of_kind(Kind.GPU) if (part := system.part(name))} if system else {}
    references = References(rows, posted, catalog or builtin(), system)
    with_titles = references.with_posted(posted.completed(titles)) if titles else references
    if earlier:
        expect = expect_earlier(earlier)
    for row in rows:
        # The model has no rate of pageable memory: a core copies it into the driver's buffer.
        # A matrix shows no bridge that does not work.
        by_rows = row.how.get("host memory") == "pageable" or is_bridged(row, posted)
        expectation = nothing_described if (by_rows or of_plain_text(row)) and not earlier else expect
        result = judge(row, expectation(row), relative_tolerance=tolerance)
        if not earlier:
            # Where the model does not tell of a described GPU, what its part can do does.
            by_parts = by_rows or (model is not None and bool(model.expect(row).ceiling))
            result = (with_titles if by_parts else references).judge(result)
            open_row = result.verdict in (Verdict.UNKNOWN, Verdict.FAILED)
            if open_row and not _of_bounds(row) and (not covers(row) or _no_latency(row, model)):
                left_aside.append(result)
                continue
        results.append(_of_another_machine(result, others) if not earlier else result)
    results = sorted(without_lone_dips(results), key=_badness)
    known = machine_causes(machine, target)
    knowledge = Knowledge(
        ResultTable(results), machine.conditions, known, model, posted, with_titles, tuple(left_aside)
    )
    findings = _findings(knowledge)
    findings += _unjudged_findings(results, posted)
    findings += incomplete_results(rows, system)
    rows_aside = tuple(result.row for result in left_aside)
    parts = catalog or builtin()
    notes = (*notes, *aside_notes(rows_aside, alone=not results),
             *unused_statement_notes(posted, system, parts))  # fmt: skip
    notes = (*notes, *pageable_notes(results), *without_nvlink_notes(results), *small_block_notes(results),
             *short_block_notes(rows_aside),
             *dict.fromkeys(each.note for each in results if each.note == ASKED_FOR_NO_MORE
                            and each.verdict is Verdict.OK))  # fmt: skip
    notes = (*notes, *idle_link_notes(machine.conditions, results), *downgraded_notes(posted, results))
    if model is not None:
        notes = (*notes, *misfit_notes(results, model.system, model.device))
        notes = (*notes, *(library_notes(results, model.system) if not earlier else ()))
    described = bool(earlier) or system is not None or not rows
    is_fault = any(finding.kind == "fault" for finding in findings)
    open_rows = [] if is_fault or earlier else _of_nobody_knows(results, rows_aside)
    return Checkup(
        tuple(results), tuple(findings), notes, left_aside=rows_aside, described=described,
        look_first=look_first(open_rows, posted),
    )  # fmt: skip


@dataclass(frozen=True)
class Knowledge:
    """What causes are looked for in: the judged rows, captures, the model, what was posted, rows left aside."""

    results: ResultTable
    conditions: MachineConditions
    of_machine: tuple[Cause, ...]
    model: ExpectationModel | None
    posted: PostedFacts
    references: References
    left_aside: tuple[PathResult, ...] = ()

    @cached_property
    def _collectives(self) -> CollectiveChanges | None:
        """What may be wrong with the system's collectives; None where no system is described."""
        if self.model is None:
            return None
        return CollectiveChanges(self.model.system, self.model.device, self.model.collectives)

    @cached_property
    def _with_rows_aside(self) -> ResultTable:
        """The judged rows, and those that nothing judges but that may tell what a slow one is compared with."""
        aside = (
            each for each in self.left_aside
            if each.row.metric == "latency"
            or each.row.path in ("storage", "network", GPU_MEMORY) or side_by_side(each.row)
            or of_plain_text(each.row)
        )  # fmt: skip
        return ResultTable((*self.results, *aside))

    def causes(self, result: PathResult) -> tuple[Cause, ...]:
        """The causes of a slow or fast row, a mistaken unit first unless evidence explains the value."""
        ranked, unit = self._of_the_path(result), mistaken_unit(result)
        return ranked if unit is None or (ranked and ranked[0].rank == 0) else (unit, *ranked)

    def _of_the_path(self, result: PathResult) -> tuple[Cause, ...]:
        """Causes by the model where it predicts more than a ceiling of the row, else by the rows alone."""
        ability = self.references.parts.gpu(result.row)
        if self.model is not None and self.model.tells(result.row):
            if result.row.metric == COLLECTIVE and self._collectives is not None:
                symptom = RowSymptom(result, self.conditions, self.results, self.posted, ability)
                return self._collectives.causes(result, self.results, tuple(stated_causes(symptom)))
            return causes(
                Symptom(result, self.conditions, self.results, self.posted, ability, model=self.model,
                        machine_causes=self.of_machine)
            )  # fmt: skip
        drive = self.references.parts.drive(result.row)
        return row_causes(RowSymptom(result, self.conditions, self._with_rows_aside, self.posted, ability, drive))


def incomplete_results(rows: Sequence[Observation], system: System | None) -> list[Finding]:
    """A tool that measures every GPU it sees saw fewer than the machine has: one is lost, or was hidden from it."""
    if system is None:
        return []
    gpus = set(system.of_kind(Kind.GPU))
    findings = []
    for tool in dict.fromkeys(row.how.get("tool", "") for row in rows):
        if not tool.startswith(_EVERY_GPU):
            continue
        texts = (row.how.get("flows", row.flow) for row in rows if row.how.get("tool") == tool)
        count = len({name for text in texts for name in re.findall(r"\bgpu\d+\b", text)})
        if 1 < count < len(gpus):
            title = f"{tool} saw {count} GPUs, {system.name} has {len(gpus)}"
            step = "nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES; lspci | grep -i nvidia; dmesg | grep -i xid"
            findings.append(Finding(Verdict.UNKNOWN, title, (), (), step))
    return findings


def _of_one_cpu(rows: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """The rows, with `host0` for cpu0 where no other CPU is named: nobody says which memory of the host it is."""
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


def _of_another_machine(result: PathResult, others: Mapping[str, str]) -> PathResult:
    """A judged row of a GPU that is another one than described (`others`): unknown, with that reason."""
    ends = re.findall(r"[^\s,>-]+", result.row.flow) if "->" in result.row.flow else list(others)
    differing = [name for name in others if name in ends]
    if not differing or result.verdict is Verdict.FAILED:
        return result
    # One text for all of them makes one finding.
    note = others[next(iter(others))]
    return replace(result, verdict=Verdict.UNKNOWN, tolerance=None, fine_low=None, fine_high=None, note=note)


def _of_bounds(row: Observation) -> bool:
    """Whether a row is a collective, which bounds alone judge where no machine is described."""
    return row.metric == COLLECTIVE and row.value is not None


def _no_latency(row: Observation, model: ExpectationModel | None) -> bool:
    """Whether a latency is one that no figure tells: nobody described the machine, or the GPUs have none."""
    if row.metric != "latency" or row.value is None:
        return False
    return model is None or bool(model.route_devices(row))


def _badness(result: PathResult) -> tuple[int, float]:
    """The worst first: slow, fast, failed, unknown, fine; the farthest from its expectation first."""
    order = list(Verdict).index(result.verdict)
    ratio = result.ratio or 1.0
    return (order, -max(ratio, 1 / ratio) if result.verdict in (Verdict.SLOW, Verdict.FAST) else 0.0)


def _findings(knowledge: Knowledge) -> list[Finding]:
    """The rows that are slow or fast by what explains them, and the faults that explain none."""
    diagnoses: list[Diagnosis] = [
        (result, knowledge.causes(result))
        for result in knowledge.results
        if result.verdict in (Verdict.SLOW, Verdict.FAST)
    ]
    findings = [_finding(group) for group in farthest_first(grouped(diagnoses))]
    firsts = [finding.causes[0] for finding in findings if finding.causes]
    blamed = {key for cause in firsts for key in (cause.key, *((cause.key[0], each) for each in cause.devices))}
    by_steps = lost_links(knowledge.results, knowledge.references.parts.gpu)
    stated = (*by_steps, *posted_faults(knowledge.posted), *knowledge.of_machine)
    known = {cause.key: cause for cause in stated if cause.fault}
    faults = [cause for key, cause in known.items() if key not in blamed]
    return findings + [Finding("fault", fault.what, (), (fault,), fault.step) for fault in faults]


def _finding(group: Sequence[Diagnosis]) -> Finding:
    results, (first, ranked) = tuple(result for result, _ in group), group[0]
    if ranked:
        best = ranked[0]
        supposed = not best.evidence and best.key[0] not in ("link", "staging")
        title = f"perhaps {best.what}" if supposed else best.what
        shown = ranked[:MOST_CAUSES]
        ties = likeliest(shown) if first.row.metric == COLLECTIVE else [best]
        again = f": {_measure_again(first.row)}" if best.key == OTHERS and best.inconclusive else ""
        return Finding(first.verdict.value, title, results, shown, next_steps(ties) + again)
    what = "no evidence explains it, and no single change of the model does"
    return Finding(first.verdict.value, what, results, (), _measure_again(first.row))


def _measure_again(row: Observation) -> str:
    """The commands that measure a row's path again and check it; nccl-tests where ranks are on several hosts."""
    again = _AGAIN.get(row.path, f"gpu --flows '{row.flow}'")
    if row.metric == COLLECTIVE:
        name = (row.scenario.split() or ["all_reduce"])[0]
        if row.settings.get("hosts", 1) > 1:
            ranks = row.settings.get("ranks", 2)
            return f"mpirun -np {ranks} {name}_perf -b 1M -e 8G -f 2 > again.txt; then lanewise check again.txt"
        again = f"collectives --collective {name}"
    return f"lanewise measure {again} -o again.json; then lanewise check --from again.json"


def _unjudged_findings(results: Sequence[PathResult], posted: PostedFacts) -> list[Finding]:
    """Rows that failed or that nothing is expected of, those of one reason together."""
    groups: dict[tuple[Verdict, str, str], list[PathResult]] = defaultdict(list)
    for result in results:
        if result.verdict in (Verdict.FAILED, Verdict.UNKNOWN):
            reason = unjudged(result, posted)
            groups[result.verdict, _FLOW.sub("these flows", reason.why), reason.step].append(result)
    return [Finding(verdict.value, why, tuple(group), (), step) for (verdict, why, step), group in groups.items()]


def _of_nobody_knows(results: Sequence[PathResult], aside: Sequence[Observation]) -> list[Observation]:
    """The measured rows of this machine where none could be compared with anything; else none."""
    open_notes = (OTHER_GPU, MISFIT, NO_MEASUREMENT)
    unknown = [each for each in results if each.verdict is Verdict.UNKNOWN and not each.note.startswith(open_notes)]
    compared = any(each.verdict in (Verdict.OK, Verdict.SLOW, Verdict.FAST) for each in results)
    return [] if compared else [*(each.row for each in unknown), *aside]
