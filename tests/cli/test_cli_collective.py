"""`lanewise predict --collective`."""

from __future__ import annotations

import json

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
        (["--collective", "all_reduce", "--nccl", "newest"], "'newest' is not a version of NCCL"),
    ],
)
def test_what_does_not_go_together(lanewise, arguments, cause):
    done = lanewise(*PREDICT, *arguments)
    assert (done.returncode, cause in done.stderr) == (2, True)
