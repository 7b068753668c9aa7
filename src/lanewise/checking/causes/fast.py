"""Causes of rows that are faster than their path can be: what was measured is another path, or was counted wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.causes.gpu_memory import in_the_cache
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.symptom import RowSymptom


def page_cache(symptom: RowSymptom) -> Iterator[Cause]:
    """Reads and writes of a file that end in host memory."""
    row = symptom.row
    if row.path in ("storage", "load") and row.how.get("mode") != "direct":
        what = "the page cache or the drive's own memory: the data never reached the drive, or came from host memory"
        step = "fio --direct=1 on a file larger than the memory; sync; echo 3 | sudo tee /proc/sys/vm/drop_caches"
        yield Cause(("cache",), what, step)


def counted_too_much(symptom: RowSymptom) -> Iterator[Cause]:
    """A clock that stopped too early, or bytes of several paths."""
    row = symptom.row
    if row.path == GPU_MEMORY:
        return
    if row.path == "network":
        what = "bytes of both directions, of several ports or of data that was compressed are counted as one"
        step = "look at one port alone: ethtool -S DEVICE | grep bytes before and after"
    else:
        what = "the clock stopped before the copies had ended, or bytes are counted twice"
        step = "synchronise before both times are taken (cudaEventElapsedTime), or measure with nvbandwidth"
    yield Cause(("software",), what, step)


FAST_CAUSES = (page_cache, in_the_cache, counted_too_much)
