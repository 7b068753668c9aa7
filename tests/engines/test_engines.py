"""Batches on engines of this machine: results, errors, lost workers, cancelled work."""

from __future__ import annotations

import os
import pickle
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import engine_work
import pytest

from lanewise.cli.scenario_status import loss_text
from lanewise.engines import work
from lanewise.engines.choice import open_engine, parse_engine
from lanewise.engines.local import InlineEngine, LocalEngine
from lanewise.engines.wheel import FIRST, project_wheel
from lanewise.engines.wheel_first import prefer_wheel
from lanewise.engines.work import VersionMismatch, WorkBatch, WorkerLost, installed_version, run_batch, stream
from lanewise.errors import EngineFailure, FormatError, InputError


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEngine]:
    with LocalEngine(2) as engine:
        yield engine


def test_each_batch_gives_one_result_whatever_the_order(local: LocalEngine) -> None:
    batches = [WorkBatch(number, engine_work.square, (number, number + 1)) for number in range(7)]
    for engine in (local, InlineEngine()):
        results = sorted(stream(engine, batches), key=lambda result: result.batch.number)
        assert [result.values for result in results] == [(n * n, (n + 1) ** 2) for n in range(7)]


def test_the_work_is_not_done_in_the_calling_process(local: LocalEngine) -> None:
    (result,) = stream(local, [WorkBatch(0, engine_work.process, (None,))])
    assert result.values != (os.getpid(),)


def test_batches_are_read_no_further_than_the_workers_need(local: LocalEngine) -> None:
    read = []

    def batches() -> Iterator[WorkBatch]:
        for number in range(100):
            read.append(number)
            yield WorkBatch(number, engine_work.square, (number,))

    results = stream(local, batches())
    next(results)
    assert len(read) == 4  # two workers, each with one batch more at hand
    results.close()  # type: ignore[attr-defined]


def test_an_item_that_is_refused_has_the_error_as_its_value_and_the_others_go_on(local: LocalEngine) -> None:
    (result,) = stream(local, [WorkBatch(0, engine_work.square, (2, -1, 3))])
    assert (result.values[0], result.values[2]) == (4, 9)
    error = result.values[1]
    assert isinstance(error, InputError)
    assert error.show() == "error: -1 is negative\nhint:  give 0 or more"  # the hint survives the way back


def test_a_lost_worker_costs_its_batch_alone(local: LocalEngine, tmp_path: Path) -> None:
    other = str(tmp_path / "free")
    local.submit(WorkBatch(0, engine_work.wait_for, (other,)))
    local.submit(WorkBatch(1, engine_work.kill_worker_once, ((str(tmp_path / "killed"), 7),)))
    first = local.next_result()
    assert (tmp_path / "killed").exists()
    assert first is not None
    assert first.batch.number == 1, "the other batch waits on, in the worker that was not lost"
    assert first.values == (7,)
    (loss,) = local.losses
    assert loss_text(loss, "scenario") == "lost worker 2 of 2 (killed by signal 9): its 1 scenario runs again"
    Path(other).touch()
    second = local.next_result()
    assert second is not None
    assert second.batch.number == 0
    assert local.next_result() is None


def test_a_batch_that_no_worker_survives_is_given_up(local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.engines.local.RETRIES", 1)
    (result,) = stream(local, [WorkBatch(3, engine_work.kill_worker, (None,))])
    assert isinstance(result.error, WorkerLost)
    assert result.values == ()
    assert "batch 3 (1 items) lost its worker" in str(result.error)
    assert [loss.again for loss in local.losses[-2:]] == [True, False]


def test_cancelled_work_ends_at_once_and_the_engine_takes_more(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(WorkBatch(0, engine_work.wait_for, (str(tmp_path / "never"),)))
    local.cancel()
    assert local.next_result() is None
    assert [result.values for result in stream(local, [WorkBatch(1, engine_work.square, (5,))])] == [(25,)]


def test_a_worker_of_another_version_does_not_run_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pickle.dumps(WorkBatch(0, engine_work.square, (2,)))
    assert run_batch(batch, work.installed_version())[0] == (4,)
    monkeypatch.setattr(work, "installed_version", lambda: "0.1.0")
    with pytest.raises(VersionMismatch, match=r"a worker has Lanewise 0\.1\.0, this is 9\.9"):
        run_batch(b"what this version cannot read", "9.9")


def test_work_that_a_worker_cannot_import_is_an_error_with_the_module() -> None:
    foreign = pickle.dumps(WorkBatch(0, engine_work.square, ())).replace(b"engine_work", b"engine_play")
    with pytest.raises(EngineFailure, match="No module named 'engine_play'"):
        run_batch(foreign, work.installed_version())


def test_engines_by_name() -> None:
    assert parse_engine(None) == ("", 1, "")
    assert parse_engine("local:3") == ("local", 3, "")
    assert parse_engine("ray:2") == ("ray", 2, "")
    assert parse_engine("local")[1] == len(os.sched_getaffinity(0))
    assert parse_engine("ray://[::1]:10001") == ("ray", 0, "ray://[::1]:10001")
    with open_engine(None) as engine:
        assert list(stream(engine, [])) == []


@pytest.mark.parametrize("text", ["", "local:", "local:0", "local:x", "slurm", "ray:-1", "local:99999"])
def test_what_is_no_engine_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_engine(text)
    assert "ray://HOST:10001" in error.value.hint


@pytest.mark.parametrize("text", ["ray://", "ray://head", "ray://head:x", "ray://:10001", "ray://head:99999"])
def test_an_address_needs_host_and_port(text: str) -> None:
    with pytest.raises(FormatError, match="no address of Ray"):
        parse_engine(text)


class OneModuleFinder:
    """An import hook that finds one module, as that of an editable install does."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, None) if name == self.module else None


def test_the_wheel_goes_before_an_editable_install_and_other_hooks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    editable, other = OneModuleFinder("lanewise"), OneModuleFinder("another")
    monkeypatch.setattr(sys, "meta_path", [editable, other, PathFinder])
    prefer_wheel()
    assert sys.meta_path == [other, PathFinder]


def test_the_wheel_carries_what_runs_before_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(project_wheel(tmp_path)) as wheel:
        assert f"{FIRST}.py" in wheel.namelist()
        assert any(name.startswith("lanewise/_native.") for name in wheel.namelist())
        assert f"{FIRST}.py,sha256=" in wheel.read(f"lanewise-{installed_version()}.dist-info/RECORD").decode()
