"""A real SIGINT to a real process: what is finished stays, what is missing is named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from cli_binary import BINARY, interrupted

FLOWS = ", ".join(f"gpu{i}->gpu{j}" for i in range(8) for j in range(8, 16))
ROW = f'      - {{label: "row NUMBER", scenario: {{flows: "{FLOWS}"}}, published: null}}\n'
HEAD = """\
lanewise: 1
study: NAME
systems: {mine: rack-16gpu}
tables:
  - name: copies
    system: mine
    metric: goodput
    unit: GB/s
    rows:
"""


def _study(folder: Path, name: str, rows: int) -> str:
    text = HEAD.replace("NAME", name) + "".join(ROW.replace("NUMBER", str(i)) for i in range(rows))
    (folder / f"{name}.yaml").write_text(text)
    return f"{name}.yaml"


def test_ctrl_c_keeps_the_finished_study_and_names_the_missing_ones(tmp_path, clean_env):
    names = [_study(tmp_path, "first", 1), _study(tmp_path, "long", 1_000), _study(tmp_path, "last", 1)]
    command = [BINARY, "study", "run", *names, "--json", "run.json", "-o", "run.html"]
    done = interrupted(command, (tmp_path / "run.json").exists, tmp_path, clean_env)

    assert done.returncode == 130, done.stderr
    assert "not finished: long.yaml, last.yaml" in done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    assert "first" in done.stdout
    assert [study["name"] for study in json.loads((tmp_path / "run.json").read_text())["studies"]] == ["first"]
    assert "first" in (tmp_path / "run.html").read_text()


def test_ctrl_c_before_anything_is_finished_is_one_line(tmp_path, clean_env):
    name = _study(tmp_path, "long", 1_000)
    done = interrupted([BINARY, "study", "run", name, "--json", "run.json"], None, tmp_path, clean_env)
    assert done.returncode == 130
    lines = done.stderr.splitlines()
    assert (lines[0], lines[-1]) == ("long.yaml", "interrupted")
    assert done.stdout == ""
    assert not (tmp_path / "run.json").exists()


def test_ctrl_c_while_the_program_loads_is_one_line(clean_env):
    code = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from lanewise.cli.main import main
sys.exit(main())
"""
    done = subprocess.run(
        [BINARY.with_name("python"), "-c", code], env=clean_env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_while_a_compiled_module_loads_is_an_interrupt(monkeypatch, capsys):
    from lanewise.cli import verbs

    def loading(_: object) -> int:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr(verbs, "_run", loading)
    assert verbs.run(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
