"""Outputs of tools with some lines around them, by an engineer who had not seen the program, and what is true."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.errors import LanewiseError

FOLDER = Path(__file__).parent / "pasted"
HELD = FOLDER / "held"
# The engineer's words for what the program calls otherwise: GPUDirect that is not in use is staging, numa is a
# buffer or program on a far NUMA node.
_SAME = {"compat": "staged", "staging": "staged", "numa": "far NUMA node"}


@dataclass(frozen=True)
class PastedCase:
    """A text with the verdicts that are right, the likeliest first, and the keys of causes that are."""

    path: Path
    verdicts: tuple[str, ...]
    causes: tuple[str, ...]

    @property
    def has_a_cause(self) -> bool:
        """Whether its likeliest verdict is one that has a cause."""
        return self.verdicts[0] in ("slow", "fault") and bool(self.causes)

    def answer(self) -> tuple[str, list[str]]:
        """The verdict on the text and its first two causes; 'not read' for one that is refused."""
        try:
            checkup = api.check([self.path])
        except LanewiseError as error:
            return f"not read: {error.cause}", []
        return verdict_of(checkup), first_causes(checkup)

    def names_a_cause(self, found: list[str], *, translated: bool = True) -> bool:
        """Whether a true cause is among those found; `translated`: by the program's words as well."""
        same = {_SAME.get(cause, cause) for cause in self.causes} if translated else set()
        return bool({*self.causes, *same} & set(found))


def pasted_cases(folder: Path = FOLDER) -> list[PastedCase]:
    """The cases of a folder, by name."""
    data: dict[str, Any] = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    return [
        PastedCase(folder / f"{name}.txt", tuple(case["verdicts"]), tuple(case["causes"]))
        for name, case in sorted(data.items())
    ]  # fmt: skip
