"""LoadGen's logs on a full disk: an error that names the folder and the disk, where LoadGen itself says nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_binary import HANGS

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

RUN = (
    "loadtest", "run", "--engine", "synthetic", "--qps", "200", "--seconds", "0.2", "--queries", "10", "--bound", "10s",
    "--results", "disk/run",
)  # fmt: skip
TMPFS = 'mount -t tmpfs -o size=SIZE tmpfs disk && exec "$0" "$@"'
NO_CHECK = "from lanewise.loadtest import loadgen\nloadgen.ROOM = 0"


def _private_mounts() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


def _run(folder: Path, patch: str = "", size: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "disk").mkdir()
    code = f"import resource, sys\n{patch}\nfrom lanewise.cli.main import main\nsys.exit(main())"
    disk = ["unshare", "-m", "sh", "-c", TMPFS.replace("SIZE", size)] if size else []
    return subprocess.run(
        [*disk, sys.executable, "-c", code, *RUN],
        cwd=folder, capture_output=True, text=True, check=False, timeout=HANGS,
    )  # fmt: skip


def _refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    error, hint = done.stderr.splitlines()[-2:]
    assert error.startswith("error: ")
    assert all(word in error for word in words), error
    assert hint == "hint:  make room there, or name another folder"


needs_mount = pytest.mark.skipif(not _private_mounts(), reason="only root may mount a small disk, with unshare")


@needs_mount
def test_a_disk_without_room_ends_before_the_run(tmp_path):
    done = _run(tmp_path, size="64k")
    _refused(done, "no room for LoadGen's logs in disk/run/logs/0001-server-200-seed", "free on the disk of", "/disk")


@needs_mount
@pytest.mark.parametrize(("size", "short"), [("24k", "mlperf_log_detail.txt"), ("8k", "mlperf_log_summary.txt")])
def test_a_disk_that_fills_up_in_a_run_is_an_error(tmp_path, size, short):
    done = _run(tmp_path, NO_CHECK, size)
    _refused(done, "LoadGen's logs in disk/run/logs/0001-server-200-seed", "incomplete", short, f"{tmp_path}/disk")


def test_a_log_that_may_not_grow_is_an_error(tmp_path):
    done = _run(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))")
    _refused(done, "LoadGen's logs in disk/run/logs/0001-server-200-seed", "incomplete (mlperf_log_detail.txt)")
