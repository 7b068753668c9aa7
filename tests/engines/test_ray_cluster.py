"""Several Ray nodes on this machine, reached at an address: the wheel that they get, and a node that is lost.

`make ray` runs them, `make nightly` the one that loses a node. Nodes of other machines are the same to the driver; none
was tried.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import engine_work
import pytest
from engine_work import Rate

from lanewise.api.scenarios import Scenario, ScenarioProgress, run_scenarios, scenario_key
from lanewise.engines.choice import open_engine
from lanewise.engines.work import VersionMismatch, WorkBatch, stream

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (pip install 'lanewise[ray]')"),
]


@dataclass
class RayNodes:
    """A cluster of this machine and the address of its client server."""

    cluster: Any
    address: str


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    """A head without CPUs and two nodes with one each, all on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "600")  # on a busy machine 30 s are too short
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # workers import engine_work
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # Ray's nodes call pip
        from ray.cluster_utils import Cluster

        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        head = {"num_cpus": 0, "ray_client_server_port": port, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1)
            yield RayNodes(cluster, f"ray://127.0.0.1:{port}")
        finally:
            cluster.shutdown()


def test_workers_import_the_wheel_of_the_driver(nodes: RayNodes) -> None:
    with open_engine(nodes.address) as engine:
        (result,) = stream(engine, [WorkBatch(0, resolve_name, ("lanewise:__file__", "lanewise._native:__file__"))])
        assert all("py_modules_files/lanewise-" in file for file in result.values)
        assert engine.workers == 2
        assert sorted(node.cpus for node in engine.nodes()) == [0, 1, 1]


def test_a_worker_of_another_version_is_refused(nodes: RayNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine(nodes.address) as engine:
        monkeypatch.setattr(engine, "_version", "9.9")
        with pytest.raises(VersionMismatch, match=r"a worker has Lanewise .*, this is 9\.9"):
            list(stream(engine, [WorkBatch(0, engine_work.square, (2,))]))


@pytest.mark.nightly
def test_a_node_that_is_lost_costs_no_row_and_doubles_none(nodes: RayNodes) -> None:
    scenarios = [Scenario(number, scenario_key("cluster", number)) for number in range(80)]
    removed: list[Any] = []

    def lose_a_node(progress: ScenarioProgress) -> None:
        if progress.finished and not removed:
            removed.append(nodes.cluster.list_all_nodes()[-1])
            nodes.cluster.remove_node(removed[0], allow_graceful=False)

    with open_engine(nodes.address) as engine:
        answers = list(run_scenarios(scenarios, engine_work.slow_rate, engine, None, lose_a_node))
    assert removed
    assert sorted(place for place, _ in answers) == list(range(80))
    assert all(rate == Rate(f"row {place}", place / 3) for place, rate in answers)
