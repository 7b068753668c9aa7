"""Load tests that need LoadGen are skipped, with the reason, where Lanewise was built without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from forked_cli import forked

from lanewise.installed import loadgen_missing

LOGS = Path(__file__).parent / "logs"


@pytest.fixture
def loadgen():
    """The native module."""
    if missing := loadgen_missing():
        pytest.skip(f"built without LoadGen: {missing}")
    from lanewise import _loadgen

    return _loadgen


@pytest.fixture
def captured():
    """The text of a log that LoadGen wrote, by name."""
    return lambda name: (LOGS / f"{name}.txt").read_text()


@pytest.fixture
def clean_env() -> dict[str, str]:
    """The environment without what would change the output."""
    gone = ("NO_COLOR", "FORCE_COLOR", "TERM", "PYTHONWARNINGS")
    return {**{k: v for k, v in os.environ.items() if k not in gone}, "COLUMNS": "100", "PYTHONUTF8": "1"}


@pytest.fixture
def lanewise(tmp_path, clean_env):
    """Run `lanewise ARGUMENTS...` in tmp_path and return what it did."""
    return lambda *arguments: forked(arguments, tmp_path, clean_env)
