"""What tools printed on one H100, two and four H200 while something was wrong on purpose (benchmarks/h200/provoked.py),
and while nothing was: verdicts and causes, by the text alone and with the lists that people post beside it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.causes.contention import calls_of_one_length
from lanewise.checking.checkup import EXIT_FINE, EXIT_OPEN, EXIT_WRONG
from lanewise.errors import LanewiseError

TEXTS = Path(__file__).parent / "provoked"
HEALTHY = ("nvbandwidth-host", "nvbandwidth-host-gpu-busy", "nvbandwidth-peers", "bandwidthTest-pinned",
           "bandwidthTest-pageable", "p2p", "all_reduce", "all_gather", "sendrecv", "four-nvbandwidth-host",
           "four-p2p", "four-all_reduce", "four-all_gather", "four-sendrecv", "four-alltoall",
           "four-reduce_scatter-ll128", "one-nvbandwidth-host", "one-nvbandwidth-host-gpu-busy",
           "one-nvbandwidth-host-cpu-busy", "one-nvbandwidth-small-buffers-shown", "one-nvbandwidth-kernels",
           "one-bandwidthTest-pinned", "one-bandwidthTest-pageable", "one-blog", "one-gpu-stream", "one-gpu_copy-host",
           "one-TransferBench-p2p", "four-TransferBench-p2p", "four-TransferBench-a2a", "four-simpleP2P",
           "one-later-bandwidthTest-gpu-busy", "one-later-nvbandwidth-kernels-beside-copies",
           "four-gpu_copy-peers", "four-all_reduce-tcp-settings-shown", "four-all_reduce-level-shown",
           "four-all_reduce-no-shared-memory-shown", "four-torch_all_reduce")  # fmt: skip
# Healthy, and not all of it can be judged: single cold copies, kernels both ways, one disturbed copy, small messages.
NOT_ALL_FINE = ("one-simpleMultiCopy", "one-gpu_copy-host-both-ways", "one-bandwidthTest-shmoo",
                "four-all_reduce-small")  # fmt: skip
# What is said first, where the text shows it; else what is among the first two.
SHOWN = {
    "all_reduce-p2p-off-shown": "NCCL_P2P_DISABLE=1",
    "all_reduce-p2p-off-log": "NCCL_P2P_DISABLE=1",
    "all_reduce-ll-shown": "NCCL_PROTO=LL",
    "all_reduce-one-channel-log": "NCCL_MAX_NCHANNELS=1",
    "all_reduce-four-channels-shown": "NCCL_MAX_NCHANNELS=4",
    "four-all_reduce-tree-shown": "NCCL_ALGO=Tree",
    "four-all_reduce-small-buffers-shown": "NCCL_BUFFSIZE=65536",
    "four-all_gather-two-channels-shown": "NCCL_MAX_NCHANNELS=2",
    "four-all_reduce-few-threads-shown": "NCCL_NTHREADS=64",
}
NOT_SHOWN = {
    "all_reduce-p2p-off": "not in use|peer copies are off",
    "all_gather-p2p-off": "not in use|peer copies are off",
    "sendrecv-p2p-off": "not in use|peer copies are off",
    "four-all_reduce-p2p-off": "not in use|peer copies are off",
    "four-alltoall-p2p-off": "not in use|peer copies are off",
    "four-broadcast-p2p-off": "not in use|peer copies are off",
    "all_reduce-sockets-log": "NCCL_SHM_DISABLE=1|TCP sockets|NCCL_P2P_DISABLE=1",
}
# By the text alone, too, where a link that is fine in the other direction shows it.
BUSY = ("nvbandwidth-host-beside-copies", "one-nvbandwidth-host-beside-copies", "one-bandwidthTest-beside-copies",
        "one-bandwidthTest-memory-busy", "one-later-nvbandwidth-host-beside-d2h", "one-later-bandwidthTest-beside-d2h",
        "one-later-bandwidthTest-beside-two", "one-later-gpu_copy-host-beside-d2h",
        "four-gpu_copy-peers-beside-copies")  # fmt: skip
# Where lists describe the machine: the others are too little to be called slow by their text alone.
BUSY_IF_DESCRIBED = ("four-TransferBench-p2p-beside-copies", "four-simpleP2P-beside-copies", "four-p2p-gpu-busy",
                     "four-torch_all_reduce-gpu-busy", "four-all_reduce-gpu-busy",
                     "four-all_reduce-cpu-busy", "four-all_reduce-beside-job",
                     "nvbandwidth-peers-beside-copies", "p2p-beside-copies",
                     "one-gpu_copy-host-beside-copies")  # fmt: skip
OTHERS = ("all_reduce-sockets", "all_reduce-ll", "all_reduce-one-channel", "all_reduce-beside-copies",
          "nvbandwidth-host-beside-copies", "nvbandwidth-host-memory-busy")  # fmt: skip


@pytest.fixture(params=["alone", "with lists"])
def checked(request):
    return lambda name: api.check([TEXTS / f"{name}.txt", *([lists(name)] if request.param == "with lists" else [])])


def lists(name):
    """nvidia-smi -L, topo -m and lscpu of the machine of a text."""
    number = name.partition("-")[0]
    return TEXTS / (f"lists-{number}" if number in ("one", "four") else "lists")


def first_causes(checkup, most):
    slow = next(finding for finding in checkup.findings if finding.kind == "slow")
    return [cause.what for cause in slow.causes[:most]]


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_slow_where_nothing_is_wrong(checked, name):
    assert {str(result.verdict) for result in checked(name).results} <= {"ok", "unknown"}


@pytest.mark.parametrize("name", HEALTHY)
def test_all_is_fine_where_the_lists_describe_the_machine(name):
    assert api.check([TEXTS / f"{name}.txt", lists(name)]).exit_code == EXIT_FINE


@pytest.mark.parametrize("name", [*SHOWN, *NOT_SHOWN, *OTHERS])
def test_what_is_wrong_is_slow(checked, name):
    assert checked(name).exit_code == EXIT_WRONG


@pytest.mark.parametrize(("name", "words"), SHOWN.items())
def test_a_setting_that_is_shown_comes_first(checked, name, words):
    assert words in first_causes(checked(name), 1)[0]


@pytest.mark.parametrize(("name", "words"), NOT_SHOWN.items())
def test_the_cause_is_among_the_first_two(checked, name, words):
    causes = first_causes(checked(name), 2)
    assert any(word in cause for cause in causes for word in words.split("|")), causes


@pytest.mark.parametrize("name", [*SHOWN, *NOT_SHOWN, *OTHERS])
def test_a_virtual_machine_or_an_idle_network_is_not_to_blame(checked, name):
    causes = first_causes(checked(name), 1)
    assert not any("virtual machine" in cause for cause in causes)
    assert name.startswith("all_reduce-sockets") or not any("TCP sockets" in cause for cause in causes)


@pytest.mark.parametrize("name", NOT_ALL_FINE)
def test_nothing_is_slow_where_not_all_can_be_judged(checked, name):
    assert checked(name).exit_code == EXIT_OPEN


@pytest.mark.parametrize("name", BUSY)
def test_whatever_else_runs_is_among_the_first_two_causes(checked, name):
    assert any("at the same time" in cause for cause in first_causes(checked(name), 2))


@pytest.mark.parametrize("name", BUSY_IF_DESCRIBED)
def test_whatever_else_runs_is_among_the_first_two_causes_of_a_described_machine(name):
    causes = first_causes(api.check([TEXTS / f"{name}.txt", lists(name)]), 2)
    assert any("same time" in cause or "busy" in cause or "hold the GPU" in cause for cause in causes), causes


def test_busy_cores_come_after_pageable_memory(checked):
    causes = first_causes(checked("one-later-bandwidthTest-pageable-memory-busy"), 2)
    assert "pageable" in causes[0]
    assert "busy" in causes[1]


def test_a_run_without_a_warm_up_says_so_first():
    checkup = api.check([TEXTS / "four-all_reduce-no-warm-up.txt", lists("four-")])
    assert "warm-up" in first_causes(checkup, 1)[0]


def test_no_socket_keeps_gpus_apart_that_exchange_more_than_pcie_carries():
    checkup = api.check([TEXTS / "four-gpu_copy-peers-beside-copies.txt"])
    assert not any("root complexes" in cause for cause in first_causes(checkup, 9))


def test_a_table_that_never_got_a_row_may_be_of_a_program_that_hangs():
    with pytest.raises(LanewiseError, match="has no rows") as raised:
        api.check([TEXTS / "four-all_reduce-blocking-shown.txt"])
    assert "hangs" in raised.value.hint


@pytest.mark.parametrize("name", ["nvbandwidth-peers-beside-copies", "p2p-beside-copies"])
def test_nvlinks_that_somebody_else_uses_too_are_not_called_fine(checked, name):
    assert checked(name).exit_code in (EXIT_WRONG, EXIT_OPEN)


def test_a_collective_of_one_gpu_is_no_transfer(checked):
    assert checked("all_reduce-one-gpu").exit_code == EXIT_OPEN


@pytest.mark.parametrize("name", ["four-p2p-one-hidden", "four-nvbandwidth-one-hidden"])
def test_a_gpu_that_the_tool_did_not_see_leaves_the_check_open(name):
    checkup = api.check([TEXTS / f"{name}.txt", lists(name)])
    assert checkup.exit_code == EXIT_OPEN
    assert any("saw 3 GPUs, machine has 4" in finding.title for finding in checkup.findings)


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_no_hypervisor_stands_beside_what_the_model_explains(name):
    checkup = api.check([TEXTS / f"{name}.txt", lists(name)])
    assert not any("virtual machine" in cause for cause in first_causes(checkup, most=9))


SMI = """
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    0   N/A  N/A      1234      G   /usr/lib/xorg/Xorg                              4MiB |
|    {gpu}   N/A  N/A     12345      C   {name}                                  70123MiB |
+-----------------------------------------------------------------------------------------+
"""


def causes_with_processes(folder, gpu, name):
    text = (TEXTS / "one-nvbandwidth-host-beside-copies.txt").read_text() + SMI.format(gpu=gpu, name=name)
    (folder / "posted.txt").write_text(text)
    return first_causes(api.check([folder / "posted.txt"]), 1)


def test_a_program_that_nvidia_smi_lists_on_the_gpu_of_a_slow_row_is_named(tmp_path):
    (cause,) = causes_with_processes(tmp_path, 0, "/opt/venv/bin/python3")
    assert "another program uses the GPU" in cause
    assert "/opt/venv/bin/python3 on gpu0" in cause


@pytest.mark.parametrize(("gpu", "name"), [(1, "python3"), (0, "./nvbandwidth"), (0, "./build/all_reduce_perf")])
def test_programs_on_other_gpus_and_tools_that_measure_are_not_named(gpu, name, tmp_path):
    (cause,) = causes_with_processes(tmp_path, gpu, name)
    assert name not in cause


def test_sizes_that_were_measured_twice_with_the_same_figure_are_one_run():
    results = api.check([TEXTS / "four-all_reduce-cpu-busy.txt", lists("four-")]).results
    again = [replace(each, row=replace(each.row, note="again")) for each in results]
    (cause,) = calls_of_one_length(results[0], [*results, *again])
    assert "busy" in cause.what
