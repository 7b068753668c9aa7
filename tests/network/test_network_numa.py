"""Which card carries a route and where it hangs, read from copies of /sys."""

from __future__ import annotations

import os

import pytest

from lanewise.control import rdma
from lanewise.control.interfaces import interface_of
from lanewise.errors import CannotMeasure
from lanewise.probes import machine
from lanewise.probes.network import numa


@pytest.fixture
def sys_tree(tmp_path, monkeypatch):
    for name, node in (("eth0", "1"), ("eth1", "0"), ("eth2", "-1")):
        (tmp_path / "net" / name / "device").mkdir(parents=True)
        (tmp_path / "net" / name / "device" / "numa_node").write_text(node + "\n")
    for upper, lowers in (("vlan5", ["eth0"]), ("bond0", ["eth0", "eth1"])):
        for lower in lowers:
            (tmp_path / "net" / upper / f"lower_{lower}").mkdir(parents=True)
    for name, state in (("mlx5_0", "1: DOWN"), ("mlx5_1", "4: ACTIVE")):
        port = tmp_path / "ib" / name / "ports" / "1"
        (port / "gids").mkdir(parents=True)
        (port / "gid_attrs" / "types").mkdir(parents=True)
        (port / "state").write_text(state)
        gids = [("fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1"), ("fe80::2", "RoCE v2"),
                ("0000:0000:0000:0000:0000:ffff:0a09:0001", "IB/RoCE v1"),
                ("0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2")]  # fmt: skip
        for index, (gid, kind) in enumerate(gids):
            (port / "gids" / str(index)).write_text(gid)
            (port / "gid_attrs" / "types" / str(index)).write_text(kind)
    node = tmp_path / "devices" / "system" / "node" / "node3"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-4095\n")
    monkeypatch.setattr(numa, "NET", tmp_path / "net")
    monkeypatch.setattr(rdma, "RDMA", tmp_path / "ib")
    monkeypatch.setattr(machine, "SYS", tmp_path)


@pytest.mark.usefixtures("sys_tree")
@pytest.mark.parametrize(
    ("interface", "node"),
    [("eth0", 1), ("eth1", 0), ("eth2", None), ("vlan5", 1), ("bond0", None), ("lo", None), ("", None), ("none", None)],
)
def test_the_node_of_an_interface_is_that_of_the_card_below_it(interface, node):
    assert numa.node_of_interface(interface) == node


@pytest.mark.usefixtures("sys_tree")
def test_the_first_active_device_and_its_roce_v2_ipv4_gid_are_found():
    assert rdma.rdma_device(None) == "mlx5_1"
    assert rdma.rdma_device("mlx5_0") == "mlx5_0"
    assert rdma.gid_of("mlx5_1") == 3
    with pytest.raises(CannotMeasure, match="there is no RDMA device mlx4_0") as error:
        rdma.rdma_device("mlx4_0")
    assert error.value.hint == "found: mlx5_0, mlx5_1"


@pytest.mark.usefixtures("sys_tree")
def test_cpus_of_a_node_are_those_this_process_may_use():
    assert set(numa.cpus_of(3)) == os.sched_getaffinity(0)
    with pytest.raises(CannotMeasure, match="no NUMA node 4"):
        numa.cpus_of(4)


def test_loopback_has_no_card():
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("::ffff:127.0.0.1") == "lo"
    assert interface_of("192.0.2.77") == ""
