"""Threads at once: the window they share, what they leave behind, and a chain of loads that misses no line."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise import _native as native
from lanewise._native import HostWork

BLOCK = 4096
MARKS = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12, unique=True).map(sorted)


def memories(count: int, bytes: int = 4 * BLOCK) -> list[native.HostMemory]:
    found = [native.HostMemory(bytes) for _ in range(count)]
    for memory in found:
        native.fill_pattern(memory)
    return found


def crew(sources: list[native.HostMemory], targets: list[native.HostMemory], threads: int = 1) -> native.HostCrew:
    pieces = [native.HostPieces(-1, sources[n::threads], targets[n::threads]) for n in range(threads)]
    return native.HostCrew(pieces, BLOCK)


@given(st.lists(MARKS, min_size=1, max_size=4))
def test_bytes_in_the_common_window_are_the_overlap_of_each_block_with_it(timestamps: list[list[float]]):
    begin, end = max(each[0] for each in timestamps), min(each[-1] for each in timestamps)
    window = native.common_window(timestamps, 1000.0)
    if end <= begin:
        assert window.seconds == 0
        return
    assert window.seconds == pytest.approx(end - begin)
    for each, moved in zip(timestamps, window.bytes, strict=True):
        blocks = pairwise(each)
        parts = [max(0.0, min(b, end) - max(a, begin)) / (b - a) for a, b in blocks]
        assert moved == pytest.approx(1000.0 * sum(parts), rel=1e-6, abs=1e-6)


def test_threads_that_never_ran_together_have_no_window():
    assert native.common_window([[0.0, 1.0], [1.0, 2.0]], 1.0).seconds == 0
    assert native.common_window([[0.0]], 1.0).seconds == 0
    assert native.common_window([], 1.0).seconds == 0


STORES = [HostWork.COPY, HostWork.WRITE]
if native.has_streams():
    STORES += [HostWork.STREAM_COPY, HostWork.STREAM_WRITE]


@pytest.mark.parametrize("work", STORES)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_copied_or_written_is_found_and_damage_is_seen(work: HostWork, threads: int):
    sources, targets = memories(4), memories(4)
    copies = work in (HostWork.COPY, HostWork.STREAM_COPY)
    made = crew(sources if copies else [], targets, threads)
    for memory in targets:
        native.spoil(memory)
    made.begin_check()
    window = made.run(work, 0.01)
    assert len(window.bytes) in (0, threads)
    assert all(made.holds(work, thread, piece) for thread in range(threads) for piece in range(4 // threads))
    native.spoil(targets[0])
    assert not made.holds(work, 0, 0)


def test_work_that_was_not_done_since_the_mark_is_not_asked_for():
    sources, targets = memories(1), memories(1)
    made = crew(sources, targets)
    made.run(HostWork.COPY, 0.001)
    native.spoil(targets[0])
    made.begin_check()
    assert made.holds(HostWork.COPY, 0, 0)


def test_what_was_read_adds_up_and_damage_is_seen():
    sources = memories(3)
    made = crew(sources, [])
    made.begin_check()
    made.run(HostWork.READ, 0.01)
    assert made.adds_up(0)
    made.begin_check()
    for memory in sources:  # whichever blocks it has time to read
        native.spoil(memory)
    made.run(HostWork.READ, 0.01)
    assert not made.adds_up(0)


def test_pieces_that_do_not_hold_whole_blocks_are_refused():
    with pytest.raises(native.ProbeFailure, match="whole blocks") as caught:
        native.HostCrew([native.HostPieces(-1, memories(1), memories(2))], BLOCK)
    assert caught.value.args[1]
    with pytest.raises(native.ProbeFailure, match="whole blocks"):
        native.HostCrew([native.HostPieces(-1, memories(1), [])], 3 * BLOCK)


def test_a_thread_that_cannot_be_pinned_is_an_error_and_not_a_figure():
    made = native.HostCrew([native.HostPieces(1023, memories(1), [])], BLOCK)
    with pytest.raises(native.ProbeFailure, match="cannot be kept on CPU 1023"):
        made.run(HostWork.READ, 0.001)


@pytest.mark.parametrize(("pieces", "bytes"), [(1, 4096), (4, 8192)])
def test_one_cycle_of_links_goes_through_every_line(pieces: int, bytes: int):
    chase = native.HostChase([native.HostMemory(bytes) for _ in range(pieces)])
    for piece in range(pieces):
        chase.fill(piece)
    seen, line = set(), 0
    for _ in range(chase.lines):
        seen.add(line)
        line = chase.next(line)
    assert line == 0
    assert len(seen) == chase.lines == pieces * bytes // 64


def test_a_chase_stands_where_its_links_lead_after_its_loads():
    memory = [native.HostMemory(64 * 4096)]
    chase = native.HostChase(memory)
    chase.fill(0)
    assert chase.run(-1, 0.005) > 0
    assert chase.loads > 0
    assert chase.verify()
    with pytest.raises(native.ProbeFailure, match="power of two"):
        native.HostChase([native.HostMemory(4096) for _ in range(3)])
