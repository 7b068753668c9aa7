"""A signal between a result and its file, and in the midst of the file: the file is whole, nothing else is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from forked_cli import forked
from loadtest import needs

# The program sends itself the signal at a moment of saving; MOMENT is a line of MOMENTS.
CODE = """
import os, signal, sys
from pathlib import Path
number = signal.NUMBER
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
def before(owner, name):
    real = getattr(owner, name)
    def call(*args, **kwargs):
        setattr(owner, name, real)
        signal.raise_signal(number)
        return real(*args, **kwargs)
    setattr(owner, name, call)
def halved(self, data, real=Path.write_bytes):
    if NAME in self.name:
        Path.write_bytes = real
        real(self, data[: len(data) // 2])
        signal.raise_signal(number)
    return real(self, data)
MOMENT
"""
MOMENTS = {
    "summarise": "import lanewise.api.provenance as p; before(p, 'now')",
    "read the log": "import lanewise.loadtest.detail_log as d; before(d, 'parse')",
    "encode": "import lanewise.results.codec as c; before(c, 'run_to_json')",
    "write": "NAME = ''; Path.write_bytes = halved",
    "write the run": "NAME = 'run.json'; Path.write_bytes = halved",
    "rename": "before(Path, 'replace')",
    "return the run": "import lanewise.loadtest.result as r; before(r, 'run_data')",
    "return the peak": "import lanewise.loadtest.result as r; before(r, 'peak_data')",
    "write the result": "NAME = 'result.json'; Path.write_bytes = halved",
    "record a run": "import lanewise.loadtest.state as s; before(s, 'line')",
    "record statistics": "import lanewise.loadtest.state as s; before(s, 'statistics_line')",
    "end the search": "import lanewise.loadtest.peak as p; before(p._Finder, '_result')",
}
QUICK_CHECK = """
from lanewise.api import checking, measure
checking.quick_samples = lambda notes: measure.measure_host(("copy",), threads=(1,), bytes=1 << 20)
"""
ENDS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
HOST = ("measure", "host", "--what", "copy", "--threads", "1", "--bytes", "1MiB")
LOADTEST = (
    "loadtest", "run", "--engine", "synthetic", "--qps", "200", "--seconds", "0.2", "--queries", "10",
    "--bound", "10s", "--results", "logs",
)  # fmt: skip
# Its bound is one that a busy machine keeps as well.
PEAK = (
    "loadtest", "peak", "--engine", "synthetic", "--service", "1 ms", "--sample-bytes", "512 B", "--library", "32",
    "--bound", "500 ms", "--seconds", "1", "--most-runs", "2", "--results", "logs",
)  # fmt: skip


def saved(
    moment: str, number: str, folder: Path, env: dict[str, str], *words: object
) -> subprocess.CompletedProcess[str]:
    """The command that gets a signal at a moment of saving; it ends as that signal should, with no other file left."""
    before = set(folder.rglob("*"))
    done = forked(words, folder, env, CODE.replace("MOMENT", moment).replace("NUMBER", number))
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (ENDS[number], ["interrupted"]), done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in set(folder.rglob("*")) - before if "partial" in path.name]
    return done


@pytest.mark.parametrize(
    ("moment", "number"),
    [("summarise", "SIGINT"), ("encode", "SIGTERM"), ("write the run", "SIGHUP"), ("write the run", "SIGINT")],
)
def test_measure_keeps_its_run(moment, number, tmp_path, clean_env):
    done = saved(MOMENTS[moment], number, tmp_path, clean_env, *HOST, "-o", "run.json", "--samples", "samples.jsonl")
    (row,) = json.loads((tmp_path / "run.json").read_text())["rows"]
    assert len(row["samples"]) == len((tmp_path / "samples.jsonl").read_text().splitlines())
    assert "copy" in done.stdout
    assert "not finished" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "samples.jsonl"}


@pytest.mark.parametrize("moment", ["write", "rename"])
def test_a_signal_while_the_first_sample_is_written_keeps_it(moment, tmp_path, clean_env):
    done = saved(MOMENTS[moment], "SIGTERM", tmp_path, clean_env, *HOST, "-o", "run.json", "--samples", "samples.jsonl")
    (row,) = json.loads((tmp_path / "run.json").read_text())["rows"]
    assert len(row["samples"]) == len((tmp_path / "samples.jsonl").read_text().splitlines()) == 1
    assert "not finished: 1 sample of 1 row kept" in done.stderr


def test_measure_keeps_its_json(tmp_path, clean_env):
    saved(MOMENTS["write"], "SIGINT", tmp_path, clean_env, *HOST, "--json", "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text())["rows"]


@pytest.mark.parametrize(("moment", "number"), [("summarise", "SIGINT"), ("write", "SIGTERM")])
def test_check_keeps_its_run(moment, number, tmp_path, clean_env):
    done = saved(QUICK_CHECK + MOMENTS[moment], number, tmp_path, clean_env, "check", "-o", "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["rows"]
    assert done.stdout


@pytest.mark.parametrize(("moment", "number"), [("encode", "SIGHUP"), ("write", "SIGINT")])
def test_a_study_keeps_its_run_and_its_page(moment, number, tmp_path, clean_env):
    words = ("study", "run", "storage-fabric", "--json", "run.json", "-o", "run.html")
    done = saved(MOMENTS[moment], number, tmp_path, clean_env, *words)
    assert [study["name"] for study in json.loads((tmp_path / "run.json").read_text())["studies"]] == ["storage-fabric"]
    assert (tmp_path / "run.html").read_text().rstrip().endswith("</html>")
    assert "storage-fabric" in done.stdout


@needs.loadgen
@pytest.mark.parametrize(("moment", "number"), [("read the log", "SIGHUP"), ("encode", "SIGINT"), ("write", "SIGTERM")])
def test_a_load_test_keeps_its_run(moment, number, tmp_path, clean_env):
    saved(MOMENTS[moment], number, tmp_path, clean_env, *LOADTEST, "-o", "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["rows"]


@needs.loadgen
@pytest.mark.parametrize(
    ("moment", "number"), [("read the log", "SIGINT"), ("return the run", "SIGTERM"), ("write the result", "SIGHUP")]
)
def test_a_load_test_keeps_its_json_and_shows_its_answer(moment, number, tmp_path, clean_env):
    done = saved(MOMENTS[moment], number, tmp_path, clean_env, *LOADTEST, "--json", "result.json")
    assert json.loads((tmp_path / "result.json").read_text())["queries"] >= 10
    assert "queries" in done.stdout


@needs.loadgen
@pytest.mark.parametrize(
    ("moment", "number"), [("end the search", "SIGTERM"), ("return the peak", "SIGINT"), ("write the result", "SIGHUP")]
)
def test_a_search_keeps_its_json_and_shows_its_answer(moment, number, tmp_path, clean_env):
    done = saved(MOMENTS[moment], number, tmp_path, clean_env, *PEAK, "--json", "result.json")
    assert json.loads((tmp_path / "result.json").read_text())["runs"]
    assert done.stdout


@needs.loadgen
@pytest.mark.parametrize(
    ("moment", "number"), [("read the log", "SIGINT"), ("record a run", "SIGTERM"), ("record statistics", "SIGHUP")]
)
def test_a_search_that_resumes_repeats_no_finished_run(moment, number, tmp_path, clean_env):
    """The signal comes after the first run's end and before it is recorded."""
    saved(MOMENTS[moment], number, tmp_path, clean_env, *PEAK)
    recorded = (tmp_path / "logs" / "search.jsonl").read_text().splitlines()[1:]
    statistics = (tmp_path / "logs" / "accounts.jsonl").read_text().splitlines()
    assert len(recorded) == len(statistics) == len(list((tmp_path / "logs" / "logs").iterdir())) == 1


@needs.loadgen
def test_a_signal_while_the_generator_alone_is_tried_ends_the_program(tmp_path, clean_env):
    """The run keeps its file, with a note; the generator is tried for rates as high as this."""
    moment = "import lanewise.loadtest.selftest as t; before(t, 'holds')"
    words = [*LOADTEST, "--qps", "30000", "--seconds", "0.05", "-o", "run.json"]
    saved(moment, "SIGTERM", tmp_path, clean_env, *words)
    assert "interrupted before the generator's own ceiling was known" in (tmp_path / "run.json").read_text()


def test_a_comparison_is_whole_or_not_there(tmp_path, clean_env, lanewise):
    assert lanewise("study", "run", "storage-fabric", "--json", "a.json").returncode == 0
    saved(MOMENTS["write"], "SIGTERM", tmp_path, clean_env, "compare", "a.json", "a.json", "--json", "both.json")
    assert json.loads((tmp_path / "both.json").read_text())["pairs"]


@pytest.mark.skipif(not Path("/sys/devices").is_dir(), reason="this machine has no /sys to read")
def test_a_capture_is_whole_or_not_there(tmp_path, clean_env, lanewise):
    saved(MOMENTS["write"], "SIGINT", tmp_path, clean_env, "discover", "--capture", "machine.tar.gz")
    done = lanewise("discover", "--from", "machine.tar.gz")
    assert "Traceback" not in done.stderr
    assert "cannot be read" not in done.stderr


EARLIER = '{"an": "earlier sample"}\n'
FAILS = "from lanewise.probes.host.probe import HostProbe\nHostProbe.run = lambda *_: fails()\n"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Samples of an earlier measurement."""
    path = tmp_path / "samples.jsonl"
    path.write_text(EARLIER)
    return path


def _fails(patch: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return forked([*HOST, "--samples", "samples.jsonl"], folder, env, f"import signal, sys\n{patch}")


INTERRUPTED = "def fails():\n    signal.raise_signal(signal.SIGINT)\n    yield\n"
NO_MEMORY = "from lanewise.errors import CannotMeasure\ndef fails():\n    raise CannotMeasure('no memory')\n    yield\n"


@pytest.mark.parametrize(("patch", "code"), [(INTERRUPTED, 130), (NO_MEMORY, 2)])
def test_a_measurement_without_a_sample_keeps_the_earlier_file(patch, code, earlier, clean_env):
    handler = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = _fails(handler + patch + FAILS, earlier.parent, clean_env)
    assert done.returncode == code, done.stderr
    assert earlier.read_text() == EARLIER
    assert list(earlier.parent.iterdir()) == [earlier]


def test_a_full_disk_keeps_the_earlier_file(earlier, clean_env):
    """The limit on a file's size stands for the disk: what exceeds it fails in the same call."""
    code = (
        "import resource, signal, sys\nfrom lanewise.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        "sys.exit(main())"
    )
    done = subprocess.run(  # into pipes, which have no limit
        [sys.executable, "-c", code, *HOST, "--samples", "samples.jsonl"],
        cwd=earlier.parent, env=clean_env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: samples.jsonl: cannot be written: File too large" in done.stderr
    assert "not finished: 1 sample of 1 row kept" in done.stderr
    assert earlier.read_text() == EARLIER
    assert list(earlier.parent.iterdir()) == [earlier]


def test_a_read_only_folder_keeps_the_earlier_file(earlier, clean_env):
    readonly = "import os\nreal = os.access\nos.access = lambda path, mode, **_: mode != os.W_OK and real(path, mode)"
    done = _fails(readonly, earlier.parent, clean_env)
    assert done.returncode == 2
    assert "samples.jsonl: cannot be written" in done.stderr
    assert earlier.read_text() == EARLIER


def test_the_first_sample_takes_the_earlier_files_place(earlier, clean_env):
    done = _fails("", earlier.parent, clean_env)
    assert done.returncode == 0, done.stderr
    assert EARLIER not in earlier.read_text()
    assert all(json.loads(line)["metric"] for line in earlier.read_text().splitlines())
    assert list(earlier.parent.iterdir()) == [earlier]
