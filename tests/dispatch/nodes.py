"""Accelerator nodes as processes of their own, and load tests over them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lanewise.options.loadtest import RunOptions

SECRET = "a secret of the tests"
HANGS = 300.0  # s; a wait that takes longer hangs, on a busy machine too
QUICK = ("--engine", "synthetic", "--service", "50 us", "--sample-bytes", "512 B")
MAIN = "import sys\nfrom lanewise.cli.main import main\nsys.exit(main())"
# A node whose systems change a byte of the first slot of each batch, as a broken NIC would.
SPOILS = """
from lanewise.loadtest import accelerator
def spoil(batch, samples):
    batch = batch.copy(); batch[0, 100] ^= 1
    return [zlib.crc32(bytes(row)).to_bytes(4, "little") for row in batch]
import zlib
own = accelerator.open_system
accelerator.open_system = lambda options, calls, **more: own(options, [spoil], **{**more, "checksum": False})
"""


def secret_in(folder: Path) -> Path:
    """The file of the secret that all share."""
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    return secret


def default_sigint() -> None:
    """Ctrl-C as in a terminal: what runs tests in the background may ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class NodeProcess:
    """`lanewise serve` in a process: its address, what it said so far. `prefix` runs it, `patch` is run first."""

    def __init__(
        self, folder: Path, name: str, options: tuple[str, ...] = QUICK, port: int = 0, patch: str = "",
        host: str = "127.0.0.1", prefix: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        words = ["serve", *options, "--name", name, "--listen", f"{host}:{port}"]
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", f"{patch}\n{MAIN}", *words, "--secret-file", str(secret_in(folder))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default_sigint,
        )  # fmt: skip
        self.said: list[str] = []
        self._seen, self._ended = 0, False
        self._change = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = int(self.line("listening").split()[4].rstrip(";"))
        self.address = f"{host}:{self.port}"

    def line(self, word: str) -> str:
        """The next line on stderr that holds a word."""
        with self._change:
            while True:
                for line in self.said[self._seen :]:
                    self._seen += 1
                    if word in line:
                        return line
                assert not self._ended, f"the node ended without '{word}': {''.join(self.said)}"
                assert self._change.wait(HANGS), f"no '{word}' in {HANGS:g} s: {''.join(self.said)}"

    def wait(self, condition: Callable[[list[str]], bool]) -> None:
        """Until what it said on stderr fulfils a condition."""
        with self._change:
            assert self._change.wait_for(lambda: condition(self.said), HANGS), "".join(self.said)

    def kill(self) -> None:
        """End it as nothing can that it could handle."""
        self.process.kill()
        self.process.wait(HANGS)

    def close(self) -> None:
        """Kill it, and let its streams go."""
        self.kill()
        self._reader.join(HANGS)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def interrupt(self, number: int = signal.SIGINT) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(HANGS)

    def descriptors(self) -> list[str]:
        """What its open descriptors are."""
        return descriptors(self.process.pid)

    def named_memory(self) -> list[str]:
        """Its shared memory that has a name, which a killed process would leave behind."""
        maps = Path(f"/proc/{self.process.pid}/maps").read_text().splitlines()
        return [line for line in maps if "/dev/shm/" in line and not line.endswith("(deleted)")]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._change:
                self.said.append(line)
                self._change.notify_all()
        with self._change:
            self._ended = True
            self._change.notify_all()


def descriptors(process: int) -> list[str]:
    """What the open descriptors of a process are."""
    links = []
    for path in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(path))
    return links


@contextlib.contextmanager
def nodes(folder: Path, *names: str, options: tuple[str, ...] = QUICK, patch: str = "") -> Iterator[list[NodeProcess]]:
    """Nodes of these names, which end with the block."""
    started: list[NodeProcess] = []
    try:
        started.extend(NodeProcess(folder, name, options, patch=patch) for name in names)
        yield started
    finally:
        for node in started:
            node.close()


def over(started: list[NodeProcess], folder: Path, **more: object) -> RunOptions:
    """Options of a short run over these nodes."""
    values: dict[str, object] = {
        "nodes": tuple(node.address for node in started), "secret_file": folder / "secret", "library": 32,
        "depth": 16, "connections": 2, "results": folder / "logs", "seconds": 0.2, "queries": 100, "bound": 60.0,
    }  # fmt: skip
    return RunOptions(**{**values, **more})  # type: ignore[arg-type]


def load_test(
    folder: Path, started: Sequence[NodeProcess], words: Sequence[str], prefix: tuple[str, ...] = (), patch: str = "",
    name: str = "frontend",
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:  # fmt: skip
    """`lanewise loadtest` over these nodes in a process of its own, run by `prefix`: how it ended, and its JSON."""
    process, path = start_load_test(folder, started, words, prefix, patch, name)
    stdout, stderr = process.communicate(timeout=HANGS)
    result = json.loads(path.read_text()) if path.exists() else {}
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr), result


def start_load_test(
    folder: Path, started: Sequence[NodeProcess], words: Sequence[str], prefix: tuple[str, ...] = (), patch: str = "",
    name: str = "frontend",
) -> tuple[subprocess.Popen[str], Path]:  # fmt: skip
    """The process, which may be killed, and where its JSON will be."""
    path = folder / f"{name}.json"
    addresses = ",".join(node.address for node in started)
    command = ["loadtest", *words, "--nodes", addresses, "--secret-file", str(secret_in(folder)),
               "--results", str(folder / name), "--json", str(path)]  # fmt: skip
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", f"{patch}\n{MAIN}", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=default_sigint,
    )  # fmt: skip
    return process, path
