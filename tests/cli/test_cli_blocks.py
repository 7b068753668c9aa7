"""`lanewise predict --blocks` and `--tokens`."""

from __future__ import annotations

import json
import re

import pytest

PREDICT = ("predict", "h200-pair")


def test_a_line_a_flow_with_limit_and_sources(lanewise):
    done = lanewise(*PREDICT, "--blocks", "40064 x 64 KiB", "gpu0->gpu1")
    assert done.returncode == 0
    assert "40,064 pieces of 64 KiB a flow" in done.stdout
    assert "software" in done.stdout
    assert "NIXL 1.5.1" in done.stdout


def test_the_json_of_a_model_is_in_si_units(lanewise):
    arguments = ("--tokens", "32000", "--model", "llama-3-70b", "--tp", "4", "gpu[0-1]->host0", "--json")
    document = json.loads(lanewise(*PREDICT, *arguments).stdout)
    first, _ = document["transfers"]
    assert (document["schema"], first["pieces"], first["size"]) == ("lanewise.predict/1", 320000, 8192)
    assert first["low"] < first["time"] < first["high"]
    assert (first["software"], first["limit"]) == ("cuMemcpyBatchAsync", "software")


@pytest.mark.parametrize(
    ("software", "flow"),
    [("nixl-cuda-ipc", "gpu0->gpu1"), ("cuMemcpyAsync", "gpu0->host0"), ("cuMemcpyBatchAsync", "gpu0->host0")],
)
def test_the_sum_that_is_printed_is_the_time_at_the_rate_that_is_printed(lanewise, software, flow):
    done = lanewise(*PREDICT, "--blocks", "2000 x 1 MiB", flow, "--software", software)
    line = " ".join(done.stdout.split())
    unit = {"s": 1.0, "ms": 1e-3, "us": 1e-6}

    def seconds(after: str) -> float:
        number, word = re.findall(rf"([\d.]+) (\w+) {after}", line)[0]
        return float(number) * unit[word]

    path, posting = seconds("on path \\("), seconds("posting \\(")
    assert ("meanwhile" in line) == (software == "nixl-cuda-ipc")
    longest = max(path, posting) if "meanwhile" in line else path + posting
    assert seconds("= ") == pytest.approx(seconds("start \\+") + longest, rel=2e-3)
    (rate,) = re.findall(r"2.097 GB at ([\d.]+) GB/s", line)
    assert float(rate) * 1e9 * path == pytest.approx(2000 * 2**20, rel=5e-3)


def test_a_cache_of_smaller_elements_is_half_as_large(lanewise):
    tokens = (*PREDICT, "--tokens", "32000", "--model", "llama-3-70b", "gpu0->gpu1", "--json")
    sizes = [
        json.loads(lanewise(*tokens, *dtype).stdout)["transfers"][0]["size"] for dtype in ((), ("--kv-dtype", "fp8"))
    ]
    assert sizes == [32768, 16384]


def test_the_transfer_s_share_of_the_time_to_first_token(lanewise):
    tokens = ("--tokens", "32000", "--model", "llama-3-70b", "--tp", "4", "gpu0->gpu1", "--prefill", "8k tokens/s")
    done = lanewise(*PREDICT, *tokens)
    text = " ".join(done.stdout.split())
    assert "time to first token: 5.888 s, prefill 4 s and transfer 1.888 s, 32.1 % of it" in text
    first = json.loads(lanewise(*PREDICT, *tokens, "--json").stdout)["first_token"]
    assert first["prefill"] == 4.0
    assert first["transfer_share"] == pytest.approx(0.3207, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--blocks", "8 x 1 MiB"], "the blocks go nowhere"),
        (["--tokens", "8", "gpu0->gpu1"], "--tokens without a model"),
        (["gpu0->gpu1"], "nothing to predict with FLOW"),
        (["--posters", "2"], "nothing to predict with --posters"),
        (["--blocks", "8 x 1 MiB", "--tokens", "8"], "--blocks and --tokens exclude each other"),
        (["--blocks", "8 x 1 MiB", "gpu0->gpu1", "--tp", "2"], "--tp has no effect with --blocks"),
        (["--tokens", "8", "--prefill", "fast", "gpu0->gpu1"], "'fast' is not a number of tokens/s\nhint:  write 8000"),
        (["--blocks", "8 x 1 MiB", "gpu0->gpu1", "--prefill", "8k"], "--prefill has no effect with --blocks"),
        (["--blocks", "8 x 1 MiB", "gpu0->host0", "--posters", "2"], "--posters has no effect with cuMemcpyBatchAsync"),
        (["--blocks", "8 x 1 MiB", "gpu0->host0", "--no-p2p"], "--no-p2p has no effect"),
        (["--tokens", "8", "--model", "deepseek-v3", "--tp", "2", "gpu0->gpu1"], "--tp has no effect with deepseek-v3"),
        (["--tokens", "1000000", "--model", "llama-3-70b", "gpu0->gpu1"], "does not fit in gpu0: its memory has 151"),
        (["--blocks", "8 x 1 MiB", "gpu0->gpu1", "--kv-dtype", "fp8"], "--kv-dtype has no effect with --blocks"),
        (["--flows", "gpu0->gpu1", "--software", "kernel"], "--software has no effect with --flows"),
        (["--blocks", "1 MiB", "gpu0->gpu1"], "'1 MiB' is no number of blocks"),
        (["--blocks", "8 x 1 MiB", "gpu0->gpu1", "--sweep", "path=1,2"], "--sweep has no effect with --blocks"),
        (["--collective", "all_reduce", "--sweep", "path=1,2"], "--sweep has no effect with --collective"),
        (["--tokens", "-1", "--model", "llama-3-8b", "gpu0->gpu1"], "--tokens"),
    ],
)
def test_what_does_not_go_together(lanewise, arguments, cause):
    done = lanewise(*PREDICT, *arguments)
    assert (done.returncode, cause in done.stderr) == (2, True)


def test_predicted_blocks_are_written_as_rows_and_measured_ones_are_shown_side_by_side(lanewise, tmp_path):
    done = lanewise(*PREDICT, "--blocks", "8 x 64 KiB", "gpu0->host0", "-o", str(tmp_path / "run.json"), "--json")
    assert (done.returncode, done.stderr) == (0, f"wrote {tmp_path / 'run.json'}\n")
    rows = json.loads((tmp_path / "run.json").read_text())["rows"]
    assert [row["source"] for row in rows] == ["predicted", "predicted"]
    done = lanewise("measure", "kv", "--from", "host", "--to", str(tmp_path), "--blocks", "8 x 64 KiB", "--runs", "1")
    assert (done.returncode, done.stdout.split()[:3]) == (0, ["software", "blocks", "flow"])
    assert "mode: direct" in done.stdout
