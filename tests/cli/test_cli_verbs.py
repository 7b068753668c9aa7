"""What each verb gives: data on stdout, progress on stderr, JSON that parses, exit codes 0 and 1."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_binary import BINARY
from inline_snapshot import snapshot

OWN = """\
lanewise: 1
study: own
systems: {mine: rack-16gpu}
tables:
  - name: copies
    system: mine
    metric: goodput
    unit: GB/s
    rows:
      - {label: one, scenario: {flows: "gpu0->gpu1"}, published: 25}
conclusions:
  - {says: faster than light, test: "v('copies', 'one') > 1000"}
"""


def answer(done) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_help_lists_the_verbs_and_what_they_are_for(lanewise):
    done = lanewise("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    verbs = done.stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    assert verbs == snapshot("""\
  discover   Read a machine into a description, from dumps or /sys.
  route      Show the route between two devices, or all pairs and their peers.
  predict    Predict flows, transfers, all pairs, or an inference service.
  plan       Rank systems, place devices, pin network cards, and say why.
  measure    Measure copies, peers, storage and network.
  check      Judge whether each path delivers what it should.
  loadtest   Load-test this machine with MLPerf LoadGen.
  serve      Serve queries as an Accelerator node of load tests.
  director   Compose servers from a pool over Redfish, knowing the bandwidth.
  fleet      Check many machines together: one verdict a node.
  study      Run studies: published tables compared with predictions.
  accuracy   Score predictions on measured machines.
  calibrate  Fit unknown figures of parts to rows of studies.
  report     Write a saved run as one HTML page.
  compare    Compare two runs, sources or systems; show drift.
  system     List, show, draw, export systems; attach and detach devices.
  parts      List and show parts, each figure with its source.
  doctor     List what is installed and what is missing.\
""")


def test_short_flags_and_flags_that_may_stand_anywhere(lanewise):
    assert lanewise("-h").stdout == lanewise("--help").stdout
    assert lanewise("route", "-h").stdout == lanewise("route", "--help").stdout
    assert lanewise("-V").stdout == lanewise("--version").stdout
    quiet = lanewise("predict", "composable-server-gen4", "--service", "resnet50", "--qps", "1000", "-q")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    bold = lanewise("--color", "always", "system", "list").stdout
    assert bold.startswith("\033[1m")
    assert "\033" not in lanewise("system", "list", "--color=never", FORCE_COLOR="1").stdout
    assert "--color is 'blue'" in lanewise("system", "list", "--color", "blue").stderr


def test_json_takes_a_file_or_stdout_on_every_verb(lanewise, tmp_path):
    text = lanewise("system", "list").stdout
    written = lanewise("system", "list", "--json", "systems.json")
    assert (written.stdout, written.stderr) == (text, "wrote systems.json\n")
    assert lanewise("system", "list", "--json").stdout == (tmp_path / "systems.json").read_text()
    assert lanewise("system", "list", "--json", "-").stdout == (tmp_path / "systems.json").read_text()
    refused = lanewise("check", "--json", "systems.json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--json would overwrite systems.json" in refused.stderr


@pytest.mark.parametrize(
    "verb",
    [
        "route",
        "predict",
        "measure",
        "check",
        "loadtest",
        "study",
        "calibrate",
        "report",
        "compare",
        "system",
        "parts",
        "doctor",
    ],
)
def test_every_verb_explains_itself(lanewise, verb):
    done = lanewise(verb, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: lanewise {verb}")


def test_the_version_stands_on_one_line(lanewise):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lanewise("--version").stdout == f"lanewise {project['version']}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["predict", "--nope"], ["nope"], ["measure", "gpu", "--list"]]
)
def test_what_needs_no_model_loads_nothing_heavy(clean_env, arguments):
    """What keeps a start within its budget of 250 ms; benchmarks/start.py takes the time itself."""
    code = (
        "import atexit, sys; from lanewise.cli import main; sys.argv[0] = 'lanewise';"
        "heavy = ('numpy', 'scipy', 'pydantic', 'matplotlib', 'rich', 'yaml', 'jinja2', 'lanewise._native');"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules])); main.main()"
    )
    done = subprocess.run(
        [BINARY.with_name("python"), "-c", code, *arguments], env=clean_env, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_route_names_its_class_and_every_link(lanewise):
    done = lanewise("route", "rack-16gpu", "gpu0", "gpu4")
    assert done.returncode == 0, done.stderr
    assert done.stdout == snapshot("""\
