"""Files to read, and whether this machine's file system and kernel can do what a test needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the storage part is for Linux", allow_module_level=True)


@pytest.fixture
def direct(tmp_path: Path) -> Path:
    """A folder in which direct reads work."""
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(4096))
    try:
        os.close(os.open(probe, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary folder has no direct reads")
    probe.unlink()
    return tmp_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of 1 MiB that nobody writes to."""
    made = tmp_path / "data.bin"
    made.write_bytes(os.urandom(1 << 20))
    return made
