"""What the model says against a node: the findings of its check-up in the form that a survey joins."""

from __future__ import annotations

from lanewise.checking.checkup import Checkup
from lanewise.checking.findings import Finding
from lanewise.checking.verdict import Verdict
from lanewise.fleet.node import MODEL, NodeFinding

# Causes of check-ups that siblings know by another name.
_SAME = {"off bus": "gpus", "clocks": "throttle"}


def model_findings(checkup: Checkup) -> tuple[NodeFinding, ...]:
    """Faults and slow paths of a check-up; too fast and unknown rows are no findings of a node."""
    return tuple(_of_finding(finding) for finding in checkup.findings if finding.kind in ("fault", Verdict.SLOW))


def judged_rows(checkup: Checkup) -> int:
    """How many rows the model had an expectation for."""
    return sum(result.verdict in (Verdict.OK, Verdict.SLOW, Verdict.FAST) for result in checkup.results)


def _of_finding(finding: Finding) -> NodeFinding:
    cause = finding.causes[0] if finding.causes else None
    name, about = (cause.key[0], next(iter(cause.key[1:]), "")) if cause else ("slow path", _flows(finding))
    shares = [result.ratio for result in finding.results if result.ratio is not None]
    evidence = [*([cause.evidence] if cause and cause.evidence else []), *_measured(finding)]
    kind = "fault" if finding.kind == "fault" else "slow"
    return NodeFinding(
        MODEL, kind, _SAME.get(name, name), about, cause.what if cause else finding.title, finding.step,
        "; ".join(evidence), min(shares, default=None), len(finding.results),
    )  # fmt: skip


def _flows(finding: Finding) -> str:
    return finding.results[0].row.flow if finding.results else ""


def _measured(finding: Finding) -> list[str]:
    """The first row with its share of what is expected."""
    return [
        f"{result.row.scenario} {result.row.flow}: {100 * result.ratio:.0f} % of the value that the model expects"
        for result in finding.results[:1]
        if result.ratio is not None
    ]
