"""A real SIGINT to a real process: what is finished stays, what is missing is named."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
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


# A signal at a chosen import, or at the call of that number: what decides is the program, not the clock.
AT_IMPORT = """
import os, signal, sys
module, number = sys.argv[1:3]
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, number))
sys.meta_path.insert(0, Interrupting())
sys.argv = ["lanewise", *sys.argv[3:]]
from lanewise.cli.main import main
sys.exit(main())
"""
AT_CALL = """
import os, signal, sys
left = int(sys.argv[1])
def count(frame, event, arg):
    global left
    left -= event in ("call", "c_call")
    if left == 0:
        sys.setprofile(None)
        os.kill(os.getpid(), getattr(signal, number))
number = sys.argv[2]
sys.argv = ["lanewise", *sys.argv[3:]]
from lanewise.cli.main import main
sys.setprofile(count)
sys.exit(main())
"""
PREDICT = ("predict", "rack-16gpu", "--service", "resnet50", "--qps", "1000")


def _default_signals() -> None:
    for each in (signal.SIGINT, signal.SIGHUP):  # what runs tests in the background may ignore them
        signal.signal(each, signal.SIG_DFL)


def _signalled(
    code: str, env: dict[str, str], *words: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BINARY.with_name("python"), "-c", code, *map(str, words)],
        cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120, preexec_fn=_default_signals,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["typer", "numpy", "numpy.linalg", "yaml", "lanewise._native"])
def test_ctrl_c_in_an_import_is_one_line(module, clean_env):
    done = _signalled(AT_IMPORT, clean_env, module, "SIGINT", *PREDICT)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1:]) == (130, "", ["interrupted"]), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("call", [1, 10, 100, 1_000, 3_000, 10_000, 20_000, 30_000, 60_000, 100_000])
def test_ctrl_c_at_any_call_is_one_line(call, clean_env):
    done = _signalled(AT_CALL, clean_env, call, "SIGINT", *PREDICT)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr


FIVE_VERBS = {
    "predict": ("predict", "rack-16gpu", "--matrix", "goodput", "--json", "matrix.json"),
    "study": ("study", "run", "storage-fabric", "hop-budget", "--json", "run.json"),
    "measure": ("measure", "host", "--what", "copy", "--threads", "1", "--bytes", "1MiB", "--samples", "samples.jsonl",
                "-o", "run.json"),
    "loadtest": ("loadtest", "run", "--engine", "synthetic", "--qps", "200", "--seconds", "0.1", "--queries", "10",
                 "--bound", "10s", "--results", "logs", "-o", "run.json"),
    "plan": ("plan", "composable-server-two-hosts", "--pattern", "scatter", "--json", "plan.json"),
}  # fmt: skip
WRITTEN = {"matrix.json", "run.json", "samples.jsonl", "plan.json", "logs"}


@pytest.mark.parametrize(("call", "name"), [(1_500, "SIGHUP"), (25_000, "SIGINT"), (90_000, "SIGTERM")])
@pytest.mark.parametrize("verb", FIVE_VERBS)
def test_a_signal_at_any_call_loses_nothing_and_leaves_nothing(verb, call, name, tmp_path, clean_env):
    """benchmarks/interrupts.py does so at random moments; here a call of that number has it, if there are as many."""
    done = _signalled(AT_CALL, clean_env, call, name, *FIVE_VERBS[verb], cwd=tmp_path)
    assert "Traceback" not in done.stderr
    ended = done.returncode in (0, 1)  # 1: a busy machine's load test is INVALID
    assert ended or (done.returncode, done.stderr.splitlines()[-1]) == (128 + getattr(signal, name), "interrupted")
    assert {path.name for path in tmp_path.iterdir()} <= WRITTEN
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())
    if (tmp_path / "samples.jsonl").exists():
        (row,) = json.loads((tmp_path / "run.json").read_text())["rows"]
        assert len(row["samples"]) == len((tmp_path / "samples.jsonl").read_text().splitlines())


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_the_exit_code_names_the_signal(name, code, clean_env):
    done = _signalled(AT_CALL, clean_env, 5_000, name, *PREDICT)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (code, "interrupted")


def test_an_ignored_signal_stays_ignored(clean_env):
    """As nohup does, and a shell for its jobs in the background."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + AT_CALL
    done = _signalled(ignoring, clean_env, 5_000, "SIGINT", "system", "list")
    assert (done.returncode, done.stderr) == (0, "")
