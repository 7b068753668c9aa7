"""An Accelerator node as a child process (`lanewise serve`), for both divisions on one machine."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from lanewise.errors import CannotMeasure, LanewiseError

if TYPE_CHECKING:
    from lanewise.options.serve import ServeOptions

NAME = "node"
END_S = 10.0  # for a node to end once its Frontend has left
_PROGRAM = "from lanewise.api.child_node import serve_parent; serve_parent()"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@contextmanager
def child_node(
    options_of: Callable[[Path], ServeOptions], say: Callable[[str], object] = lambda _: None
) -> Iterator[tuple[str, Path]]:
    """A node on loopback that serves one Frontend: its address, and the file with its fresh secret.

    `options_of` makes its options, given that file. Its path is that of a descriptor that both processes have open: the
    file has no name of its own, and nothing of it is left whatever ends them. The node ends with its Frontend's session
    or with the block; if this process dies, the kernel ends it. CannotMeasure where it does not start, with its own
    words.
    """
    from lanewise.control.handshake import new_secret

    with TemporaryFile() as file:
        file.write(new_secret().encode())
        file.flush()
        secret = Path(f"/proc/self/fd/{file.fileno()}")  # the same number in the child
        # A session of its own: Ctrl-C at the terminal is for this process, which ends the node when it is done.
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True, pass_fds=(file.fileno(),),
        )  # fmt: skip
        try:
            yield f"127.0.0.1:{_port(child, options_of(secret), say)}", secret
        finally:
            _end(child)


def _port(child: subprocess.Popen[bytes], options: ServeOptions, say: Callable[[str], object]) -> int:
    """The port at which the node listens, after what it says while it loads."""
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError):
        pickle.dump(options, child.stdin)
        child.stdin.close()
    for line in child.stdout:
        report = json.loads(line)
        if "port" in report:
            return int(report["port"])
        if "error" in report:
            raise CannotMeasure(f"the node does not start: {report['error']}", hint=report["hint"])
        say(report["say"])
    raise CannotMeasure(f"the node ended before it listened, with exit code {child.wait()}",
                        hint="start lanewise serve by itself to see why")  # fmt: skip


def _end(child: subprocess.Popen[bytes]) -> None:
    """The node ends by itself after its Frontend; one that has none, or does not end, is killed."""
    try:
        child.wait(END_S if sys.exc_info()[0] is None else 0)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for stream in (child.stdin, child.stdout):
        assert stream is not None
        stream.close()


def serve_parent() -> None:
    """The child's side: serves the process that started it; what it says goes to stdout, a JSON object a line."""
    from lanewise.api.node import serve_node

    die_with(int(sys.argv[1]))
    options = pickle.load(sys.stdin.buffer)
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no report

    def report(**values: object) -> None:
        with suppress(BrokenPipeError):
            print(json.dumps(values), file=reports, flush=True)

    try:
        serve_node(options, say=lambda text: report(say=text), on_ready=lambda port: report(port=port))
    except LanewiseError as error:
        report(error=error.cause, hint=error.hint)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(1)
