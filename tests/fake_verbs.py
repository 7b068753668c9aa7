"""Builds the libibverbs without devices (native/tests/fake_verbs*), for tests of whatever opens libibverbs.so.1.

`build()` gives the folder of the library: a process with it in LD_LIBRARY_PATH opens it instead of the real one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[1] / "native"
NAME = "libibverbs.so.1"
OLD = "{ local: ibv_reg_dmabuf_mr; };"  # for the linker: as rdma-core before 34


def build(old: bool = False) -> Path:
    """The folder, compiled once for each state of the sources; `old`: without dma-bufs. Skips without a compiler."""
    sources = sorted((NATIVE / "tests").glob("fake_verbs*"))
    state = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    root = Path(tempfile.gettempdir()) / f"lanewise-fake-verbs-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    compiled, library = root / f"{state}.o", root / f"{state}{'-old' * old}" / NAME
    if library.exists():
        return library.parent
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None or not Path("/usr/include/infiniband/verbs.h").exists():
        pytest.skip("no C++ compiler, or no header of libibverbs (Debian: libibverbs-dev)")
    library.parent.mkdir(exist_ok=True)
    text = "".join(f'#include "{file}"\n' for file in sources if file.suffix == ".cpp")
    if not compiled.exists():
        _run(compiler, ["-std=c++20", "-fPIC", "-c", "-x", "c++", "-"], compiled, text)
    script = root / "old.map"
    script.write_text(OLD)
    hidden = [f"-Wl,--version-script={script}"] * old
    _run(compiler, ["-shared", "-pthread", f"-Wl,-soname,{NAME}", str(compiled), *hidden], library)
    return library.parent


def _run(compiler: str, arguments: list[str], target: Path, text: str = "") -> None:
    """The compiler's output, moved there at once, as others may build it too."""
    half = target.with_name(f"{os.getpid()}-{target.name}")
    subprocess.run([compiler, *arguments, "-o", str(half)], check=True, input=text, text=True)
    half.replace(target)
