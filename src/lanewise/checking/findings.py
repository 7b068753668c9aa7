"""What is wrong with a machine: one finding for each thing, with all the rows that it explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lanewise.checking.cause import Cause
from lanewise.checking.causes.collectives import CollectiveChanges, next_steps
from lanewise.checking.causes.contention import OTHERS
from lanewise.checking.causes.modelled import causes
from lanewise.checking.causes.modelled_symptom import Symptom
from lanewise.checking.causes.nvlink_steps import lost_links
from lanewise.checking.causes.posted import posted_faults, stated_causes
from lanewise.checking.causes.rows import row_causes
from lanewise.checking.causes.units import mistaken_unit
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.finding_order import Diagnosis, farthest_first, grouped, likeliest
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.references.judged import COLLECTIVE, References
from lanewise.checking.references.side_by_side import side_by_side
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import ResultTable, RowSymptom
from lanewise.checking.unjudged import unjudged
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import Kind, System

MOST_CAUSES = 3
_FLOW = re.compile(r"(?<![^\s,])[^\s,]+->[^\s,]+")
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


@dataclass(frozen=True)
class CauseSearch:
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
        ability = self.references.of_its_gpu(result.row).parts.gpu(result.row)
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


def findings_of(search: CauseSearch) -> list[Finding]:
    """The rows that are slow or fast by what explains them, and the faults that explain none."""
    diagnoses: list[Diagnosis] = [
        (result, search.causes(result)) for result in search.results if result.verdict in (Verdict.SLOW, Verdict.FAST)
    ]
    findings = [_finding(group) for group in farthest_first(grouped(diagnoses))]
    firsts = [finding.causes[0] for finding in findings if finding.causes]
    blamed = {key for cause in firsts for key in (cause.key, *((cause.key[0], each) for each in cause.devices))}
    by_steps = lost_links(search.results, search.references.parts.gpu)
    stated = (*by_steps, *posted_faults(search.posted), *search.of_machine)
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


def unjudged_findings(results: Sequence[PathResult], posted: PostedFacts) -> list[Finding]:
    """Rows that failed or that nothing is expected of, those of one reason together."""
    groups: dict[tuple[Verdict, str, str], list[PathResult]] = defaultdict(list)
    for result in results:
        if result.verdict in (Verdict.FAILED, Verdict.UNKNOWN):
            reason = unjudged(result, posted)
            why = reason.why + _what_slows(result, posted) * (result.verdict is Verdict.UNKNOWN)
            groups[result.verdict, _FLOW.sub("these flows", why), reason.step].append(result)
    return [Finding(verdict.value, why, tuple(group), (), step) for (verdict, why, step), group in groups.items()]


def _what_slows(result: PathResult, posted: PostedFacts) -> str:
    """The first thing that a text states which slows such a row, whatever its rate should be; empty if none."""
    stated = (cause for cause in stated_causes(RowSymptom(result, posted=posted)) if cause.rank <= 1)
    first = next(stated, None)
    return f"; what slows such rows is stated: {first.what} ({first.evidence})" if first else ""


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
