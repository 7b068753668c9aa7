"""Work that a hostile input must not make endless: run in a child process with bounded memory.

The inputs that use this would take hours or more memory than the bound if the work were not bounded. The seconds are a
safety net that ends such a child, no measure of speed.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from lanewise.errors import LanewiseError

SAFETY_NET_S = float(os.environ.get("LANEWISE_TEST_SAFETY_NET_S", "180"))


def outcome(work: Callable[[], object], mebibytes: int = 1024) -> str:
    """What became of `work`: its result as text, or `Class: message; hint` of its LanewiseError.

    AssertionError if it does not end, needs more memory than that beyond what is in use, or leaves with another error.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(work, mebibytes, sender))
    child.start()
    sender.close()
    try:
        assert receiver.poll(SAFETY_NET_S), f"still at work after {SAFETY_NET_S:.0f} s: nothing bounds it"
        kind, text = receiver.recv()
    except EOFError:
        kind, text = "died", "the process"
    finally:
        child.kill()
        child.join()
    assert kind == "ended", text
    return str(text)


def _run(work: Callable[[], object], mebibytes: int, sender: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        answer = ("ended", str(work()))
    except LanewiseError as error:
        answer = ("ended", f"{type(error).__name__}: {error}; {error.hint}")
    except BaseException as error:
        answer = ("escaped", f"{type(error).__name__}: {error}")
    sender.send((answer[0], answer[1][:10_000]))
    sender.close()
    os._exit(0)
