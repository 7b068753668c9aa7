"""Nodes, cores and caches from trees of /sys as other machines have them."""

from __future__ import annotations

from pathlib import Path

from lanewise.probes.host.layout import HostLayout, read_layout


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


NODE = "sys/devices/system/node"
CPU = "sys/devices/system/cpu"
TWO_SOCKETS = {
    f"{NODE}/node0/cpulist": "0-1,4-5",
    f"{NODE}/node1/cpulist": "2-3,6-7",
    f"{NODE}/node2/cpulist": "",
    f"{NODE}/has_memory": "0-2",
    **{f"{CPU}/cpu{n}/topology/thread_siblings_list": f"{n % 4},{n % 4 + 4}" for n in range(8)},
    **{f"{CPU}/cpu{n}/cache/index0/{key}": text for n in range(4) for key, text in (("level", "1"), ("size", "48K"))},
    **{f"{CPU}/cpu{n}/cache/index3/level": "3" for n in range(4)},
    **{f"{CPU}/cpu{n}/cache/index3/size": "32M" for n in range(4)},
    **{
        f"{CPU}/cpu{n}/cache/index3/shared_cpu_list": text
        for n, text in enumerate(("0,4", "1,5", "2-3,6-7", "2-3,6-7"))
    },
    "proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   1048576 kB",
}


def test_two_sockets_two_threads_a_core_a_cache_for_each_core_and_a_node_of_memory_alone(tmp_path):
    found = read_layout(tree(tmp_path, TWO_SOCKETS), range(8))
    assert found == HostLayout({0: (0, 1), 1: (2, 3), 2: ()}, (0, 1, 2), 64 * 2**20, 2**30)
    assert found.nodes == (0, 1, 2)


def test_cpus_that_this_process_may_not_use_are_left_out(tmp_path):
    found = read_layout(tree(tmp_path, TWO_SOCKETS), {5, 1, 2})
    assert found.cores == {0: (1,), 1: (2,), 2: ()}


def test_a_control_group_may_have_less_memory_than_the_machine(tmp_path):
    limits = {"sys/fs/cgroup/memory.max": "100000", "sys/fs/cgroup/memory.current": "40000"}
    assert read_layout(tree(tmp_path, TWO_SOCKETS | limits), {0}).available == 60000
    assert read_layout(tree(tmp_path, {"sys/fs/cgroup/memory.max": "max"}), {0}).available == 2**30


def test_a_machine_that_shows_nothing_is_one_node(tmp_path):
    assert read_layout(tmp_path, {3, 4}) == HostLayout({0: (3, 4)}, (0,), None, None)
