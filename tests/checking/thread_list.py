"""Real questions with their figures, true causes and the verdicts that an engineer would sign."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.checking.verdict import Verdict
from lanewise.topology.read import read_system

FOLDER = Path(__file__).parent / "threads"


@dataclass(frozen=True)
class QuestionThread:
    """A question: `rows` is the text that `check` reads, `system` a description of the machine, if it was stated.

    `verdicts` are those that are right, the likeliest first; `causes` the keys that count as the true cause; `open`
    says why it is still answered wrong, if it is.
    """

    name: str
    rows: str
    system: str
    verdicts: tuple[str, ...]
    causes: tuple[str, ...]
    open: str

    @property
    def held_out(self) -> bool:
        """A third of the threads, by the hash of the name: not looked at while rules are written."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 3 == 0

    def check(self, folder: Path) -> Checkup:
        """The check of the thread as a user would run it on files in `folder`."""
        path = folder / f"{self.name}.txt"
        path.write_text(self.rows, encoding="utf-8")
        system = read_system(self.system, f"{self.name}.yaml") if self.system else None
        return api.check([path], system)


def threads(folder: Path = FOLDER) -> list[QuestionThread]:
    """Every thread of the folder, by name."""
    return [read_thread(path) for path in files(folder)]


def questions(folder: Path = FOLDER) -> list[QuestionThread]:
    """The threads typed in as rows, of machines that nobody described, with their sentences in place of the rows."""
    found = []
    for path in files(folder):
        data: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        if data["rows"].startswith("lanewise-rows") and not data.get("system"):
            text = f"{data['question']}\n{data.get('machine') or ''}\n"
            found.append(replace(read_thread(path), rows=text))
    return found


def files(folder: Path = FOLDER) -> list[Path]:
    """The files of the threads, by name."""
    return sorted(folder.glob("*.yaml"))


def read_thread(path: Path) -> QuestionThread:
    """The thread of one file."""
    data: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return QuestionThread(
        path.stem, data["rows"], data.get("system", ""), tuple(data["verdict"]), tuple(data["causes"]),
        data.get("open", ""),
    )  # fmt: skip


def verdict_of(checkup: Checkup) -> str:
    """The verdict on the whole question: the worst of its rows, fault for a machine's; ok if some row is."""
    for verdict in (Verdict.SLOW, Verdict.FAST, Verdict.FAILED):
        if checkup.count(verdict):
            return verdict.value
    if any(finding.kind == "fault" for finding in checkup.findings):
        return "fault"
    return "ok" if checkup.count(Verdict.OK) else "unknown"


def first_causes(checkup: Checkup) -> list[str]:
    """The keys of the first two causes of the first finding that is slow or a fault."""
    findings = [finding for finding in checkup.findings if finding.kind in (Verdict.SLOW, "fault")]
    return [cause.key[0] for finding in findings[:1] for cause in finding.causes[:2]]
