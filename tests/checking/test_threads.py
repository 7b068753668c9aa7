"""Real questions from forums and issue trackers: the verdict that an engineer would sign, and the true cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import files, first_causes, read_thread, threads, verdict_of

from lanewise.errors import LanewiseError

FILES = files()  # read by the test of each: all of them take every worker a second


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_real_question_gets_its_verdict_and_its_cause(file: Path, tmp_path: Path):
    thread = read_thread(file)
    try:
        checkup = thread.check(tmp_path)
    except LanewiseError:
        if not thread.open:
            raise
    if thread.open:
        pytest.xfail(thread.open)
    assert verdict_of(checkup) in thread.verdicts
    if thread.verdicts[0] == "slow":
        # Nobody found a cause where none is listed.
        assert not thread.causes or set(first_causes(checkup)) & set(thread.causes)
        assert checkup.exit_code == 1
    judged = [result for result in checkup.results if result.row.metric != "bus_bandwidth"]
    assert checkup.exit_code != 0 or all(result.verdict == "ok" for result in judged)


def test_the_threads_are_enough_and_a_third_of_them_is_held_out():
    every = threads()
    held_out = [thread for thread in every if thread.held_out]
    assert len(every) >= 25
    assert 0.2 < len(held_out) / len(every) < 0.5
