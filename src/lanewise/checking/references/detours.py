"""References of a row in the same data moved another way: through host memory, from host memory, to the drive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import GpuAbility
from lanewise.checking.named.links import stated_links
from lanewise.checking.references.parts import Reference, best_of, of_another_row
from lanewise.checking.symptom import quantity_in
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample

# Of 46 such pairs in kept questions of healthy machines the least has 0.67; where a copy from the device is the first
# to touch the pages it has 0.36 and 0.38.
_OF_BACK = 0.5
# The slowest way to load weights in use, a mapped file, has the kernel's read-ahead of 128 KiB in flight for the 80 to
# 110 us of a read (data/weights/loaders.yaml): 1.2 to 1.6 GB/s, 0.17 and more of drives of 7 GB/s.
_OF_LOADER = 0.15


def flows_together(row: Observation | Sample) -> int:
    """How many flows ran together."""
    return row.how.get("flows", row.flow).count("->")


def of_staged_copy(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """P2P on compared with the copy through host memory: `rows` are those of the same pair."""
    if row.how.get("p2p") != "on":
        return
    staged = [
        each.value for each in rows
        if each.value and each.how.get("p2p") == "off" and each.metric == row.metric
    ]  # fmt: skip
    # Far above it another path is at work, NVLink, of which the staged copy says nothing.
    if staged and (row.value or 0.0) < 1.5 * max(staged):
        value = max(staged)
        limit = "the same copy with P2P off"
        yield Reference("staged copy", value, 0.75 * value, 0.6 * value, None, limit, "the other row")


def of_host_memory(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Data of a GPU's memory over a network or from a drive, compared with host memory over the same."""
    if row.path not in ("network", "storage") or "gpu" not in row.flow:
        return
    source, _, target = row.flow.partition("->")
    network = row.path == "network"

    def same(other: str) -> bool:
        """Whether another flow crosses the same network, or comes from or goes to the same drive."""
        return (network and other.startswith("host")) or other.endswith(target) or other.startswith(source)

    host = [
        each.value for each in rows
        if each.value and each.path == row.path and each.metric == row.metric and "gpu" not in each.flow
        and (network or each.settings.get("bytes") == row.settings.get("bytes"))
        and flows_together(each) == flows_together(row) and same(each.flow)
    ]  # fmt: skip
    if host:
        value = max(host)
        limit = "the same network from host memory" if network else "the same drive read into host memory"
        yield Reference("same path", value, 0.75 * value, 0.6 * value, None, limit, "the other row", own=False)
    elif "timed" in row.how and (best := best_of(_long_reads(row, rows))) is not None:
        yield of_another_row(best.value or 0.0, _OF_LOADER, f"the drive read in '{best.scenario}'")


def _long_reads(row: Observation, rows: Sequence[Observation]) -> list[Observation]:
    """The long reads into host memory of the drive from which a row loads a file whose time was typed in."""
    drive = row.flow.partition("->")[0]
    return [
        each for each in rows
        if each.path == row.path == "storage" and each.metric == row.metric and each.flow.partition("->")[0] == drive
        and "gpu" not in each.flow and not too_short(each)
    ]  # fmt: skip


def of_wanted_pinned(row: Observation, rows: Sequence[Observation], part: GpuAbility | None) -> Iterator[Reference]:
    """Pageable memory that misses what the text wants, where pinned memory of the same copy or GPU reaches that."""
    if row.how.get("host memory") != "pageable" or row.how.get("expectation") != "expected":
        return
    wanted = quantity_in(row.how.get("expected", ""), "B/s")
    pinned = [
        each for each in rows
        if each.flow == row.flow and each.metric == row.metric and each.how.get("host memory") == "pinned"
        and (each.value or 0.0) >= wanted
    ]  # fmt: skip
    if wanted and (best := best_of(pinned)) is not None:
        yield of_another_row(best.value or 0.0, wanted / (best.value or wanted), f"pinned memory in '{best.scenario}'")
    elif part is not None and row.flow.count("->") == 1 and row.metric == "goodput":
        rate = part.host_rate(row.path == "host to device")
        if 0 < wanted <= rate:
            limit = f"pinned memory over Gen{part.gen} x{part.lanes} of {part.title}"
            yield Reference("as posted", rate, wanted, wanted, None, limit, "the expectation", own=False)


def of_pageable_back(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """One way of pageable memory beside the other: a core copies either way alike, but for pages it touches first."""
    copies = row.path in ("host to device", "device to host") and row.how.get("tool") in ("typed in", TABLE)
    if row.how.get("host memory") != "pageable" or not copies:
        return
    back = "->".join(reversed([end.strip() for end in row.flow.split("->")]))
    like = [
        each.value for each in rows
        if each.flow.replace(" ", "") == back and each.metric == row.metric and each.value
        and each.settings == row.settings and each.how.get("host memory") == "pageable"
        and each.how.get("tool") == row.how.get("tool")
    ]  # fmt: skip
    if like:
        yield of_another_row(max(like), _OF_BACK, "the other way of pageable memory")


def of_writes(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Reads of a drive compared with writes to it: every drive reads faster than it writes."""
    source, _, target = row.flow.partition("->")
    if row.path != "storage" or not target.startswith("host"):
        return
    writes = [
        each.value for each in rows
        if each.path == row.path and each.flow == f"{target}->{source}" and each.metric == row.metric
        and each.value and each.settings == row.settings and each.how.get("mode") == row.how.get("mode")
        and stated_links(each) == stated_links(row)
        and flows_together(each) == flows_together(row)
    ]  # fmt: skip
    if writes:
        yield of_another_row(max(writes), 0.75, "writes to the same drive")
