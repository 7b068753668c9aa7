"""Batches on a Ray of this machine: results, a lost worker, ports on loopback alone. `make ray` runs them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import engine_work
import pytest

from lanewise.cli.scenario_status import loss_text
from lanewise.engines.choice import open_engine
from lanewise.engines.work import WorkBatch, WorkEngine, WorkerLost, stream
from lanewise.errors import EngineFailure, InputError

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (pip install 'lanewise[ray]')"),
]


@pytest.fixture(scope="module")
def ray() -> Iterator[WorkEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # workers import engine_work
        with open_engine("ray:2") as engine:
            yield engine


def test_each_batch_gives_one_result_and_errors_are_values(ray: WorkEngine) -> None:
    batches = [WorkBatch(number, engine_work.square, (number, -1)) for number in range(20)]
    results = sorted(stream(ray, batches), key=lambda result: result.batch.number)
    assert [result.values[0] for result in results] == [number**2 for number in range(20)]
    errors = {str(result.values[1]) for result in results if isinstance(result.values[1], InputError)}
    assert errors == {"-1 is negative"}


def test_a_lost_worker_costs_its_batch_alone(ray: WorkEngine, tmp_path: Path) -> None:
    dead = str(tmp_path / "killed")
    batches = [WorkBatch(0, engine_work.kill_worker_once, ((dead, 7),))]
    batches += [WorkBatch(number, engine_work.square, (number,)) for number in range(1, 10)]
    results = {result.batch.number: result.values for result in stream(ray, batches)}
    assert results == {0: (7,), **{number: (number**2,) for number in range(1, 10)}}
    assert Path(dead).exists()
    (loss,) = ray.losses
    assert loss_text(loss).startswith("lost a worker of Ray (The worker died unexpectedly")
    assert loss_text(loss).endswith("its 1 scenario runs again")


def test_a_batch_that_no_worker_survives_is_given_up(ray: WorkEngine, capfd: pytest.CaptureFixture[str]) -> None:
    (result,) = stream(ray, [WorkBatch(0, engine_work.kill_worker, (None,))])
    assert isinstance(result.error, WorkerLost)
    assert capfd.readouterr().out == "", "what Ray tells of it does not mix with data"


def test_its_nodes_take_batches_by_name(ray: WorkEngine) -> None:
    (node,) = ray.nodes()
    assert (node.address, node.cpus) == ("127.0.0.1", 2)
    (result,) = stream(ray, [WorkBatch(0, engine_work.square, (3,), node.name)])
    assert result.values == (9,)


def test_every_port_of_it_is_on_loopback(ray: WorkEngine) -> None:
    next(stream(ray, [WorkBatch(0, engine_work.square, (3,))]))
    listening = re.findall(
        r"LISTEN\s+\d+\s+\d+\s+(\S+):\d+\s.*\"(?:ray|gcs|raylet)",
        subprocess.run(["ss", "-ltnp"], capture_output=True, text=True, check=True).stdout,
    )
    assert len(listening) >= 4
    assert {address.strip("[]").removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_a_ray_that_was_imported_for_a_cluster_is_refused() -> None:
    program = "import ray; from lanewise.engines.choice import open_engine; open_engine('ray:1')"
    env = {name: value for name, value in os.environ.items() if name != "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert "would listen on every network" in result.stderr.splitlines()[-1]


def test_the_handler_of_sigterm_is_still_the_programs(ray: WorkEngine) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_an_address_without_a_ray_is_an_error_with_the_command_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EngineFailure, match=f"no Ray at ray://127.0.0.1:{port}: Connection refused") as error:
        open_engine(f"ray://127.0.0.1:{port}")
    assert "ray start --head" in error.value.hint
