"""A User-Mode Linux kernel with an RDMA device in software, for tests that need one (tests/network/uml)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lanewise import _native

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "network" / "uml" / "run"
KERNELS = (ROOT / "build" / "uml" / "linux", ROOT.parent / "shared" / "rdma-uml" / "linux-uml")


def kernel() -> Path:
    """The kernel that LANEWISE_UML names, else the one that uml/build made; skips the test where there is none."""
    if named := os.environ.get("LANEWISE_UML"):
        assert os.access(named, os.X_OK), f"LANEWISE_UML: {named} is no kernel to run"
        return Path(named)
    for path in KERNELS:
        if path.exists():
            return path
    pytest.skip("no User-Mode Linux with an RDMA device: run tests/network/uml/build, or set LANEWISE_UML")


def run_in_guest(*command: str | Path) -> str:
    """What the command printed in a guest; skips the test where this machine or this build lacks something."""
    found = kernel()
    if shutil.which("rdma", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
        pytest.skip("no rdma command: install iproute2")
    try:
        _native.verbs_devices()
    except _native.ProbeFailure as failure:
        pytest.skip(f"{failure.args[0]}: {failure.args[1]}")
    done = subprocess.run(
        [RUN, *command], cwd=ROOT, env={**os.environ, "LANEWISE_UML": str(found)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
