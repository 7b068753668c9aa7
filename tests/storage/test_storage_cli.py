"""The real binary: its table, Ctrl-C, a kernel without io_uring, a disk that is full."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from cli_binary import BINARY, HANGS, has_lines, interrupted
from forked_cli import forked

from lanewise import _native

SMALL = ("--io", "64KiB", "--size", "1MiB", "--threads", "2", "--depth", "2", "--modes", "cached", "--runs", "2")
# Answers EPERM to io_uring_setup, as a container does. One instruction a line: load the number of the call, compare.
SECCOMP = """
import ctypes, os, sys
class Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]
look, setup = Step(0x20, 0, 0, 0), Step(0x15, 0, 1, 425)
refuse, allow = Step(0x06, 0, 0, 0x00050001), Step(0x06, 0, 0, 0x7FFF0000)
steps = (Step * 4)(look, setup, refuse, allow)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if libc.prctl(22, 2, ctypes.byref(Program(4, steps)), 0, 0) != 0:
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`lanewise measure storage ARGUMENTS...`."""
    return forked(["measure", "storage", *map(str, arguments)], cwd, os.environ)


def test_the_table_shows_one_row_a_metric(tmp_path, data):
    done = run(data, *SMALL, "-o", "run.json", "--samples", "s.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[0].startswith("read cached")
    metrics = [line.split()[1] for line in lines if line.startswith("data.bin->host0")]
    assert metrics == ["goodput", "latency_p50", "latency_p99", "latency_p99.9", "iops"]
    kept = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert {sample["metric"] for sample in kept} >= {"goodput", "iops"}
    assert json.loads((tmp_path / "run.json").read_text())


def test_a_terminal_shows_the_bandwidth_on_one_line_while_it_is_measured(tmp_path, data):
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [BINARY, "measure", "storage", data, *SMALL, "--seconds", "0.8 s"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    assert process.wait(timeout=HANGS) == 0
    assert re.search(rb"\rread cached, run 1: \d+\.\d\d GB/s", shown.replace(b"\x1b[K", b""))
    assert b"\n" not in shown


def test_an_error_is_one_line_with_a_hint_and_leaves_no_output(tmp_path):
    done = run("nowhere", "-o", "run.json", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: nowhere: cannot be read: No such file or directory\nhint:  check the path\n"
    assert os.listdir(tmp_path) == []


def test_ctrl_c_keeps_finished_samples_and_leaves_no_test_file(tmp_path):
    folder = tmp_path / "drive"
    folder.mkdir()
    command = [BINARY, "measure", "storage", folder, "--make", "8MB", "--modes", "cached", "--io", "64KiB", "--threads",
               "2", "--seconds", "0.2 s", "--runs", "1000", "--samples", "s.jsonl", "-o", "run.json"]  # fmt: skip
    kept = tmp_path / "s.jsonl"
    done = interrupted(command, has_lines(kept, 4), tmp_path)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "not finished: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "drive->host0" in done.stdout
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert any(row["metric"] == "goodput" and row["value"] for row in rows)
    assert (tmp_path / "run.json").exists()
    assert os.listdir(folder) == []


def test_a_process_that_is_killed_leaves_no_test_file_either(tmp_path):
    folder = tmp_path / "drive"
    folder.mkdir()
    command = [BINARY, "measure", "storage", folder, "--make", "8MB", "--modes", "cached", "--seconds", "600"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    fds = Path(f"/proc/{process.pid}/fd")
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline and not any(str(folder) in os.path.realpath(fd) for fd in fds.iterdir()):
        time.sleep(0.01)
    process.kill()
    process.wait(timeout=HANGS)
    assert os.listdir(folder) == []


@pytest.mark.skipif(bool(_native.io_uring_missing()), reason="there is no io_uring to take away")
@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="the filter is for other numbers of calls")
def test_without_io_uring_threads_read_and_it_is_said_loudly(tmp_path, data):
    def filtered(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", SECCOMP, BINARY, "measure", "storage", data, *SMALL, *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, check=False)

    done = filtered("--json")
    if done.returncode == 77:
        pytest.skip("this machine allows no filter of system calls")
    assert done.returncode == 0, done.stderr
    assert (
        "warning: read by psync (pread in threads); no io_uring: io_uring_setup: Operation not permitted" in done.stderr
    )
    assert all(row["how"]["engine"].startswith("psync") for row in json.loads(done.stdout)["rows"])
    forced = filtered("--engine", "io_uring")
    assert forced.returncode == 2
    assert "error: there is no io_uring here: io_uring_setup: Operation not permitted" in forced.stderr


def test_a_user_without_rights_gets_clear_errors_and_reads_without_registered_buffers(tmp_path, data):
    """Root without any capability is an ordinary user who owns the files."""
    plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if plain and shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv to drop root's rights with")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)

    def as_user(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [*plain, BINARY, "measure", "storage", *arguments]
        limit = (256 << 10, 256 << 10)
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, limit),
        )  # fmt: skip

    done = as_user(data, *SMALL, "--io", "128KiB", "--json")
    assert done.returncode == 0, done.stderr
    if not _native.io_uring_missing():
        (row, *_) = json.loads(done.stdout)["rows"]
        assert "buffers not registered (locked memory, ulimit -l)" in row["how"]["engine"]
    denied = as_user(folder, "--make", "1MiB", *SMALL)
    assert denied.stderr.startswith(f"error: {folder}: no test file can be made: Permission denied\nhint:")
    data.chmod(0)
    denied = as_user(data)
    assert denied.returncode == 2
    assert denied.stderr.startswith(f"error: {data}: cannot be read: Permission denied\nhint:")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_disk_that_runs_full_is_an_error_and_nothing_stays_behind(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=70m", "none", small], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this container mounts nothing")
    try:
        done = run(small, "--make", "32MB", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {small}: no room for a test file of 0.03")
        assert os.listdir(small) == []
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a block device")
def test_a_block_device_is_read_and_one_that_loses_its_medium_is_an_error_that_keeps_what_is_finished(tmp_path):
    """A loop device whose file is cut off answers reads with I/O errors, as a drive that was pulled does."""
    image = tmp_path / "image"
    image.write_bytes(os.urandom(4 << 20))
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip("this container makes no loop devices")
    device = made.stdout.strip()
    try:
        command: list[str | Path] = [BINARY, "measure", "storage", device, *SMALL, "--modes", "direct"]
        endless = ["--seconds", "0.1 s", "--runs", "1000"]
        process = subprocess.Popen(
            [*command, *endless, "--samples", "s.jsonl"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        kept = tmp_path / "s.jsonl"
        deadline = time.monotonic() + HANGS
        while not has_lines(kept, 7)() and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        os.truncate(image, 0)
        stdout, stderr = process.communicate(timeout=HANGS)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)
    assert process.returncode == 2
    assert re.search(rf"^error: {device}: reading at offset \d+: Input/output error$", stderr, re.MULTILINE)
    assert "not finished: " in stderr
    assert f"{Path(device).name}->host0" in stdout
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert any(row["metric"] == "goodput" and row["value"] for row in rows)
