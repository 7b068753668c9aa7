"""Where the binary under test lies, and a real Ctrl-C to a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

BINARY = Path(sys.executable).with_name("lanewise")


def interrupted(
    command: Sequence[object], ready: Callable[[], bool] | None, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, send it one SIGINT once it is `ready` (None: has said a line on stderr), and wait for its end."""
    process = subprocess.Popen(
        [str(word) for word in command], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell that starts its jobs in the background lets them ignore SIGINT, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    first = process.stderr.readline() if ready is None else ""
    deadline = time.monotonic() + 120
    while ready is not None and not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # in the midst of what comes next
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, first + stderr)


def has_lines(file: Path, count: int) -> Callable[[], bool]:
    """Whether a file has so many lines by now."""
    return lambda: file.exists() and file.read_text().count("\n") >= count
