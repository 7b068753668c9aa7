"""Real listeners and real clients of the command, on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BINARY = Path(sys.executable).with_name("lanewise")
HANGS = 300.0  # s; a process that takes longer hangs, on a busy machine too
SECRET = "a secret of the tests"
QUICK = ["--seconds", "0.02", "--sizes", "16KiB", "--connections", "1"]


def _hears_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def environment(**changes: str) -> dict[str, str]:
    """The environment with the secret, and with other `changes`."""
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "LANEWISE_SECRET": SECRET, **changes}


def start(*options: str, **changes: str) -> subprocess.Popen[str]:
    """The command with the secret in its environment, and with other `changes` of that."""
    return subprocess.Popen(
        [BINARY, "measure", "network", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(**changes), preexec_fn=_hears_ctrl_c,
    )  # fmt: skip


@contextmanager
def listener(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A listener on a free port of loopback, and its HOST:PORT."""
    process = start("--listen", "127.0.0.1:0", *options)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.match(r"listening on (\S+) port (\d+)", said)
        assert found, said
        yield process, f"{found[1]}:{found[2]}"
    finally:
        process.kill()
        process.communicate(timeout=HANGS)


def samples(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