gpu0 -> gpu4   class NODE, pcie, 4 hops
  gpu0 - sw0 - cpu0 - sw1 - gpu4

from  to    link      shared with
gpu0  sw0   Gen4 x16  gpu0->gpu1, gpu0->gpu2, gpu0->gpu3 and 14 more
sw0   cpu0  Gen5 x16  gpu0->gpu5, gpu0->gpu6, gpu0->gpu7 and 56 more
cpu0  sw1   Gen5 x16  gpu0->gpu5, gpu0->gpu6, gpu0->gpu7 and 56 more
sw1   gpu4  Gen4 x16  gpu1->gpu4, gpu2->gpu4, gpu3->gpu4 and 14 more
""")


def test_a_system_without_two_ends_gives_all_classes_and_peers(lanewise):
    done = lanewise("route", "cirrascale-1cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout == snapshot("""\
cirrascale-1cpu
       gpu0  gpu1  gpu2  gpu3  gpu4  gpu5  gpu6  gpu7   ib0  NUMA
gpu0      X   PIX   PIX   PIX   PHB   PHB   PHB   PHB   PHB     0
gpu1    PIX     X   PIX   PIX   PHB   PHB   PHB   PHB   PHB     0
gpu2    PIX   PIX     X   PIX   PHB   PHB   PHB   PHB   PHB     0
gpu3    PIX   PIX   PIX     X   PHB   PHB   PHB   PHB   PHB     0
gpu4    PHB   PHB   PHB   PHB     X   PIX   PIX   PIX   PHB     0
gpu5    PHB   PHB   PHB   PHB   PIX     X   PIX   PIX   PHB     0
gpu6    PHB   PHB   PHB   PHB   PIX   PIX     X   PIX   PHB     0
gpu7    PHB   PHB   PHB   PHB   PIX   PIX   PIX     X   PHB     0
ib0     PHB   PHB   PHB   PHB   PHB   PHB   PHB   PHB     X     0

X    self
PIX  at most one PCIe switch
PHB  through the CPU's host bridge

