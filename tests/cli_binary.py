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
HANGS = 300.0  # s; a process that takes longer hangs, on a busy machine too


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
    deadline = time.monotonic() + HANGS
    while ready is not None and not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # in the midst of what comes next
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=HANGS)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, first + stderr)


def interrupts_itself(
    patch: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `lanewise ARGUMENTS...` in a process of its own, where `patch` has it send itself a SIGINT at its moment."""
    code = f"import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{patch}\n"
    code += "from lanewise.cli.main import main\nsys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=HANGS,
        check=False,
    )  # fmt: skip


def has_lines(file: Path, count: int) -> Callable[[], bool]:
    """Whether a file has so many lines by now."""
    return lambda: file.exists() and file.read_text().count("\n") >= count
