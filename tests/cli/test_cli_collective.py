"""`lanewise predict --collective`."""

from __future__ import annotations

import json
import re

import pytest

PREDICT = ("predict", "h200-pair")


def test_a_table_with_choice_limit_and_sources(lanewise):
    done = lanewise(*PREDICT, "--collective", "allreduce", "--sizes", "1KiB,1GiB", "--nccl", "2.27.7")
    assert done.returncode == 0
    out = done.stdout
    assert "all_reduce of 2 ranks, NCCL 2.20 to 2.27, issued by nccl-tests, a process for each GPU" in out
    assert "Ring LL" in out
    assert "NVLinks of gpu0 (18 x 25 GB/s)" in out
    assert "src/graph/tuning.cc" in out


def test_the_json_is_in_si_units_and_names_the_library(lanewise):
    done = lanewise(*PREDICT, "--collective", "all_gather", "--sizes", "1GiB", "--launch", "torch", "--json")
    document = json.loads(done.stdout)
    point = document["points"][0]
    assert (document["schema"], document["launch"]) == ("lanewise.predict/1", "torch")
    assert point["low"] < point["bus_bandwidth"] < point["high"]
    assert point["bus_bandwidth"] == pytest.approx(point["size"] / point["time"] / 2)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--ranks", "gpu[0-1]"], "nothing to predict with --ranks"),
        (["--collective", "all_reduce", "--matrix", "goodput"], "--collective and --matrix exclude each other"),
        (["--flows", "gpu0->gpu1", "--nccl", "2.27"], "--nccl has no effect with --flows"),
        (["--collective", "all_reduce", "--no-p2p", "--p2p-level", "sys"], "--no-p2p and --p2p-level exclude"),
        (["--collective", "all_gather", "--algorithm", "Tree"], "Tree has no effect: all_gather of these 2"),
        (["--collective", "all_reduce", "--algorithm", "NVLSTree"], "--algorithm NVLSTree has no effect"),
        (["--collective", "sendrecv", "--algorithm", "Ring"], "sendrecv of these 2 ranks is P2P"),
        (["--flows", "gpu0->host0", "--no-p2p"], "--no-p2p has no effect: no flow is between two GPUs"),
        (["--collective", "all_reduce", "--nccl", "newest"], "'newest' is not a version of NCCL"),
        (["--collective", "all_reduce", "--nccl", "9.9"], "NCCL 9.9 is not known\nhint:  known are 2.28 to 2.30 and"),
    ],
)
def test_what_does_not_go_together(lanewise, arguments, cause):
    done = lanewise(*PREDICT, *arguments)
    assert (done.returncode, cause in done.stderr) == (2, True)


@pytest.mark.parametrize("stated", [["--p2p-level", "sys"], ["--no-p2p"]])
def test_a_setting_of_the_run_that_decides_nothing_is_a_note(lanewise, tmp_path, stated):
    # Who describes a run states what it ran with, before knowing what NCCL makes of it.
    text = 'lanewise: 1\nsystem: pair\ndevices: {cpu0: {cpu: epyc-9004}, "gpu[0-1]": {gpu: rtx-4090}}\nlinks:\n'
    (tmp_path / "pair.yaml").write_text(text + '  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}\n')
    predict = ("predict", str(tmp_path / "pair.yaml"), "--collective", "all_reduce", "--sizes", "1GiB")
    plain, done = lanewise(*predict), lanewise(*predict, *stated)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    why = "these GPUs are no peers (lanewise route shows why), so NCCL goes through shared memory anyway"
    assert done.stderr == f"{stated[0]} changes nothing here: {why}\n"


@pytest.mark.parametrize(
    ("ranks", "stated", "transport", "why"),
    [
        ("gpu0,gpu1", "--p2p-level=sys", "P2P", "by default NCCL uses peers between them"),
        ("gpu0,gpu4", "--no-p2p", "SHM", "by default NCCL uses no peers between these ranks"),
    ],
)
def test_what_ranks_do_by_default_is_the_transport_of_the_table(lanewise, ranks, stated, transport, why):
    predict = ("predict", "rack-16gpu", "--collective", "all_reduce", "--sizes", "1GiB", "--ranks", ranks)
    done = lanewise(*predict, stated)
    assert done.stderr.strip().endswith(f"changes nothing here: {why}")
    rate = next(line.split()[4] for line in done.stdout.splitlines() if "1 GiB  " in line)
    told = re.findall(r"(\w+) ([\d.]+) GB/s \([\d.]+ to [\d.]+\), which the table takes", " ".join(done.stdout.split()))
    assert told == [(transport, rate)]


def test_the_version_of_nccl_has_no_effect_on_amd_s_gpus(lanewise, tmp_path):
    text = 'lanewise: 1\nsystem: amd\ndevices: {cpu0: {cpu: null}, "gpu[0-1]": {gpu: mi300x}}\nlinks:\n'
    links = '  - {from: cpu0, to: "gpu[0-1]", pcie: gen5 x16}\n  - {from: gpu0, to: gpu1, nvlink: 1}\n'
    (tmp_path / "amd.yaml").write_text(text + links)
    done = lanewise("predict", str(tmp_path / "amd.yaml"), "--collective", "all_reduce", "--nccl", "2.27.7")
    assert (done.returncode, "--nccl has no effect: AMD's GPUs run RCCL" in done.stderr) == (2, True)


def test_a_saved_prediction_is_compared_with_a_measured_table(lanewise, tmp_path):
    size = 2**28
    text = ["# all_reduce_perf", *(f"# Rank {n} Group 0 Pid 1 on a device {n} [0x1b] NVIDIA H200" for n in (0, 1)),
            f"{size} 4 float sum -1 900.0 290.00 290.00 0 900.0 290.00 290.00 0"]  # fmt: skip
    (tmp_path / "nccl.txt").write_text("\n".join(text))
    files = [str(tmp_path / name) for name in ("predicted.json", "nccl.txt", "measured.json")]
    done = lanewise(*PREDICT, "--collective", "all_reduce", "--sizes", "256MiB,1GiB", "-o", files[0])
    assert (done.returncode, done.stderr) == (0, f"wrote {files[0]}\n")
    assert lanewise("check", files[1], "--system", "h200-pair", "-o", files[2]).returncode == 0
    pairs = json.loads(lanewise("compare", files[0], files[2], "--json").stdout)["pairs"]
    assert [(pair["row"], pair["metric"], pair["right"]) for pair in pairs] == [("all_reduce", "bus_bandwidth", 290)]
