"""The real binary as a subprocess, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_binary import BINARY

Lanewise = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clean_env() -> dict[str, str]:
    """The environment without what would change the output."""
    gone = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONWARNINGS")
    return {**{k: v for k, v in os.environ.items() if k not in gone}, "COLUMNS": "100", "PYTHONUTF8": "1"}


@pytest.fixture
def lanewise(tmp_path: Path, clean_env: dict[str, str]) -> Lanewise:
    """Run `lanewise ARGUMENTS...` in tmp_path and return what it did."""

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BINARY, *arguments],
            cwd=tmp_path,
            env={**clean_env, **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
