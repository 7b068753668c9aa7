"""What a case of provoked.py is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A command with its environment and what runs beside it; `shown`: the post has the command line, too.

    A case with a question is posted with it, `{name}` the GPU's and `{gpus}` their number, and has the verdicts that
    are right, the likeliest first, and the keys of causes that count as the true one.
    """

    name: str
    command: str
    env: str = ""
    beside: str = ""
    shown: bool = False
    cause: str = ""
    gpus: int = 1  # at least
    question: str = ""
    verdict: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def post(self, printed: str, names: Sequence[str]) -> str:
        """What somebody would post: the question, the command line where it is shown, and what was `printed`."""
        asked = f"{self.question.format(gpus=len(names), name=names[0])}\n\n" if self.question else ""
        return asked + (self._command_line(len(names)) if self.shown else "") + printed

    def _command_line(self, gpus: int) -> str:
        """As its author would have typed it: a program of one's own is bench.py, whatever it does."""
        name, *arguments = self.command.format(gpus=gpus).split()
        own = name in ("bench", "scripts", "notebooks")
        typed = "python bench.py" if own else f"./{name.split('/')[-1]} {' '.join(arguments)}"
        return f"$ {self.env} {typed}\n"

    def expected(self, text: str) -> dict[str, Any]:
        """The question as benchmarks/check_blind.py reads one: what was posted, and the truth."""
        return {
            "posted": text, "question": text.split("\n\n")[0], "source": f"benchmarks/h200/provoked.py, {self.name}",
            "verdict": list(self.verdict), "true_cause": self.cause, "causes": list(self.keys),
            "how_sure": "certain: made so", "note": f"$ {self.env} {self.command}",
        }  # fmt: skip
