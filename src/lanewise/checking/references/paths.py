"""References of a row in other rows of its own path: other programs, fewer or other requests, each flow alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from lanewise import units
from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.named.links import stated_links
from lanewise.checking.references.by_design import less_by_design
from lanewise.checking.references.drives import is_disk
from lanewise.checking.references.parts import BY_ONE_CORE, START, Reference, best_of, of_another_row
from lanewise.checking.references.rails import over_more
from lanewise.checking.symptom import line_of
from lanewise.errors import LanewiseError
from lanewise.results.figure_words import RANDOM, TABLE, count_in
from lanewise.results.observation import Observation

# Repeated runs of one path differ by a few per cent (TOLERANCES).
_OF_PATH = 0.75
# With more requests in flight a path is not slower. Half leaves room for threads that wait for each other: of 363 kept
# questions none that is healthy has less.
_OF_FEWER = 0.5
# Sizes that differ by no more than this are carried in as many packets and commands.
_LIKE_SIZE = 0.02
# What several flows at once reach of the sum of each alone, or of the line, at least: those of FIO to four targets
# that are fine have 0.99 of two (axboe/fio#694).
_OF_ALONE = 0.6
# Reads of a drive through a narrow link reach 0.74 to 0.93 of its wires (`drives`), over an adapter somewhat less.
_FILLED = 0.7
# Sizes that are those of a small file (B), not of a request.
_FILE = (64 * 2**20, 2**30 - 1)
_MAPPED = re.compile(r"\bm(?:emory[ -])?map(?:ped|s|ping)?\b|page ?fault", re.IGNORECASE)
_BENCHMARKS = re.compile(
    r"\b(?:fio|iozone|dd|hdparm|bonnie\+*|ioping|diskspd|crystal ?disk ?mark|kdiskmark|sysbench|iometer|vdbench)\b",
    re.IGNORECASE,
)
_NO_DRIVE = re.compile(r"gpu|host|cpu", re.IGNORECASE)


def same_path(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The best rate that the same path reached in another row; of short requests in one with the same settings."""
    rows = [each for each in rows if (_same_requests(each, row) if too_short(row) else not too_short(each))]
    rows = [each for each in rows if line_of(each) == line_of(row) and not less_by_design(row, each)]
    # Of loads the drive, the page cache and other loaders are no measure of each other.
    rows = [each for each in rows if row.path != "load" or each.how.get("mode") == row.how.get("mode")]
    rows = [
        each for each in rows if row.path != "storage" or (_asks_no_more(each, row) and not _perhaps_cached(each, row))
    ]
    rows = [each for each in rows if not (is_disk(row) and _is_deeper(row, each))]
    rows = [each for each in rows if not (_waits_for_each(row) and _program(each) == _program(row))]
    rows = [each for each in rows if not (_is_of_more(each, row) or over_more(each, row))]
    rows = [each for each in rows if not _kernels_both_ways(each, row)]
    rows = [each for each in rows if not _is_longer_call(each, row)]
    rows = [each for each in rows if not (_fills_its_link(row) and stated_links(each) != stated_links(row))]
    best = max(rows, key=lambda each: _with_start(each, row), default=row)
    # Pageable memory is slower on a healthy machine, a smaller request too.
    tolerated = 0.2 if row.how.get("host memory") == "pageable" else _OF_PATH
    if row.path == "network" and _is_deeper(best, row):
        tolerated = _OF_FEWER  # one thread or connection need not fill a line
    size = row.settings.get("bytes", 0)
    if best is not row and best.value and best.settings.get("bytes", size) >= size:
        memory = best.how.get("host memory", "")
        known = best.scenario if memory in best.scenario else f"{best.scenario} {memory}"
        nominal = _with_start(best, row)
        low = min(tolerated * nominal, BY_ONE_CORE) if tolerated < _OF_PATH else tolerated * nominal
        limit = f"the same path in '{known}'"
        yield Reference("same path", nominal, low, low, None, limit, "the other row", own=False)


