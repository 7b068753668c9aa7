"""What the tests of checks share: made machines, and the command in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Done:
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def lanewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Run `lanewise ARGUMENTS...` in tmp_path, in this process."""
    from lanewise.cli import verbs

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = verbs.run(arguments)
        return Done(code, *capsys.readouterr())

    return run
