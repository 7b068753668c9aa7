"""The data rate of a training: logs as mlperf_logging writes them, and logs that are wrong."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise import api
from lanewise.errors import FormatError, InputError
from lanewise.loadtest.training import read

KINDS = {"start": "INTERVAL_START", "stop": "INTERVAL_END"}


def line(key: str, ms: float, value: object = None, **metadata: object) -> str:
    kind = KINDS.get(key.rpartition("_")[2], "POINT_IN_TIME")
    entry = {"namespace": "", "time_ms": ms, "event_type": kind, "key": key, "value": value,
             "metadata": {"file": "train.py", "lineno": 7, **metadata}}  # fmt: skip
    return f":::MLLOG {json.dumps(entry)}"


def epochs(*seconds: float, start: float = 1_700_000_000.0) -> list[str]:
    """Epochs of that long, 5 s apart for evaluation."""
    now, lines = start, []
    for number, length in enumerate(seconds, 1):
        lines += [
            line("epoch_start", 1e3 * now, epoch_num=number),
            line("epoch_stop", 1e3 * (now + length), epoch_num=number),
        ]
        now += length + 5.0
    return lines


def parsed(lines: list[str], samples: int | None = 1000, size: float = 1e6):
    return read("\n".join(lines) + "\n", "log.txt", size, samples)


@given(st.lists(st.floats(0.5, 1e4), min_size=1, max_size=20), st.integers(1, 10**8), st.floats(1.0, 1e8))
def test_a_rate_is_the_bytes_of_an_epoch_over_its_time(seconds: list[float], samples: int, size: float) -> None:
    found = parsed(epochs(*seconds), samples, size)
    assert [span.seconds for span in found.spans] == pytest.approx(seconds, rel=1e-3)
    wanted = [samples * size / length for length in seconds]
    assert [found.rate(span) for span in found.spans] == pytest.approx(wanted, rel=1e-3)
    assert found.median == pytest.approx(statistics.median(wanted), rel=1e-3)


def test_blocks_of_epochs_are_read_in_both_ways_of_saying_how_many() -> None:
    lines = [
        line("run_start", 0), line("block_start", 1_000, first_epoch_num=1, epoch_count=4),
        line("block_stop", 41_000, first_epoch_num=1),
        line("block_start", 50_000, first_epoch_num=5, last_epoch_num=6), line("block_stop", 70_000, first_epoch_num=5),
        line("run_stop", 100_000, status="success"),
    ]  # fmt: skip
    found = parsed(lines)
    assert [(span.first, span.epochs, span.seconds) for span in found.spans] == [(1, 4, 40.0), (5, 2, 20.0)]
    assert [found.rate(span) for span in found.spans] == [1e8, 1e8]
    assert found.run == 100.0
    assert found.whole == pytest.approx(6e9 / 100)


def test_epochs_within_a_block_are_not_counted_twice() -> None:
    lines = [line("block_start", 0, first_epoch_num=1, epoch_count=2), *epochs(10.0, 20.0),
             line("block_stop", 9e12, first_epoch_num=1)]  # fmt: skip
    assert [span.seconds for span in parsed(lines).spans] == [10.0, 20.0]


def test_other_lines_ranks_before_the_mark_and_a_cut_last_line_are_passed_over() -> None:
    lines = ["loading the data", "", *(f"0: {each}" for each in epochs(10.0)), "{not ours}"]
    text = "\n".join(lines) + '\n:::MLLOG {"namespace": "", "time_m'
    assert read(text, "log.txt", 1.0, 1).spans[0].seconds == 10.0


def test_the_samples_of_an_epoch_are_taken_from_the_log_unless_given() -> None:
    lines = [line("train_samples", 1, 1_281_167), *epochs(10.0)]
    assert parsed(lines, None).samples == 1_281_167
    assert parsed(lines, 5).samples == 5
    with pytest.raises(InputError, match="how many samples an epoch has") as caught:
        parsed(epochs(10.0), None)
    assert "--samples" in caught.value.hint
    with pytest.raises(FormatError, match=r"log\.txt:1: train_samples 'many'"):
        parsed([line("train_samples", 1, "many"), *epochs(1.0)], None)


def test_an_epoch_that_did_not_end_is_left_out_and_said() -> None:
    found = parsed(epochs(10.0, 12.0)[:-1])
    assert len(found.spans) == 1
    assert found.notes == ("epoch 2 (line 3) has not ended and is left out",)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["nothing of it"], r"log\.txt: holds no :::MLLOG line"),
        ([line("run_start", 0), line("run_stop", 5)], "times no epoch"),
        ([*epochs(1.0), ":::MLLOG {]", "more"], r"log\.txt:3: not a JSON object with key and time_ms"),
        ([":::MLLOG 7", "more"], r"log\.txt:1: not a JSON object"),
        ([':::MLLOG {"key": "epoch_start", "time_ms": 1, "metadata": 3}'], r"log\.txt:1: metadata"),
        ([epochs(1.0)[1]], r"log\.txt:1: epoch 1 stops, but has not started"),
        ([epochs(1.0)[0], *epochs(1.0)], r"log\.txt:2: epoch 1 starts again; it started in line 1"),
        ([line("epoch_start", 9, epoch_num=1), line("epoch_stop", 9, epoch_num=1)], r"log\.txt:2: epoch_stop is 0 s"),
        ([line("epoch_start", 9, epoch_num="x")], r"log\.txt:1: epoch_num 'x' of epoch_start is no whole number"),
        ([line("block_start", 1, first_epoch_num=1), line("block_stop", 9, first_epoch_num=1)], "how many epochs"),
        ([line("run_start", 9), *epochs(1.0), line("run_stop", 5)], r"log\.txt:4: run_stop is -0.004 s after"),
    ],
)
def test_a_log_that_is_wrong_is_told_with_its_line(lines: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        parsed(lines)
    assert caught.value.hint


def test_the_verb_shows_the_table_and_writes_the_run(lanewise, tmp_path) -> None:
    (tmp_path / "log.txt").write_text("\n".join([line("run_start", 0), *epochs(10.0, 20.0, 40.0)]) + "\n")
    asked = ("loadtest", "training", "log.txt", "--samples", "1000000", "--sample-bytes", "100 kB")
    done = lanewise(*asked, "-o", "run.json")
    assert done.returncode == 0, done.stderr
    assert "median     5 GB/s; 1,000,000 samples of 100,000 B an epoch" in done.stdout
    data = json.loads(lanewise(*asked, "--json").stdout)
    assert [span["rate"] for span in data["spans"]] == pytest.approx([10e9, 5e9, 2.5e9])
    rows = {row.metric: row for row in api.load_run(tmp_path / "run.json").rows}
    assert (rows["goodput"].value, rows["goodput"].low, rows["goodput"].high) == pytest.approx((5.0e9, 2.5e9, 10.0e9))
    assert rows["epoch"].unit == "s"


@pytest.mark.parametrize("size", ["0 B", "-1 B", "5 ms"])
def test_samples_without_a_size_are_refused(lanewise, tmp_path, size: str) -> None:
    (tmp_path / "log.txt").write_text("\n".join(epochs(10.0)) + "\n")
    done = lanewise("loadtest", "training", "log.txt", "--samples", "5", "--sample-bytes", size)
    assert done.returncode == 2
    assert done.stderr.startswith("error:")
