"""Frontend and nodes in network namespaces of their own, joined by links of unequal rates: real TCP, real NICs to lose.

They need root, `ip` and `tc`; without them they are skipped with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from dispatch.namespaces import Fabric, NoNamespaces, fabric
from dispatch.nodes import NodeProcess, load_test

OPTIONS = ("--engine", "synthetic", "--service", "200 us", "--sample-bytes", "20 KB")
TEST = ("--depth", "16", "--connections", "2", "--bound", "1 s", "--percentile", "0.9")
# A Frontend that takes the link to the second node down when queries were answered.
LINK_DOWN = """
import subprocess
from lanewise.loadtest import frontend_session
taken = []
def tick(issued, answered, late):
    if answered and not taken:
        taken.append(subprocess.run(["ip", "link", "set", "port1", "down"], check=True))
class NicTaker(frontend_session.NetworkRunner):
    def __init__(self, system, folder, setup, old):
        super().__init__(system, folder, setup, tick)
frontend_session.NetworkRunner = NicTaker
"""


@pytest.fixture(scope="module")
def two_links() -> Iterator[Fabric]:
    """Links of 200 and 50 Mbit/s."""
    try:
        with fabric("200mbit", "50mbit") as built:
            yield built
    except NoNamespaces as lack:
        pytest.skip(f"no network namespaces here: {lack}")


@pytest.fixture(scope="module")
def pair(two_links: Fabric, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[NodeProcess]]:
    """A node behind each."""
    folder = tmp_path_factory.mktemp("nodes")
    started: list[NodeProcess] = []
    try:
        for number, name in enumerate("ab"):
            inside, host = two_links.inside(number), two_links.host(number)
            started.append(NodeProcess(folder, name, OPTIONS, host=host, prefix=inside))
        yield started
    finally:
        for node in started:
            node.close()


def test_every_query_over_unequal_links_is_answered_and_verified(
    two_links: Fabric, pair: list[NodeProcess], tmp_path: Path
) -> None:
    words = ("run", "--scenario", "server", "--audit", "payload", "--library", "300", "--qps", "150", *TEST)
    done, result = load_test(tmp_path, pair, words, prefix=two_links.inside())
    assert done.returncode == 0, done.stderr
    assert result["audit"]["figures"] == {"checked": 300.0, "wrong": 0.0}
    assert result["queries"] == sum(node["answered"] for node in result["nodes"]) == 300
    assert all(node["answered"] > 0 for node in result["nodes"])
    assert result["about"]["transport"] == "tcp"  # one boot of one kernel, and yet no shared memory, and no loopback


def test_a_server_search_over_unequal_links_gives_a_verdict(
    two_links: Fabric, pair: list[NodeProcess], tmp_path: Path
) -> None:
    words = ("peak", "--seconds", "1", "--most-runs", "3", "--library", "64", *TEST)
    done, result = load_test(tmp_path, pair, words, prefix=two_links.inside())
    assert done.returncode == (0 if result["valid"] else 1), done.stderr  # how fast, a busy machine decides
    assert result["runs"]
    assert not any("lost" in reason for run in result["runs"] for reason in run["reasons"])
    assert [node["name"] for node in result["nodes"]] == ["a", "b"]
    if result["valid"]:
        assert sum(node["answered"] for node in result["nodes"]) == result["queries"]


def test_a_node_whose_nic_is_gone_is_named_and_serves_again_once_it_is_back(
    two_links: Fabric, pair: list[NodeProcess], tmp_path: Path
) -> None:
    lost = pair[1]
    words = ("run", "--qps", "200", "--seconds", "2", "--queries", "100", "--library", "32", *TEST)
    done, result = load_test(tmp_path, pair, words, prefix=two_links.inside(), patch=LINK_DOWN)
    assert done.returncode == 1, done.stderr
    assert result, done.stderr
    assert result["verdict"] == "INVALID"
    reason = result["reasons"][0]
    assert reason.startswith(f"node {lost.address} was lost: it was silent for 5 s; "), reason
    assert reason.endswith(" queries unanswered")
    assert reason in done.stderr
    assert "was silent for 5 s after" in lost.line("client 10.77.0.1 was")
    two_links.link(1, "up")
    again, whole = load_test(tmp_path, pair, ("run", "--audit", "payload", "--library", "32", *TEST),
                             prefix=two_links.inside(), name="again")  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert whole["audit"]["figures"] == {"checked": 32.0, "wrong": 0.0}
