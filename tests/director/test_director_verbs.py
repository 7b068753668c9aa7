"""The verbs of `lanewise director` against a director that it serves: as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lanewise import api
from lanewise.cli import verbs
from lanewise.errors import InputError
from lanewise.options.director import CompositionOptions, ServeDirectorOptions, pci_functions

pytest.importorskip("starlette", reason="needs lanewise[director]")
pytest.importorskip("argon2", reason="needs lanewise[director]")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a verb of the director in this process: its exit code, stdout and stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = verbs.run(["director", *map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """`lanewise director serve --demo`, whose address and password are in the environment."""
    command = [sys.executable, "-m", "lanewise.cli.main", "director", "serve", "--demo", "--listen", ":0"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        address = process.stderr.readline()
        assert address.startswith("listening at https://127.0.0.1:"), address
        monkeypatch.setenv("LANEWISE_DIRECTOR_URL", address.split()[-1])
        monkeypatch.setenv("LANEWISE_DIRECTOR_PASSWORD", process.stdout.readline().strip())
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_pool_is_used_from_the_command_line(run: Run, service: subprocess.Popen[str]) -> None:
    code, out, _ = run("compose", "--gpus", "2", "--gpu-rate", "10GB/s", "--name", "train", "--json", "-")
    composed = json.loads(out)
    assert (code, composed["name"], len(composed["blocks"])) == (0, "train", 2)
    assert all(rate["rate"] >= 10e9 for rate in composed["rates"])
    code, out, _ = run("attach", "train", "ssd0")
    assert code == 0
    assert out.startswith(f"train: {composed['server']} with {' '.join(composed['blocks'])} ssd0\nComposed\n")
    code, _, err = run("attach", "train", "gpu0")
    assert code == 2
    assert err == "error: gpu0 is in use by host0-composed\nhint:  choose a free one, or release this one first\n"
    code, _, err = run("detach", "train", "gpu0")
    assert err.splitlines()[1] == f"hint:  it has {', '.join([*composed['blocks'], 'ssd0'])}"
    code, out, _ = run("pool", "--json", "-")
    assert {block["part"] for block in json.loads(out)["blocks"] if "gpu" in block["name"]} == {"h100-nvl", "l40s"}
    code, out, _ = run("pool")
    assert next(line.split()[:2] for line in out.splitlines() if "train" in line) == [composed["server"], "train"]
    code, out, err = run("offer", "--gpus", "8", "--gpu-rate", "50GB/s")
    assert code == 1
    assert err.startswith("error: ")
    assert "nearest offer:" in err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANEWISE_DIRECTOR_PASSWORD", "wrong")
        code, _, err = run("pool")
    assert code == 2
    assert err.startswith("error: the service refuses the login as admin: ")
    assert run("release", "train") == (0, "", "released train\n")
    code, out, _ = run("watch", "--after", "0", "--count", "3", "--json", "-")
    assert [json.loads(line)["text"].split(":")[0] for line in out.splitlines()][-1] == "train"
    service.send_signal(signal.SIGINT)
    assert service.wait() == 0


def test_a_backup_is_restored_into_an_empty_database(run: Run, tmp_path: Path) -> None:
    from director.directors import running, simulated

    first = running(tmp_path / "one.sqlite", simulated())
    blocks = first.director.view().pool.blocks
    code, _, err = run("backup", tmp_path / "b.jsonl", "--database", tmp_path / "one.sqlite")
    first.close()
    assert (code, err) == (0, f"wrote {tmp_path}/b.jsonl: {int(err.split()[-2].replace(',', ''))} rows\n")
    assert (tmp_path / "b.jsonl").stat().st_mode & 0o777 == 0o600
    code, _, err = run("restore", tmp_path / "b.jsonl", "--directory", tmp_path / "two")
    assert code == 0, err
    second = running(tmp_path / "two/director.sqlite", simulated())
    assert second.director.view().pool.blocks == blocks
    second.close()
    code, _, err = run("restore", tmp_path / "b.jsonl", "--directory", tmp_path / "two")
    assert code == 2
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing is requested"),
        ({"gpus": 4, "gpu_rate": 20.0}, "--gpu-rate 20 is 20 B/s, too little"),
        ({"gpu_rate": 1e9, "ssds": 1}, "a rate or a part of gpus, and no number of them"),
        ({"ssds": 1, "gpu_nics": 1}, "--gpu-nics without GPUs"),
    ],
)
def test_requests_that_ask_for_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CompositionOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver": "redfish"}, "--driver redfish and --fabric go together"),
        ({"fabric": "https://chassis"}, "--driver redfish and --fabric go together"),
        ({"demo": True, "database": "x.sqlite"}, "--demo keeps nothing"),
        ({"hardware": {"gpu0": "0000:41:00.0"}}, "--hardware and --accelerator go with --driver qemu"),
        ({"driver": "usb"}, "unknown --driver 'usb'"),
    ],
)
def test_directors_that_cannot_be_served_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ServeDirectorOptions(**options)  # type: ignore[arg-type]


def test_counts_become_requirements() -> None:
    options = CompositionOptions(gpus=4, gpu_rate=20e9, gpu_part="l40s", gpu_nics=1, ssds=2, server="host0")
    request = api.director.composition_request(options)
    first, second = request.requirements
    assert (first.kind, first.count, first.rate, first.part, first.nics) == ("gpu", 4, 20e9, "l40s", 1)
    assert (second.kind, second.count, second.rate, request.server) == ("ssd", 2, None, "host0")


def test_what_names_no_pci_function_is_an_error(run: Run) -> None:
    assert pci_functions(["gpu0=0000:41:00.0"]) == {"gpu0": "0000:41:00.0"}
    code, _, err = run("serve", "--driver", "qemu", "--hardware", "gpu0=41:00")
    assert code == 2
    assert err.splitlines()[0] == "error: --hardware: 'gpu0=41:00' names no PCI function"


def test_a_password_file_that_cannot_be_read_is_an_error(run: Run, tmp_path: Path) -> None:
    code, _, err = run("pool", "--password-file", tmp_path / "none")
    assert code == 2
    assert err.startswith(f"error: cannot read the password in {tmp_path}/none")
