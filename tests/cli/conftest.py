"""The command in a process and a folder of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked_cli import forked

Lanewise = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clean_env() -> dict[str, str]:
    """The environment without what would change the output."""
    gone = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONWARNINGS")
    return {**{k: v for k, v in os.environ.items() if k not in gone}, "COLUMNS": "100", "PYTHONUTF8": "1"}


@pytest.fixture
def lanewise(tmp_path: Path, clean_env: dict[str, str]) -> Lanewise:
    """Run `lanewise ARGUMENTS...` in tmp_path and return what it did."""
    return lambda *arguments, **env: forked(arguments, tmp_path, {**clean_env, **env})
