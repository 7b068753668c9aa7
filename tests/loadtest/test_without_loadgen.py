"""Where LoadGen cannot be had, Lanewise says why; what the build finds out is in native/loadgen/source.cmake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINNED = "a2e85d09e3cc0c606f89bfe1fbf97537c8b5b238ae0afbd923ad9c710fcf2ca8"


@pytest.fixture
def without(monkeypatch):
    """As if Lanewise had been built without LoadGen."""
    import lanewise._loadgen_build as build

    monkeypatch.setattr(build, "WHY_NOT", "left out by LANEWISE_LOADGEN=OFF")


def test_doctor_says_why(without):
    from lanewise.installed import dependencies

    (found,) = (piece for piece in dependencies() if piece.piece == "LoadGen")
    assert (found.found, found.detail) == (False, "left out by LANEWISE_LOADGEN=OFF")
    assert "loadtest does not run" in found.without_it


def test_loadtest_is_an_error_with_a_hint(without, capsys):
    from lanewise.cli import verbs

    assert verbs.run(["loadtest", "selftest"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "error: load tests need MLCommons LoadGen, which Lanewise was built without: left out by LANEWISE_LOADGEN=OFF\n"
        "hint:  install Lanewise again where PyPI can be reached, or with LANEWISE_LOADGEN_SDIST=FILE\n"
    )


def _find(folder: Path, sdist: str, python: str = sys.executable) -> str:
    """What the build finds out, by the real functions in a CMake script."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if cmake is None:
        pytest.skip("no cmake here")
    script = folder / "find.cmake"
    script.write_text(
        f'set(CMAKE_CURRENT_BINARY_DIR "{folder}")\nset(Python_EXECUTABLE "{python}")\n'
        f'include("{ROOT}/native/loadgen/source.cmake")\n'
        f'set(why_not "")\nfind_loadgen(6.0.17 {PINNED} source why_not)\nmessage(STATUS "why=${{why_not}}")\n'
    )
    env = {**os.environ, "LANEWISE_LOADGEN_SDIST": sdist, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    done = subprocess.run([cmake, "-P", script], env=env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.rpartition("why=")[2].strip()


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert _find(tmp_path, "/nowhere/mlcommons_loadgen.tar.gz") == "no file /nowhere/mlcommons_loadgen.tar.gz"


def test_a_file_that_is_not_the_pinned_one_is_refused(tmp_path):
    (tmp_path / "other.tar.gz").write_bytes(b"something else")
    assert _find(tmp_path, str(tmp_path / "other.tar.gz")) == "other.tar.gz is not mlcommons_loadgen 6.0.17"


def test_without_a_network_the_build_goes_on(tmp_path):
    assert _find(tmp_path, "") == "pip could not fetch mlcommons_loadgen 6.0.17"
