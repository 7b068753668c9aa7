"""CPU time that others take: told from /proc/stat, of the cores that this process may use."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from lanewise.loadtest.interference import CpuUsage, _ticks, _yielding, cpu_usage

if not Path("/proc/stat").exists():
    pytest.skip("there is no /proc/stat", allow_module_level=True)

# cpu user nice system idle iowait irq softirq steal guest guest_nice
STAT = """\
cpu  900 0 0 900 0 0 0 0 0 0
cpu{here} 100 10 20 300 40 5 6 7 50 0
cpu{there} 800 0 0 600 0 0 0 0 0 0
intr 1
"""


def test_it_counts_the_cores_that_this_process_may_use(tmp_path: Path):
    mine = min(os.sched_getaffinity(0))
    (tmp_path / "stat").write_text(STAT.format(here=mine, there=4095))
    found = cpu_usage(tmp_path)
    assert found is not None
    tick = os.sysconf("SC_CLK_TCK")
    assert (found.all * tick, found.busy * tick) == pytest.approx((488, 148))


def test_processes_of_the_idle_class_count_as_nobodys(tmp_path: Path):
    mine = min(os.sched_getaffinity(0))
    (tmp_path / "stat").write_text(STAT.format(here=mine, there=4095))
    for pid, policy in ((7, 5), (8, 0)):
        (tmp_path / str(pid)).mkdir()
        rest = " ".join(map(str, [*range(3, 14), 30, 5, *range(16, 41), policy, 0, 0]))
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) name) R {' '.join(rest.split()[1:])}\n")
    found = cpu_usage(tmp_path)
    assert found is not None
    assert found.busy * os.sysconf("SC_CLK_TCK") == pytest.approx(148 - 35)


def test_a_process_of_the_idle_class_is_seen_in_the_real_proc():
    # It becomes one of that class when it has used some time, which a busy machine would not give it then.
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as loop:
        stat, spent = Path(f"/proc/{loop.pid}/stat"), 0
        while spent < 5:
            time.sleep(0.01)
            spent = int(stat.read_text().rpartition(")")[2].split()[11])
        os.sched_setscheduler(loop.pid, os.SCHED_IDLE, os.sched_param(0))
        ticks = _yielding(Path("/proc"))
        loop.kill()
    assert ticks >= spent


def test_the_time_of_nodes_on_this_host_is_the_load_tests_own() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as node:
        while _ticks(Path(f"/proc/{node.pid}/stat"))[0] < 5:
            time.sleep(0.01)
        alone, both = cpu_usage(), cpu_usage(nodes=(node.pid, 1 << 30))  # of which one has ended
        node.kill()
    assert alone is not None
    assert both is not None
    assert both.own - alone.own >= 5 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("text", ["", "cpu0 1 2 3\n", "nothing of that kind\n"])
def test_a_system_that_does_not_tell_is_unknown(tmp_path: Path, text: str):
    (tmp_path / "stat").write_text(text)
    assert cpu_usage(tmp_path) is None
    assert cpu_usage(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("after", "others"),
    [
        (CpuUsage(10.0, 9.0, 5.0), 0.4),
        (CpuUsage(10.0, 9.0, 9.5), 0.0),  # rounding of ticks is nobody's time
        (CpuUsage(10.0, 7.0, 1.0), 0.0),  # enough was idle
        (CpuUsage(0.05, 0.05, 0.0), None),
    ],
)
def test_others_took_what_was_busy_and_not_its_own_where_little_was_idle(after: CpuUsage, others: float | None):
    assert after.interference_since(CpuUsage(0.0, 0.0, 0.0)) == (None if others is None else pytest.approx(others))
