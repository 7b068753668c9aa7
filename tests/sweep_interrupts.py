"""Ctrl-C on a command with an engine: how it ends, what it keeps, whether the same command then ends as it should."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sweep_kills import FLOWS, SYSTEM, Rows, rows_of

SWEEP = ("first=3,4", "gen=4,5", "data=1..15", "cache=1..5")
_SYSTEMS = [f"composable-server-gen4,path={path},gpus={gpus}" for path in (1, 2, 3, 4) for gpus in (1, 2)]
# By verb: the words, and whether --results keeps what is finished.
COMMANDS = {
    "predict": (["predict", str(SYSTEM), "--flows", FLOWS, *(f"--sweep={each}" for each in SWEEP)], True),
    "study": (["study", "run", "network-division", "gpu-server-routes"], True),
    "plan": (["plan", *_SYSTEMS, "--service", "resnet50 20000 QPS"], False),
}  # fmt: skip
# What no Ctrl-C may leave on stderr: Python's traceback, an abort of Ray's or Python's, words of gRPC.
_BROKEN = ("Traceback", "Exception ignored", "Fatal", "Aborted", "core dumped", "Check failed", "grpc", "StatusCode",
           "ERROR", "Error in")  # fmt: skip
_INTERRUPTED = 128 + signal.SIGINT
_HUNG = 120.0  # s


@dataclass(frozen=True, slots=True)
class InterruptRound:
    """One Ctrl-C: `delay` s after the start, `seconds` until the command had ended, and what is wrong with that."""

    verb: str
    engine: str
    delay: float
    interrupted: bool
    seconds: float
    code: int
    before: int
    kept: int
    rows: int
    faults: list[str]
    stderr: str


def interruptible(
    words: Sequence[str], on: str, folder: Path | None, stderr: Path | None = None, stdout: Path | None = None
) -> subprocess.Popen[bytes]:
    """The command as a job in the foreground of a terminal has it: SIGINT acts, in a group of processes of its own."""
    program = str(Path(sys.executable).with_name("lanewise"))
    results = ["--results", str(folder)] if folder is not None else []
    with (stderr.open("wb") if stderr is not None else tempfile.TemporaryFile() as errors,
          stdout.open("wb") if stdout is not None else tempfile.TemporaryFile() as out):  # fmt: skip
        return subprocess.Popen(
            [program, *words, "--on", on, *results], stdout=out, stderr=errors, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip


def interrupt_round(verb: str, on: str, delay: float, folder: Path, expected: Rows) -> InterruptRound:
    """One Ctrl-C, sent to all processes of the command as a terminal does, and the same command until it has ended."""
    words, keeps = COMMANDS[verb]
    results, errors = (folder / "results" if keeps else None), folder / "stderr"
    folder.mkdir()
    process = interruptible(words, on, results, errors, folder / "shown")
    time.sleep(delay)
    interrupted, began = process.poll() is None, time.monotonic()
    before = sum(rows_of(results).values()) if results is not None else 0
    if interrupted:
        os.killpg(process.pid, signal.SIGINT)
    faults = []
    try:
        code = process.wait(_HUNG)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        faults.append(f"no end within {_HUNG:.0f} s")
    seconds = time.monotonic() - began
    text = errors.read_text(errors="replace").replace(str(folder), "FOLDER")
    faults += [f"stderr has {word!r}" for word in _BROKEN if word in text]
    # Python ends with its own handlers: a signal then kills the process that has shown and written everything.
    if code not in ((0, _INTERRUPTED, -signal.SIGINT) if interrupted else (0,)):
        faults.append(f"exit code {code}")
    if code == _INTERRUPTED and "interrupted" not in text:
        faults.append("it does not say that it was interrupted")
    faults += left_behind(process.pid)
    kept = sum(rows_of(results).values()) if results is not None else 0
    if kept < before:
        faults.append(f"{before - kept} rows lost")
    if again := interruptible(words, on, results, None, folder / "again").wait():
        faults.append(f"the resumed command ends with {again}")
    if code in (0, -signal.SIGINT) and (folder / "shown").read_bytes() != (folder / "again").read_bytes():
        faults.append(f"exit code {code}, but it has not shown everything")
    rows = rows_of(results) if results is not None else expected
    faults += [f"{sum((expected - rows).values())} rows lost at the end"] if expected - rows else []
    faults += [f"{sum((rows - expected).values())} rows too many"] if rows - expected else []
    return InterruptRound(verb, on.partition(":127")[0], delay, interrupted, seconds, code, before, kept,
                          sum(rows.values()), faults, text)  # fmt: skip


def left_behind(session: int) -> list[str]:
    """The processes of a session that has ended, some seconds later at most."""
    names: list[str] = []
    for _ in range(150):
        names = [name for _, name in of_session(session)]
        if not names:
            return []
        time.sleep(0.1)
    return [f"left behind: {', '.join(names)}"]


def of_session(session: int) -> Iterator[tuple[int, str]]:
    """Number and name of each process of a session."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        fields = rest.split()
        if int(fields[3]) == session and fields[0] != "Z":
            yield int(path.parent.name), name.partition("(")[2]


@contextmanager
def ray_cluster(cpus: int = 2) -> Iterator[tuple[str, int]]:
    """Address and session of a Ray on loopback, started by the guide's command with ports and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        process, port = _ray_head(Path(folder), cpus)
        try:
            yield f"ray://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait()


def _ray_head(folder: Path, cpus: int) -> tuple[subprocess.Popen[bytes], int]:
    """A head that answers, and its port; another process may take a port that was free, so it is tried thrice."""
    python = Path(sys.executable)
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                 "PATH": f"{python.parent}:{os.environ['PATH']}"}  # fmt: skip
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            ports = one.getsockname()[1], other.getsockname()[1]
        command = [str(python.with_name("ray")), "start", "--head", "--block", "--include-dashboard", "false",
                   "--port", str(ports[0]), "--ray-client-server-port", str(ports[1]), "--num-cpus", str(cpus),
                   "--temp-dir", str(folder)]  # fmt: skip
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        while process.poll() is None and not _answers(ports[1]):
            time.sleep(0.2)
        if process.poll() is None:
            return process, ports[1]
    raise RuntimeError("no Ray on loopback stays alive")


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True
