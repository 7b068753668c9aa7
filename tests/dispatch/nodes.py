"""Accelerator nodes as processes of their own, and load tests over them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lanewise.options.loadtest import RunOptions

SECRET = "a secret of the tests"
HANGS = 300.0  # s; a wait that takes longer hangs, on a busy machine too
QUICK = ("--engine", "synthetic", "--service", "50 us", "--sample-bytes", "512 B")
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


class NodeProcess:
    """`lanewise serve` in a process: its address, what it said so far."""

    def __init__(
        self, folder: Path, name: str, options: tuple[str, ...] = QUICK, port: int = 0, patch: str = ""
    ) -> None:
        self.name = name
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(SECRET)
        words = ["serve", *options, "--name", name, "--listen", f":{port}", "--secret-file", str(secret)]
        code = f"{patch}\nimport sys\nfrom lanewise.cli.main import main\nsys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said: list[str] = []
        self.port = int(self.line("listening").split()[4].rstrip(";"))
        self.address = f"127.0.0.1:{self.port}"

    def line(self, word: str) -> str:
        """The next line on stderr that holds a word."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if word in line:
                return line
        raise AssertionError(f"the node ended without '{word}': {''.join(self.said)}")

    def kill(self) -> None:
        """End it as nothing can that it could handle."""
        self.process.kill()
        self.process.wait(HANGS)

    def interrupt(self, number: int = signal.SIGINT) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(HANGS)

    def descriptors(self) -> list[str]:
        """What its open descriptors are."""
        folder = Path(f"/proc/{self.process.pid}/fd")
        links = []
        for path in folder.iterdir():
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
            node.kill()
            for stream in (node.process.stdout, node.process.stderr):
                assert stream is not None
                stream.close()


def over(started: list[NodeProcess], folder: Path, **more: object) -> RunOptions:
    """Options of a short run over these nodes."""
    values: dict[str, object] = {
        "nodes": tuple(node.address for node in started), "secret_file": folder / "secret", "library": 32,
        "depth": 16, "connections": 2, "results": folder / "logs", "seconds": 0.2, "queries": 100, "bound": 60.0,
    }  # fmt: skip
    return RunOptions(**{**values, **more})  # type: ignore[arg-type]
