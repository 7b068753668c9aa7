"""`lanewise predict --load`."""

from __future__ import annotations

import json

import pytest

PREDICT = ("predict", "h200-pair")
LOAD = ("--load", "15GB", "--from", "2 GB/s", "--to", "gpu0")


def test_each_loader_has_a_line_with_its_limit_and_sources(lanewise):
    done = lanewise(
        *PREDICT, "--load", "15GB", "--from", "2 GB/s", "--to", "gpu[0-1]", "--loader", "direct,safetensors"
    )
    assert done.returncode == 0
    assert "15 GB from storage of 2 GB/s, cold, to 2 GPUs" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[3:5]] == ["direct", "safetensors"]
    assert "storage: stated rate" in done.stdout
    assert "read_ahead_kb" in done.stdout


def test_a_drive_that_nobody_named_is_a_typical_one_and_what_to_do_is_said(lanewise, tmp_path):
    text = "lanewise: 1\nsystem: one\ndevices: {cpu0: {cpu: null}, gpu0: {gpu: l40s}, ssd0: {ssd: null}}\nlinks:\n"
    links = "  - {from: cpu0, to: gpu0, pcie: gen4 x16}\n  - {from: cpu0, to: ssd0, pcie: gen4 x4}\n"
    (tmp_path / "one.yaml").write_text(text + links)
    load = ("--load", "15GB", "--from", "ssd0", "--to", "gpu0", "--loader", "direct")
    words = " ".join(lanewise("predict", str(tmp_path / "one.yaml"), *load).stdout.split())
    assert "storage: ssd0, of unknown rate; no figure for the rate of the drive known" in words
    assert "write --from '3 GB/s'" in words


def test_the_json_has_every_stage_in_si_units(lanewise):
    arguments = ("--load", "15GB", "--from", "2 GB/s", "--to", "gpu0", "--warm", "--json")
    document = json.loads(lanewise(*PREDICT, *arguments).stdout)
    assert (document["schema"], document["size"], document["storage_rate"]) == ("lanewise.predict/1", 15e9, 2e9)
    names = [load["loader"] for load in document["loads"]]
    assert "safetensors" in names
    assert not {"direct", "fastsafetensors", "fastsafetensors-gds", "runai-streamer-s3"} & set(
        names
    )  # no page cache, or only by name
    for load in document["loads"]:
        assert load["low"] < load["time"] < load["high"]
        assert {stage["stage"] for stage in load["stages"]} == {"CPU copies", "link to GPU"}


def test_a_file_that_is_no_model_is_one_error_with_a_hint(lanewise, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"{}")
    done = lanewise("measure", "load", str(path), "--modes", "cached")
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    assert "bad.safetensors: no safetensors file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--load", "15GB"], "--load without --from"),
        (["--load", "15GB", "--from", "2 GB/s"], "--load without --to"),
        (["--from", "2 GB/s"], "nothing to predict with --from"),
        (["--flows", "gpu0->gpu1", "--warm"], "--warm has no effect with --flows"),
        (["--load", "200GB", *LOAD[2:]], "the model of 200 GB does not fit in gpu0: its memory has 151"),
        (["--load", "400GB", *LOAD[2:5], "gpu[0-1]"], "a part of the model of 200 GB does not fit in gpu0"),
        ([*LOAD, "--warm", "--readers", "2"], "--readers has no effect with --warm"),
        ([*LOAD, "--loader", "direct", "--read-ahead", "1MiB"], "--read-ahead has no effect with direct"),
        ([*LOAD, "--loader", "runai-streamer-s3", "--read-latency", "1ms"], "--read-latency has no effect with runai"),
        ([*LOAD, "--replicated"], "--replicated has no effect: gpu0 gets all of it"),
        (["--load", "15 GB/s", "--from", "2 GB/s", "--to", "gpu0"], "15 GB/s"),
        (["--load", "15", *LOAD[2:]], "--load: '15' has no unit\nhint:  write the size of"),
        (["--load", "15 B", *LOAD[2:]], "--load is 15 B\nhint:  give 1 KiB or more"),
        (["--load", "llama-3-70b", *LOAD[2:]], "'llama-3-70b' is not a size\nhint:  write the size of"),
        ([*LOAD, "--read-latency", "5"], "--read-latency: '5' has no unit\nhint:  write --read-latency 100us"),
        ([*LOAD, "--read-ahead", "4"], "--read-ahead: '4' has no unit\nhint:  write --read-ahead 4MiB"),
        ([*LOAD[:3], "10 knots", *LOAD[4:]], "--from: unknown unit 'knots'\nhint:  write a rate"),
        ([*LOAD[:3], "1000 MB", *LOAD[4:]], "--from: '1000 MB' is in MB, not in B/s\nhint:  write a rate"),
        ([*LOAD[:3], "25", *LOAD[4:]], "--from: '25' has no unit\nhint:  write a rate of the storage"),
        ([*LOAD[:3], "0 GB/s", *LOAD[4:]], "--from: '0 GB/s' moves nothing"),
    ],
)
def test_what_a_load_needs(lanewise, arguments, cause):
    done = lanewise(*PREDICT, *arguments)
    assert (done.returncode, cause in done.stderr) == (2, True)


def test_a_word_of_one_run_is_a_device_of_the_other(lanewise, tmp_path):
    first, second = (str(tmp_path / name) for name in ("a.json", "b.json"))
    assert lanewise(*PREDICT, *LOAD, "--loader", "safetensors", "-o", first).returncode == 0
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "b.json").write_text(text.replace("weights->", "model.bin->"))
    errors = lanewise("compare", first, second).stderr
    assert "no row of" in errors
    assert "--as model.bin=weights" in errors
    pairs = json.loads(lanewise("compare", first, second, "--as", "model.bin=weights", "--json").stdout)["pairs"]
    assert len(pairs) == 2
    for arguments, cause in (
        ([first, second, "--as", "ssd0=weights"], "--as ssd0=weights has no effect"),
        ([first, "--sources", "published", "predicted", "--as", "a=b"], "--as has no effect without a second run"),
    ):
        done = lanewise("compare", *arguments)
        assert (done.returncode, cause in done.stderr) == (2, True)
