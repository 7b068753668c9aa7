"""`lanewise check` as users run it: exit codes, what is printed, JSON, metrics, the saved run, and its errors."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checking import made_machines as made
from cli_binary import BINARY
from in_display_units import sample

from lanewise import api
from lanewise.checking.checkup import Checkup, check
from lanewise.errors import InputError, UnknownName
from lanewise.options.check import devices
from lanewise.report.check_json import check_json
from lanewise.results.observation import Observation
from lanewise.results.run import Run
from lanewise.results.sample import Sample
from lanewise.topology.model import System

Lanewise = Callable[..., Any]
P2P = """\
P2P Connectivity Matrix
     D\\D     0     1
     0	     1     1
     1	     1     1
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1290.00   4.65
     1   4.65 1290.00
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1290.00  48.59
     1  48.59 1290.00
"""
LINE = re.compile(r'lanewise_\w+(\{(\w+="(?:[^"\\\n]|\\.)*",?)*\})? -?[\d.e+-]+')


def save(rows: list[Observation], path: Path) -> Path:
    api.save_run(Run((), "", "", rows=tuple(rows)), path)
    return path


@pytest.fixture
def system() -> System:
    return api.load_system("dgx-a100")


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, float("nan")])
def test_a_tolerance_out_of_range_is_refused_in_python_as_on_the_command_line(tolerance: float, tmp_path: Path):
    (tmp_path / "p2p.txt").write_text(P2P)
    with pytest.raises(InputError, match=f"--tolerance is {tolerance:g}"):
        api.check([tmp_path / "p2p.txt"], "falcon-4010-xeon", tolerance=tolerance)


def test_a_word_for_a_device_that_the_system_lacks_is_refused(lanewise: Lanewise, tmp_path: Path):
    (tmp_path / "p2p.txt").write_text(P2P)
    with pytest.raises(UnknownName, match="unknown device of falcon-4010-xeon 'gpu99'"):
        api.check([tmp_path / "p2p.txt"], "falcon-4010-xeon", devices={"card": "gpu99"})
    done = lanewise("check", "--from", "p2p.txt", "--system", "falcon-4010-xeon", "--as", "card=gpu99")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: unknown device of falcon-4010-xeon 'gpu99'")


def test_a_pasted_dump_gets_a_verdict(lanewise: Lanewise, tmp_path: Path):
    (tmp_path / "p2p.txt").write_text(P2P)
    done = lanewise("check", "--from", "p2p.txt", "--system", "falcon-4010-xeon")
    assert (done.returncode, done.stderr) == (1, "")
    first = done.stdout.splitlines()[1]
    assert first.split()[0] == "slow"
    assert "4.65 GB/s" in first
    assert "4 rows: 2 slow, 2 ok" in done.stdout.splitlines()[-1]


def test_exit_codes_tell_fine_from_wrong_from_not_judged(lanewise: Lanewise, tmp_path: Path, system: System):
    rows = made.rows(system, made.HOST_COPIES)
    save(rows, tmp_path / "fine.json")
    assert lanewise("check", "fine.json", "--system", "dgx-a100").returncode == 0
    save([replace(rows[0], value=5.0), *rows[1:]], tmp_path / "slow.json")
    assert lanewise("check", "slow.json", "--system", "dgx-a100").returncode == 1
    assert lanewise("check", "slow.json", "--system", "nothing").returncode == 2
    assert lanewise("check", "fine.json").returncode == 3
    save([replace(rows[0], flow="host0->gpu77"), *rows[1:]], tmp_path / "unknown.json")
    assert lanewise("check", "unknown.json", "--system", "dgx-a100").returncode == 3
    save([replace(rows[0], value=None, note="no permission"), *rows[1:]], tmp_path / "failed.json")
    failed = lanewise("check", "failed.json", "--system", "dgx-a100")
    assert failed.returncode == 3
    assert "failed: no permission" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.txt",), "none.txt: cannot be read"),
        (("odd.txt",), "odd.txt: neither results of a tool nor a dump of a machine that Lanewise knows"),
        (("run.json", "--tolerance", "many"), "'many' is not a number"),
        (("run.json", "--tolerance", "120%"), "--tolerance is 1.2"),
        (("run.json", "--as", "vol0"), "'vol0' names no device"),
        (("run.json", *2 * ("--expect", "run.json")), "two machines do not say which of them is right"),
        (("run.json", "--set", "path=4"), "--set has no effect without --system"),
        (("run.json", "-o", "no/run.json"), "there is no folder"),
        (("run.json", "--prometheus", "."), "is a folder, not a file"),
    ],
)
def test_what_is_wrong_is_said_on_one_line_with_a_hint(
    lanewise: Lanewise, tmp_path: Path, system: System, arguments: tuple[str, ...], said: str
):
    save(made.rows(system, ["host0->gpu0"]), tmp_path / "run.json")
    (tmp_path / "odd.txt").write_text("nothing of that kind\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = lanewise("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.strip().splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_json_is_in_si_with_the_machine_as_the_user_calls_it(lanewise: Lanewise, tmp_path: Path):
    (tmp_path / "p2p.txt").write_text(P2P)
    done = lanewise("check", "p2p.txt", "--system", "falcon-4010-xeon", "--json", "--name", "rack3-07")
    found = json.loads(done.stdout)
    assert (found["schema"], found["machine"], found["exit_code"]) == ("lanewise.check/1", "rack3-07", done.returncode)
    assert found["counts"] == {"slow": 2, "fast": 0, "failed": 0, "unknown": 0, "ok": 2}
    worst = found["rows"][0]
    assert (worst["verdict"], worst["unit"], worst["measured"]) == ("slow", "B/s", 4.65e9)
    assert worst["low"] < worst["expected"] < worst["high"]
    slow = found["findings"][0]
    assert {found["rows"][number]["verdict"] for number in slow["rows"]} == {"slow"}


def test_every_key_of_the_json_stands_in_its_reference():
    page = (Path(__file__).parents[2] / "docs/reference/check-json.md").read_text()

    found = api.check_data(_checked(api.load_system("falcon-4010-xeon")))

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return {key for item in value for key in keys(item)}
        if isinstance(value, dict):
            own = {str(key) for key in value}
            free = ("settings", "how", "counts")
            return own | {key for name, item in value.items() if name not in free for key in keys(item)}
        return set()

    assert {key for key in keys(found) if f"`{key}`" not in page} == set()


def _checked(system: System) -> Checkup:

    rows = made.rows(system, made.HOST_COPIES)
    return check([replace(rows[0], value=3.0), *rows[1:]], target=system)


def test_metrics_are_written_whole_with_types_and_escaped_labels(lanewise: Lanewise, tmp_path: Path, system: System):
    odd = [replace(row, scenario='a "b"\\c\nd') for row in made.rows(system, ["host0->gpu0", "host0->gpu0"])]
    save(odd, tmp_path / "run.json")
    done = lanewise("check", "run.json", "--system", "dgx-a100", "--prometheus", "lanewise.prom", "--name", "n1")
    assert done.returncode == 0
    text = (tmp_path / "lanewise.prom").read_text()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in samples)
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples), "every series is unique"
    families = {line.partition("{")[0].partition(" ")[0] for line in samples}
    assert families == {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert 'scenario="a \\"b\\"\\\\c\\nd"' in text
    assert sum('verdict="ok"' in line and line.endswith(" 1.0") for line in samples) == 2


def test_measured_rows_are_saved_and_serve_as_the_expectation_of_the_next_check(
    lanewise: Lanewise, tmp_path: Path, system: System
):
    rows = made.rows(system, made.HOST_COPIES)
    save(rows, tmp_path / "new.json")
    assert lanewise("check", "new.json", "--system", "dgx-a100", "-o", "march.json").returncode == 0
    assert api.load_run(tmp_path / "march.json").rows != ()
    later = [replace(row, value=0.93 * (row.value or 0.0)) if "gpu1" in row.flow else row for row in rows]
    save(later, tmp_path / "june.json")
    assert lanewise("check", "june.json", "--expect", "march.json").returncode == 1
    assert lanewise("check", "june.json", "--expect", "march.json", "--tolerance", "10%").returncode == 0


def test_this_machine_is_checked_without_any_file_by_the_real_command(tmp_path: Path):
    done = subprocess.run([BINARY, "check", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads(done.stdout)["exit_code"] == done.returncode


def test_the_same_from_python(tmp_path: Path):
    (tmp_path / "p2p.txt").write_text(P2P)
    found = api.check([tmp_path / "p2p.txt"], "falcon-4010-xeon")
    assert check_json(found)["counts"]["slow"] == 2


def test_two_dates_of_measured_rows_are_compared(lanewise: Lanewise, tmp_path: Path, system: System):
    rows = made.rows(system, made.HOST_COPIES)
    save(rows, tmp_path / "march.json")
    save([replace(row, value=0.5 * (row.value or 0.0)) for row in rows], tmp_path / "june.json")
    done = lanewise("compare", "march.json", "june.json")
    assert done.returncode == 0
    assert "8 pairs: rms difference 50.0 %" in done.stdout


def _stand_in(monkeypatch: pytest.MonkeyPatch, **rates: float) -> None:
    """GPUs of known rates in place of a driver, and no memory to measure."""
    from gpu.stand_in import Cuda

    from lanewise.probes.gpu import probe as gpu

    capacities: dict[str, Any] = {"duplex": 103e9, "peer": 396e9, "link": 55.5e9, **rates}
    cuda: Any = Cuda(**capacities)
    monkeypatch.setattr(gpu, "open_gpus", lambda: gpu.GpuProbe(cuda, Path("/nowhere")))
    monkeypatch.setattr("lanewise.api.measure.measure_host", lambda *_, **__: iter(()))
    monkeypatch.setattr("lanewise.api.discovery.discover", _no_devices)


def _no_devices(*_: object) -> None:
    raise InputError("no GPU, network card or drive on PCI is in it")


def test_the_gpus_of_this_machine_are_measured_and_judged(lanewise: Lanewise, monkeypatch: pytest.MonkeyPatch):
    _stand_in(monkeypatch)
    done = lanewise("check", "--system", "h200-pair")
    assert done.returncode == 0
    assert "this machine is not known" in done.stdout
    assert done.stdout.rstrip().endswith("12 rows: 12 ok")
    _stand_in(monkeypatch, link=25e9)
    slow = lanewise("check", "--system", "h200-pair")
    assert slow.returncode == 1
    # Both GPUs in one finding, whatever the width of the terminal.
    title = "each link of gpu0 and gpu1 may be running at Gen4 x16 or Gen5 x8 (described as Gen5 x16)"
    assert title in " ".join(slow.stdout.split())


def test_an_interrupt_judges_and_keeps_what_was_measured_by_then(
    lanewise: Lanewise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def two(_: list[str]) -> Iterator[Sample]:
        for flow in ("host0->gpu0", "host0->gpu1"):
            yield sample("copy", flow, "goodput", 55.0, "GB/s", {"bytes": 1 << 28}, {"flows": flow})
        raise KeyboardInterrupt

    _stand_in(monkeypatch)
    monkeypatch.setattr("lanewise.api.checking.quick_samples", two)
    done = lanewise("check", "--system", "h200-pair", "-o", "run.json")
    assert done.returncode == 130
    assert "2 rows: 2 ok" in done.stdout
    assert "interrupted: what was measured by then is judged" in done.stdout
    assert len(api.load_run(tmp_path / "run.json").rows) == 2


def test_a_drive_may_be_named_by_its_path():
    assert devices(["/dev/nvme0n1=ssd0", "data.bin = vol0"]) == {"nvme0n1": "ssd0", "data.bin": "vol0"}
