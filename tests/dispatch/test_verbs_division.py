"""Load tests over RDMA: both commands in a User-Mode Linux guest, and which ports and memory they take."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lanewise.installed import loadgen_missing

if sys.platform != "linux":
    pytest.skip("load tests are for Linux", allow_module_level=True)
if missing := loadgen_missing():
    pytest.skip(f"built without LoadGen: {missing}", allow_module_level=True)

from dispatch.nodes import nodes, over
from network.rdma_guest import run_in_guest

import lanewise
from lanewise import _native as native
from lanewise.control import rdma
from lanewise.control.rdma import RdmaPort, usable_ports
from lanewise.dispatch import frontend, host, verbs
from lanewise.errors import CannotMeasure

NO_RDMA = """
from lanewise.dispatch import host
from lanewise.errors import CannotMeasure
def fails(*_):
    raise CannotMeasure("its link is down")
host.usable_ports = fails
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the load tests in the guest came to."""
    script, folder = Path(__file__).with_name("verbs_commands.py"), tmp_path_factory.mktemp("guest")
    path = os.pathsep.join(filter(None, (str(script.parents[1]), os.environ.get("PYTHONPATH"))))
    printed = run_in_guest("env", f"PYTHONPATH={path}", sys.executable, script, folder)
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert len(found) == 5, printed
    return found


@pytest.mark.guest
def test_the_payload_audit_passes_over_verbs(runs: list[dict[str, Any]]) -> None:
    assert runs[0]["audit"] == {"checked": 300.0, "wrong": 0.0}
    assert runs[0]["setup"]["transport"] == "verbs (one host)"
    assert runs[0]["nics"] == ["rxe0"]
    assert "left after" in runs[0]["session"]
    assert "queries over 2 connections (verbs)" in runs[0]["session"]


@pytest.mark.guest
def test_a_device_and_a_gid_that_do_not_fit_are_named(runs: list[dict[str, Any]]) -> None:
    assert (runs[1]["error"], runs[1]["hint"]) == ("there is no RDMA device rxe9", "found: rxe0")
    assert runs[2]["error"].startswith("no RDMA port of this side (rxe0: RoCE v2 IPv6) is of the kind of one of node")
    assert "--gid-index" in runs[2]["hint"]


@pytest.mark.guest
def test_auto_is_verbs_between_two_hosts_with_rdma_and_says_why_not_shm(runs: list[dict[str, Any]]) -> None:
    setup = runs[3]["setup"]
    assert setup["transport"] == "verbs"
    assert setup["why not shm"].endswith("shares no memory with this process")
    assert "why not verbs" not in setup


def test_auto_is_tcp_without_rdma_and_says_why_not_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "boot_id", lambda: "another host's")
    with nodes(tmp_path, "a", patch=NO_RDMA) as started:
        setup = lanewise.loadtest_run(over(started, tmp_path, qps=500.0)).setup
        with pytest.raises(CannotMeasure, match=r"node 127.0.0.1:\d+: its link is down") as error:
            lanewise.loadtest_run(over(started, tmp_path, qps=500.0, transport="verbs"))
    assert str(setup["transport"]).startswith("tcp")
    assert setup["why not verbs"] == f"node {started[0].address}: its link is down"
    assert error.value.hint == "use --transport tcp"


@pytest.mark.guest
def test_a_killed_node_ends_its_run_and_is_named(runs: list[dict[str, Any]]) -> None:
    said = runs[4].get("error") or " ".join(runs[4]["reasons"])
    assert "node 10.9.0.1:" in said
    assert "was lost" in said


def port(device: str, gid: str = "0a090001", kind: str = "RoCE v2 IPv4", node: int | None = None) -> RdmaPort:
    return RdmaPort(device, 1, 3, (20 * "0" + "ffff" + gid) if len(gid) == 8 else gid, kind, node)


def test_connections_spread_over_the_ports_of_one_network() -> None:
    local = [port("a0", "0a090001"), port("a1", "0a0a0001")]
    remote = [port("b0", "0a0a0002"), port("b1", "0a090002"), port("b2", kind="InfiniBand fe80000000000000")]
    chosen = verbs.choose_ports("n", local, remote, 4)
    assert [(one.device, remote[index].device) for one, index in chosen] == 2 * [("a0", "b1"), ("a1", "b0")]
    routed = verbs.choose_ports("n", local, [port("b0", "0b000001"), port("b1", "0b000101")], 4)
    assert sorted((one.device, index) for one, index in routed) == [("a0", 0), ("a0", 0), ("a1", 1), ("a1", 1)]


def test_ports_of_two_kinds_are_no_pair() -> None:
    with pytest.raises(CannotMeasure, match=r"this side \(a0: RoCE v2 IPv4\) .* node n \(b0: RoCE v1 IPv6\)"):
        verbs.choose_ports("n", [port("a0")], [port("b0", kind="RoCE v1 IPv6")], 1)


def test_more_locked_memory_than_the_limit_is_refused_with_both() -> None:
    verbs.check_locked("n", 1 << 30, None)
    with pytest.raises(CannotMeasure, match=r"8 MiB of locked memory at n, the limit is 64 KiB") as error:
        verbs.check_locked("n", 8 << 20, 64 << 10)
    assert "ulimit -l" in (error.value.hint or "")


def test_a_process_that_may_lock_memory_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.resource, "getrlimit", lambda _: (1 << 16, 1 << 16))
    (tmp_path / "proc/self").mkdir(parents=True)
    for mask, limit in (("0000000000004000", None), ("0000000000003fff", 1 << 16)):
        (tmp_path / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{mask}\n")
        assert host.lockable_memory(tmp_path) == limit


def test_slots_and_threads_are_near_the_nic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = min(os.sched_getaffinity(0))
    for node, cpulist in (("node0", f"{cpu}"), ("node1", "4090-4095")):
        (tmp_path / "devices/system/node" / node).mkdir(parents=True)
        (tmp_path / "devices/system/node" / node / "cpulist").write_text(cpulist)
    monkeypatch.setattr(verbs, "SYS", tmp_path)
    assert (verbs.cpus_near(0), verbs.cpus_near(1), verbs.cpus_near(None)) == ((cpu,), (), ())
    assert [verbs.node_number(node) for node in (0, 1, None)] == [0, 1, -1]
    assert verbs.common_node([port("a", node=1), port("b", node=1)]) == 1
    assert verbs.common_node([port("a", node=1), port("b", node=0)]) == verbs.common_node([]) == -1


def test_usable_ports_are_active_and_known_to_libibverbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gid = "0000:0000:0000:0000:0000:ffff:0a09:0001"
    monkeypatch.setattr(rdma, "RDMA", tmp_path)
    monkeypatch.setattr(native, "verbs_devices", lambda: ["m0", "m1"])
    with pytest.raises(CannotMeasure, match="no RDMA device with an active port"):
        usable_ports()
    for name, number, state in (("m0", "1", "1: DOWN"), ("m0", "2", "4: ACTIVE"), ("m2", "1", "4: ACTIVE")):
        folder = tmp_path / name / "ports" / number
        (folder / "gids").mkdir(parents=True)
        (folder / "gid_attrs/types").mkdir(parents=True)
        for path, text in (("state", state), ("link_layer", "Ethernet"), ("gids/0", gid),
                           ("gid_attrs/types/0", "RoCE v2")):  # fmt: skip
            (folder / path).write_text(text + "\n")
    assert usable_ports() == [RdmaPort("m0", 2, 0, gid.replace(":", ""), "RoCE v2 IPv4")]
    with pytest.raises(CannotMeasure, match="libibverbs does not know the RDMA device m2"):
        usable_ports("m2")
    with pytest.raises(CannotMeasure, match="m0 has no GID 7"):
        usable_ports("m0", 7)


def test_without_libibverbs_verbs_are_refused_with_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> list[str]:
        raise native.ProbeFailure("libibverbs is missing", "install rdma-core")

    monkeypatch.setattr(native, "verbs_devices", fails)
    with pytest.raises(CannotMeasure, match="libibverbs is missing"):
        usable_ports()
    facts = host.host_facts()
    assert (facts.rdma, facts.no_rdma) == ([], "libibverbs is missing")
