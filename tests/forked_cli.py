"""`lanewise` without its start: a process that has loaded what the verbs need forks off a child for each command.

The child is the command in all that tests look at: its own folder, environment, streams and exit code. What the start
itself does is tested on the real binary.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LIBRARIES = (
    "importlib.metadata", "matplotlib.figure", "numpy", "ortools.sat.python.cp_model", "pydantic", "rich.table",
    "scipy.special", "typer.main", "yaml",
)  # fmt: skip
ROOMS = ("api", "catalog", "cli", "perf", "planning", "report", "results", "routes", "serving", "studies", "topology")


def forked(
    arguments: Sequence[object], cwd: Path, env: Mapping[str, str], patch: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `lanewise ARGUMENTS...` did, as subprocess.run with text=True returns it; `patch` is code run before it."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        words = [str(word) for word in arguments]
        request = {"words": words, "cwd": str(cwd), "env": dict(env), "folder": folder, "patch": patch}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(folder, name).read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess(["lanewise", *words], code, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONUTF8": "1"}
    server = subprocess.Popen(
        [sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.kill)
    return server


def _serve() -> None:
    gc.disable()
    _load()
    gc.freeze()  # the children's garbage is their own: what all of them share is not looked at again and not copied
    gc.enable()
    requests, replies = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "r"), (1, "w")))
    for line in iter(requests.readline, ""):
        child = os.fork()
        if child == 0:
            requests.close()
            replies.close()
            _run(json.loads(line))
        replies.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        replies.flush()


def _load() -> None:
    """Modules and built-in parts, which every command would read anew; the start itself stays each child's own."""
    rooms = [importlib.import_module(f"lanewise.{name}") for name in ROOMS]
    modules = [module.name for room in rooms for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    for name in [*LIBRARIES, *modules]:
        if name != "lanewise.cli.main":
            importlib.import_module(name)
    sys.modules["lanewise.api"].load_system("composable-server-gen4")


def _run(request: dict[str, Any]) -> None:
    """Become the command; does not return."""
    code = 1
    try:
        os.chdir(str(request["cwd"]))
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = ["lanewise", *request["words"]]
        for number, path in enumerate((os.devnull, f"{request['folder']}/out", f"{request['folder']}/err")):
            opened = os.open(path, os.O_RDWR | os.O_CREAT)
            os.dup2(opened, number)
            os.close(opened)
        exec(request["patch"], {"__name__": "patch"})
        from lanewise.cli.main import main

        code = main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