peers: 28 of 28 pairs of GPUs
""")


def test_concurrent_flows_name_their_limits(lanewise):
    done = lanewise("predict", "composable-server-gen4", "--set", "path=2", "--flows", "host0->gpu0, host0->gpu1")
    assert done.returncode == 0
    assert "link cpu0->hba" in done.stdout or "read" in done.stdout
    assert "all together" in done.stdout


def test_transfers_of_two_sizes_end_at_two_times(lanewise):
    found = answer(lanewise("predict", "rack-16gpu", "--flows", "gpu0->gpu1 1 GiB, gpu0->gpu1 2 GiB", "--json"))
    first, second = found["transfers"]
    assert first["finish"] < second["finish"]


def test_a_matrix_of_chosen_devices(lanewise):
    found = answer(lanewise("predict", "rack-16gpu", "--matrix", "goodput", "--devices", "gpu[0-1],gpu4", "--json"))
    assert found["names"] == ["gpu0", "gpu1", "gpu4"]
    assert found["cells"][0][0] is None
    assert found["cells"][0][1] == found["cells"][1][0] > 1e9


def test_commas_inside_brackets_belong_to_the_range(lanewise):
    ask = ("predict", "rack-16gpu", "--json")
    found = answer(lanewise(*ask, "--matrix", "goodput", "--devices", "gpu[0,4], gpu[8-9]"))
    assert found["names"] == ["gpu0", "gpu4", "gpu8", "gpu9"]
    found = answer(lanewise(*ask, "--flows", "host0->gpu[0,4], gpu1->gpu2"))
    assert [flow["flow"] for flow in found["flows"]] == ["host0->gpu0", "host0->gpu4", "gpu1->gpu2"]


def test_a_drawing_goes_to_stdout_or_a_link_when_named_so(lanewise, tmp_path):
    drawn = lanewise("system", "draw", "h200-pair").stdout
    assert lanewise("system", "draw", "h200-pair", "-o", "/dev/stdout").stdout.strip() == drawn.strip()
    (tmp_path / "link.svg").symlink_to("real.svg")
    assert lanewise("system", "draw", "h200-pair", "-o", "link.svg").returncode == 0
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").read_text().strip() == drawn.strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ("route", "rack-16gpu"),
        ("route", "rack-16gpu", "gpu0", "gpu15", "--all"),
        ("predict", "rack-16gpu", "--flows", "gpu0->gpu1"),
        ("predict", "rack-16gpu", "--matrix", "goodput", "--devices", "gpu[0-2]", "--both-ways", "--no-p2p"),
        ("predict", "falcon-4010-epyc", "--matrix", "latency"),
        ("system", "list"),
        ("system", "show", "pax-storage-fabric"),
        ("study", "list"),
        ("parts", "list"),
        ("parts", "show", "l40s"),
        ("doctor",),
    ],
)
def test_json_is_json_and_nothing_else(lanewise, arguments):
    done = lanewise(*arguments, "--json")
    answer(done)
    assert done.stderr == ""


def test_attached_devices_survive_the_file(lanewise, tmp_path):
    moved = lanewise("system", "attach", "composable-server-two-hosts", "gpu7", "host1", "-o", "moved.yaml")
    assert moved.returncode == 0
    assert moved.stdout == ""
    shown = answer(lanewise("system", "show", "moved.yaml", "--json"))
    assert next(d["host"] for d in shown["devices"] if d["name"] == "gpu7") == "host1"
    assert lanewise("system", "detach", "moved.yaml", "gpu7", "-o", "freed.yaml").returncode == 0
    shown = answer(lanewise("system", "show", "freed.yaml", "--json"))
    assert next(d["host"] for d in shown["devices"] if d["name"] == "gpu7") is None


def test_a_drawing_is_svg(lanewise):
    done = lanewise("system", "draw", "rack-16gpu", "--flows", "gpu0->gpu4")
    assert done.returncode == 0
    assert done.stdout.startswith("<svg")


def test_a_new_study_runs_as_it_is_written_and_is_not_overwritten(lanewise, tmp_path):
    assert lanewise("study", "new", "mine").stdout == "mine.yaml\nmine-system.yaml\n"
    done = lanewise("study", "run", "mine.yaml", "-o", "mine.html", "--json", "mine.json", "--check")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "<html" in (tmp_path / "mine.html").read_text()
    again = lanewise("study", "new", "mine")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_check_turns_a_conclusion_that_does_not_hold_into_exit_code_1(lanewise, tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    assert lanewise("study", "run", "own.yaml").returncode == 0
    done = lanewise("study", "run", "own.yaml", "--check")
    assert done.returncode == 1
    assert "does not hold: faster than light" in done.stderr


def test_data_goes_to_stdout_and_progress_to_stderr(lanewise, tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    done = lanewise("study", "run", "own.yaml", "--json", "own.json")
    assert "own.yaml" in done.stderr
    assert "wrote own.json" in done.stderr
    assert "wrote" not in done.stdout
    assert "faster than light" in done.stdout


def test_two_runs_two_sources_and_the_accuracy_page(lanewise, tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    lanewise("study", "run", "own.yaml", "--json", "own.json")
    same = answer(lanewise("compare", "own.json", "own.json", "--json"))
    assert [pair["difference_pct"] for pair in same["pairs"]] == [0.0]
    sources = answer(lanewise("compare", "own.json", "--sources", "published", "predicted", "--json"))
    assert sources["pairs"][0]["left"] == 25
    assert "| own | 1 | 1 |" in lanewise("study", "accuracy", "own.json").stdout


def test_a_fitted_figure_can_be_used_as_a_part(lanewise, tmp_path):
    fit = ("--fit", "l40s service.resnet50.server 10000..100000 QPS", "--table", "gen4")
    done = lanewise("calibrate", "composable-server", *fit, "-o", "fitted.yaml", "--json")
    found = answer(done)
    assert found["fitted"][0]["key"] == "l40s service.resnet50.server"
    assert len(found["used"]) == 20
    ask = ("predict", "tx2550-m7-l40s", "--service", "resnet50", "--json")
    assert answer(lanewise(*ask))["basis"] == "calibrated"
    served = answer(lanewise(*ask, "--parts", "fitted.yaml"))
    assert served["qps"] == pytest.approx(4 * found["fitted"][0]["value"], rel=1e-6)
    assert served["basis"] == "fitted"


def test_doctor_promises_no_verb_that_does_not_exist(lanewise):
    done = lanewise("doctor")
    assert done.returncode == 0
    for verb in ("loadtest", "director"):
        assert f"lanewise {verb}" not in done.stdout


@pytest.mark.parametrize("verb", ["system show rack-16gpu --yaml", "study run own.yaml", "route rack-16gpu"])
def test_a_reader_that_leaves_early_is_no_error(clean_env, tmp_path, verb):
    (tmp_path / "own.yaml").write_text(OWN)
    os.mkfifo(tmp_path / "closed")  # it says when the reader has left
    command = f"(read < closed; '{BINARY}' {verb}) | (exec <&-; echo > closed); echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=clean_env, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.stdout.splitlines()[-1] == "0"


def test_a_reader_that_leaves_early_does_not_hide_a_verdict(clean_env, tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    command = f"'{BINARY}' study run own.yaml --check --json own.json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=clean_env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "1\n"
    assert (tmp_path / "own.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error_of_two_lines(clean_env):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BINARY, "system", "show", "rack-16gpu"],
            env=clean_env, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: no space left to write the output\nhint:  make room, or write elsewhere\n"


def _on_a_terminal(env: dict[str, str], *arguments: str) -> str:
    """What the binary writes when stdout and stderr are a terminal."""
    parent, child = pty.openpty()
    process = subprocess.Popen([BINARY, *arguments], env=env, stdin=child, stdout=child, stderr=child)
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    process.wait(timeout=300)
    os.close(parent)
    return seen.decode()


def test_colours_only_on_a_terminal_and_only_if_wanted(clean_env, lanewise):
    terminal = {**clean_env, "TERM": "xterm"}
    assert "\033[31m" in _on_a_terminal(terminal, "parts", "show", "nope")
    assert "\033[3" not in _on_a_terminal({**terminal, "NO_COLOR": "1"}, "parts", "show", "nope")
    assert "\033" not in lanewise("parts", "show", "nope", TERM="xterm").stderr
    assert "\033[3" not in _on_a_terminal({**terminal, "NO_COLOR": "1"}, "route", "rack-16gpu")


def test_completion_offers_verbs(clean_env):
    env = {
        **clean_env,
        "_LANEWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": "lanewise pre",
        "COMP_CWORD": "1",
    }
    done = subprocess.run([BINARY], env=env, capture_output=True, text=True, check=False)
    assert "predict" in done.stdout


def test_the_package_hands_out_every_function_of_the_api(clean_env):
    code = (
        "import lanewise; from lanewise import api, units;"
        "print([n for n in api.__all__ if not callable(getattr(lanewise, n))], units.__name__)"
    )
    done = subprocess.run(
        [BINARY.with_name("python"), "-c", code], env=clean_env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] lanewise.units\n"


def test_no_name_of_the_api_is_also_a_room():
    import lanewise
    from lanewise import api

    rooms = {path.stem for path in Path(lanewise.__file__).parent.iterdir()}
    assert not rooms & set(api.__all__)


def test_help_of_predict_shows_its_uses_first_and_groups_options_by_what_they_predict(lanewise):
    text = lanewise("predict", "--help").stdout
    uses = [line.split("SYSTEM ")[1].split()[0] for line in text.splitlines() if line.startswith("  lanewise predict")]
    assert uses == ["--flows", "--collective", "--tokens", "--load", "--service"]
    places = [text.index(f"\n{heading}:\n") for heading in ("A collective", "Blocks of memory and KV caches")]
    assert places[0] < text.index("--algorithm") < places[1] < text.index("--kv-dtype")
    assert text.index("\nOptions:\n") < text.index("--set NAME=NUMBER") < text.index("-h, --help")
    assert "\nA collective:" not in lanewise("compare", "--help").stdout
