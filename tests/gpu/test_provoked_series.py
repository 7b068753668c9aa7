"""The third to fifth series of faults made on purpose: cases, and runs with programs that only print their names."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks/h200"
sys.path.insert(0, str(FOLDER))
import provoked  # noqa: E402
from provoked_case import Case  # noqa: E402
from provoked_fifth import FIFTH  # noqa: E402
from provoked_fourth import FOURTH  # noqa: E402
from provoked_third import THIRD  # noqa: E402

KEYS = {"algorithm", "common", "counting", "host", "one-direction", "pageable", "peers", "requests", "setting",
        "shared", "software", "staged", "transport"}  # fmt: skip
GPUS = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"]


def posted_names() -> set[str]:
    """Names of the programs of all files, without torch and without CUDA."""
    trees = [ast.parse((FOLDER / f"provoked_{name}.py").read_text()) for name in ("torch", "scripts", "notebooks")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts | set(re.findall(r'\{"([\w-]+)", ', (FOLDER / "provoked_copies.cu").read_text()))


@pytest.fixture
def run(tmp_path: Path) -> dict[str, Any]:
    """What the series write on a machine with two GPUs whose programs print their argument."""
    tools, out = tmp_path / "tools", tmp_path / "out"
    tools.mkdir()
    script = "#!/bin/sh\necho ran $1 with ${NCCL_MAX_NCHANNELS:-no} setting\n"
    smi = "#!/bin/sh\n" + "".join(f"echo 'GPU {i}: {name} (UUID: GPU-{i})'\n" for i, name in enumerate(GPUS))
    for name, text in (("bench", script), ("copies", script), ("cuda-memcpy", script), ("scripts", script),
                       ("notebooks", script), ("nvidia-smi", smi)):  # fmt: skip
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    only = ["--only", "^(third|fourth|fifth)-"]
    command = [str(FOLDER / "provoked.py"), "run", "--tools", str(tools), "-o", str(out), *only]
    path = f"{tools}:{os.environ['PATH']}"
    subprocess.run([sys.executable, *command], check=True, env={**os.environ, "PATH": path}, capture_output=True)
    return {"out": out, "asked": json.loads((out / "expected.json").read_text())}


def test_cases_are_many_and_their_names_once_each() -> None:
    assert 30 <= len(THIRD) <= 36
    assert sum(not case.keys for case in THIRD) >= 12
    assert len(FOURTH) == 28
    assert sum(not case.keys for case in FOURTH) == 12
    assert sum(case.gpus == 1 for case in FOURTH) == 12
    assert len(FIFTH) == 24
    assert sum(not case.keys for case in FIFTH) == 10
    assert sum(case.gpus == 1 for case in FIFTH) == 12
    names = [case.name for case in provoked.CASES]
    assert len(set(names)) == len(names)
    for series, start in ((THIRD, "^third-"), (FOURTH, "^fourth-"), (FIFTH, "^fifth-")):
        assert [case.name for case in provoked.CASES if re.search(start, case.name)] == [case.name for case in series]


def test_no_two_cases_of_a_series_print_by_the_same_program() -> None:
    for series in (FOURTH, FIFTH):
        assert len({case.command for case in series}) == len(series)


@pytest.mark.parametrize("case", THIRD + FOURTH + FIFTH, ids=lambda case: case.name)
def test_a_case_has_its_truth_and_a_program(case: Case) -> None:
    name, *arguments = case.command.split()
    assert name in ("bench", "copies", "cuda-memcpy", "scripts", "notebooks")
    assert name != "scripts" or case.name.startswith("fourth-")
    assert (name == "notebooks") == case.name.startswith("fifth-")
    assert set(arguments) <= posted_names()
    assert case.question
    assert set(case.keys) <= KEYS
    assert case.cause.startswith("none: ") == (not case.keys) == (case.verdict[0] == "ok")
    assert case.verdict[0] in ("ok", "slow", "fast")
    assert not case.beside  # one fault, and nothing else runs


@pytest.mark.parametrize("case", THIRD + FOURTH + FIFTH, ids=lambda case: case.name)
def test_neither_the_post_nor_its_name_gives_the_cause_away(case: Case) -> None:
    post = case.post("12.3 GB/s\n", GPUS)
    assert "{" not in post
    told = case.name + post
    assert not re.search(r"pageable|unpinned|staging|gloo|managed-|provoked|few|memmap|one_stream|stream\b", told)
    assert not re.search(r"float64|twice|contiguous|default|pickle|\.cpu\(", told)
    assert case.shown or "NCCL_" not in post
    if case.shown:
        assert f"$ {case.env} python bench.py\n" in post


def test_a_run_writes_posts_with_their_questions_and_the_truth_apart(run: dict[str, Any]) -> None:
    asked, out = run["asked"], run["out"]
    assert set(asked) == {case.name for case in THIRD + FOURTH + FIFTH}
    hidden = asked["third-ring-b"]
    assert hidden["posted"] == (out / "third-ring-b.txt").read_text()
    assert hidden["posted"].endswith("over 250 GB/s:\n\nran sendrecv with 1 setting\n")  # set, and not shown
    assert hidden["posted"].startswith("2x NVIDIA H100 80GB HBM3 with NVLink")
    assert (hidden["verdict"], hidden["causes"]) == (["slow"], ["setting", "software"])
    assert asked["third-ring-a"]["posted"].endswith("ran sendrecv with no setting\n")
    assert "NCCL_MAX_NCHANNELS=1" in hidden["true_cause"]
    assert "$ NCCL_PROTO=LL python bench.py\n" in asked["third-gather-ll"]["posted"]
    assert asked["third-sizes"]["causes"] == []
    assert "$ NCCL_MAX_NCHANNELS=2 python bench.py\n" in asked["fourth-results"]["posted"]
    assert "$" not in asked["fourth-boxed"]["posted"]
    assert "$ NCCL_PROTO=LL python bench.py\n" in asked["fifth-each"]["posted"]
    assert asked["fifth-describe"]["posted"].endswith("ran gather_described with 1 setting\n")
    assert "NCCL" not in asked["fifth-plain"]["posted"]


def test_the_script_is_bash_and_builds_what_the_series_needs() -> None:
    subprocess.run(["bash", "-n", str(FOLDER / "provoked.sh")], check=True)
    text = (FOLDER / "provoked.sh").read_text()
    compiled = re.findall(r"^compile (\S+)", text, re.MULTILINE)
    built = {*compiled, *re.findall(r'> "\$tools/(\w+)"$', text, re.MULTILINE)}
    assert {case.command.split()[0] for case in THIRD + FOURTH + FIFTH} <= built