def _is_of_more(other: Observation, row: Observation) -> bool:
    """Whether the names of two rows of a table say that the other is of more cards, drives or the like."""
    return row.how.get("tool") == TABLE and count_in(other.scenario) > max(1, count_in(row.scenario))


def _is_longer_call(other: Observation, row: Observation) -> bool:
    """Whether another row is of longer messages of a collective over a network, whose steps cost a short one more."""
    is_collective = row.path == "network" and row.settings.get("ranks", 0) > 1
    return is_collective and other.settings.get("bytes", 0) > row.settings.get("bytes", math.inf)


def _kernels_both_ways(other: Observation, row: Observation) -> bool:
    """Whether kernels copy both ways and engines the other row: kernels hinder each other (docs/decisions/0013)."""
    return row.metric == "total" and row.how.get("engine") == "SM" != other.how.get("engine")


def _fills_its_link(row: Observation) -> bool:
    """Whether a read of a drive takes most of the link that the row states: another link says nothing of it."""
    links = stated_links(row) if row.path == "storage" else []
    return bool(links) and (row.value or 0.0) >= _FILLED * raw_rate(*links[0])


def of_one_folder(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Another program's file in the same folder: it lies on the same drive."""
    folder, reads = row.how.get("folder", ""), not row.flow.startswith("host")
    if not folder:
        return
    like = [
        each for each in rows
        if each.how.get("folder") == folder and each.flow != row.flow and each.metric == row.metric
        and each.flow.startswith("host") is not reads and each.how.get("mode") == row.how.get("mode")
        and each.how.get("tool") != row.how.get("tool") and _asks_no_more(each, row) and not too_short(each)
    ]  # fmt: skip
    best = best_of(like)
    if best is not None and not too_short(row):
        yield of_another_row(best.value or 0.0, _OF_PATH, f"{best.scenario} in the same folder")


def _asks_no_more(other: Observation, row: Observation) -> bool:
    """Whether a drive may be expected to do for a row what it did for another: no more in flight, in no other order.

    A healthy NVMe drive reads 7.0 GB/s with eight requests of 1 MiB in flight and 3.9 with one.
    """
    if row.how.get("tool") == "table" and _test(other) != _test(row):
        return False
    return not _is_deeper(other, row) and _is_random(other) is _is_random(row)


def _is_deeper(other: Observation, row: Observation) -> bool:
    """Whether another row says that it had more in flight than this one."""
    said = all(each.settings.keys() & {"depth", "threads"} for each in (other, row))
    return said and _in_flight(other) > _in_flight(row)


def _perhaps_cached(other: Observation, row: Observation) -> bool:
    """Whether another program's read was of a whole file that fits into memory, and may have come from there.

    Nobody asks for 64 MiB and more at once: such a size is that of the file, and half of memory holds a small one.
    """
    reads = not other.flow.startswith("host") and other.scenario != row.scenario
    return reads and other.how.get("mode") != "direct" and _FILE[0] <= other.settings.get("bytes", 0) <= _FILE[1]


def _is_random(row: Observation) -> bool:
    return row.how.get("pattern", "").startswith("rand") or RANDOM.search(row.scenario) is not None


def _waits_for_each(row: Observation) -> bool:
    """Whether one message waits for the answer to the one before: how long the way is then decides, not its rate."""
    return row.how.get("pattern") == "pingpong"


def _with_start(best: Observation, row: Observation) -> float:
    """What another row's rate leaves of a smaller request of the same program, which takes as long to start."""
    size, rate = row.settings.get("bytes", 0), best.value or 0.0
    larger = best.settings.get("bytes", 0) > (1 + _LIKE_SIZE) * size
    return size / (size / rate + START) if size and rate and larger and _program(best) == _program(row) else rate


def _same_requests(other: Observation, row: Observation) -> bool:
    """Whether short requests are the same: the page cache gathers them, so that it is no measure of a drive."""
    if _of_other_benchmark(other, row):
        return False
    same_test = "table" not in (row.how.get("tool"), other.how.get("tool")) or _test(other) == _test(row)
    return other.settings == row.settings and other.how.get("mode") == row.how.get("mode") and same_test


def _of_other_benchmark(other: Observation, row: Observation) -> bool:
    """Whether the names of two rows are of two benchmarks of storage: how much each asks for at once is its own."""
    names = [frozenset(map(str.lower, _BENCHMARKS.findall(each.scenario))) for each in (other, row)]
    said = any(each.settings.keys() & {"depth", "threads"} for each in (other, row))
    return all(names) and not names[0] & names[1] and not said


def _test(row: Observation) -> str:
    return row.how.get("pattern", "")


def fewer_in_flight(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Short requests compared with the same ones of which fewer were in flight."""
    like = [
        each for each in rows
        if _program(each) == _program(row) and _but_flight(each) == _but_flight(row)
        and each.settings.keys() == row.settings.keys()
        and _in_flight(each) < _in_flight(row) and line_of(each) == line_of(row)
    ]  # fmt: skip
    best = best_of(like)
    if best is not None:
        yield from _half_of(best, f"{_in_flight(best)} requests in flight in place of {_in_flight(row)}")


def of_like_size(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Short requests compared with those of nearly the same size: what is aligned and what is not."""
    size = row.settings.get("bytes", 0)
    like = [
        each for each in rows
        if _program(each) == _program(row) and line_of(each) == line_of(row)
        and {**each.settings, "bytes": size} == row.settings and of_one_size(each.settings.get("bytes", 0), size)
    ]  # fmt: skip
    best = best_of(like)
    if best is not None:
        yield from _half_of(best, f"requests of {best.settings['bytes']:,} B")


def _half_of(best: Observation, what: str) -> Iterator[Reference]:
    """Another row as the reference of a path, of which half is enough."""
    if best.value:
        yield of_another_row(best.value, _OF_FEWER, what)


def of_smaller(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Messages over a network compared with smaller ones: a rate grows with the size, and does not halve for good."""
    best = smaller_and_faster(row, rows)
    if best is not None:
        yield from _half_of(best, f"messages of {units.size(best.settings['bytes'])}")


def smaller_and_faster(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The best smaller message of the same program, if this one and all larger ones reach less than half of it."""
    size = row.settings.get("bytes", 0)
    if row.metric != "goodput" or not size or not _grows_with_size(row):
        return None
    like = [
        each for each in rows
        if each.flow == row.flow and each.metric == row.metric and _program(each) == _program(row)
        and line_of(each) == line_of(row) and {**each.settings, "bytes": size} == row.settings
    ]  # fmt: skip
    smaller = [each for each in like if each.settings.get("bytes", size) < size]
    best = best_of(smaller)
    larger = [each.value or 0.0 for each in like if each.settings.get("bytes", 0) >= size]
    return best if best is not None and max(larger, default=0.0) < _OF_FEWER * (best.value or 0.0) else None


def _grows_with_size(row: Observation) -> bool:
    """Whether no cache makes small requests faster: data over a network or a GPU's link, of which nothing is staged."""
    gpu_link = row.path in ("host to device", "device to host") or row.path.startswith("peer")
    return row.path == "network" or (gpu_link and row.how.get("host memory") != "pageable" and "staged" not in row.path)


def of_one_size(size: int, other: int) -> bool:
    """Whether two sizes of requests are so near that they take as many packets and commands."""
    return min(size, other) > 0 and abs(size - other) <= _LIKE_SIZE * min(size, other)


def of_mapped_file(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """A mapped file compared with reads of it: the kernel, not the program, sizes the requests of a mapping."""
    if row.path != "storage" or not _MAPPED.search(row.scenario):
        return
    like = [
        each for each in rows
        if not _MAPPED.search(each.scenario) and each.metric == row.metric and each.value
        and _is_random(each) is _is_random(row)
    ]  # fmt: skip
    best = best_of(like)
    if best is not None:
        yield from _half_of(best, f"'{best.scenario}'")


def of_each_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several flows at once compared with one of them alone: over a network, or of several drives."""
    yield from of_flows_alone(row, rows)
    yield from of_drives_alone(row, rows)
    yield from of_several_drives(row, rows)


def of_flows_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several flows from or to one host over a network: the sum of each alone, where the stated line carries it."""
    flows = flows_at_once(row)
    if row.path != "network" or row.metric != "total" or len(flows) < 2 or not line_of(row):
        return
    one_end = len({flow.split("->")[0] for flow in flows}) == 1 or len({flow.split("->")[1] for flow in flows}) == 1
    alone = [
        each.value for each in rows
        if each.path == row.path and each.metric == "goodput" and each.flow.replace(" ", "") in flows and each.value
        and flows_at_once(each) == [each.flow.replace(" ", "")] and each.settings == row.settings
    ]  # fmt: skip
    line = _rate(line_of(row))
    if one_end and alone and line:
        limit = f"{len(flows)} times one flow alone, at most the line"
        yield of_another_row(min(len(flows) * max(alone), line), _OF_ALONE, limit)


def of_drives_alone(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Short requests of several drives at once compared with those of one alone: drives share no more than a host."""
    flows = flows_of_drives(row)
    if row.metric != "goodput" or not flows or not too_short(row):
        return
    like = [
        each for each in rows
        if each.path == row.path and each.metric == row.metric and each.settings == row.settings
        and is_alone(each, flows) and each.how.get("mode") == row.how.get("mode")
    ]  # fmt: skip
    best = best_of(like)
    if best is not None:
        yield from _half_of(best, "one drive alone")


def of_several_drives(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The sum of several drives compared with one alone as often as there are drives: an array adds them up.

    Half leaves room for parity, and for a controller or chipset that has fewer lanes than they have together.
    """
    flows = flows_of_drives(row)
    if row.metric != "total" or not flows or too_short(row):
        return
    like = [
        each.value for each in rows
        if each.path == row.path and each.metric == "goodput" and is_alone(each, flows)
        and each.value and each.how.get("mode") == row.how.get("mode") and _asks_no_more(each, row)
        and each.settings.get("bytes", 0) == row.settings.get("bytes", 0)
    ]  # fmt: skip
    if like:
        yield of_another_row(len(flows) * max(like), _OF_FEWER, f"{len(flows)} times one drive alone")


def _rate(text: str) -> float:
    try:
        return units.parse(text, "B/s")
    except LanewiseError:
        return 0.0


def flows_at_once(row: Observation) -> list[str]:
    """The flows that ran together, without blanks."""
    return (row.how.get("flows") or row.flow).replace(" ", "").split(",")


def flows_of_drives(row: Observation) -> list[str]:
    """The flows of several drives that ran together, one each; none of others, and of both ways of one drive."""
    flows = flows_at_once(row)
    drives = {end for flow in flows for end in flow.split("->") if not _NO_DRIVE.match(end)}
    return flows if row.path == "storage" and 1 < len(drives) == len(flows) else []


def is_alone(row: Observation, flows: Sequence[str]) -> bool:
    """Whether one of these flows ran by itself."""
    own = flows_at_once(row)
    return len(own) == 1 and own[0] in flows


def _in_flight(row: Observation) -> int:
    return row.settings.get("depth", 1) * row.settings.get("threads", 1)


def _but_flight(row: Observation) -> dict[str, int]:
    return {key: value for key, value in row.settings.items() if key not in ("depth", "threads")}


def _program(row: Observation) -> tuple[str | None, ...]:
    return row.scenario, *(row.how.get(key) for key in ("tool", "mode", "engine", "pattern"))
