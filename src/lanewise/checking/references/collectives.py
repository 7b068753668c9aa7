"""References of a collective's bus bandwidth: other sizes of its table, the same collective by another library."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise import units
from lanewise.checking.collective_rows import LEAST_JUDGED
from lanewise.checking.expectation import LONG_MESSAGE
from lanewise.checking.references.near_pairs import of_far_pairs
from lanewise.checking.references.parts import Reference, best_of, of_another_row, of_other_rows
from lanewise.checking.symptom import line_of
from lanewise.results.figure_words import TABLE
from lanewise.results.observation import Observation

# Where NCCL takes another algorithm or protocol, kept tables of healthy machines lose less than a tenth.
_COLLAPSED = 0.5
# One size between faster ones, out of place and in place: of 234 such sizes of healthy machines none has less than 0.9.
_DIP = 0.75
# Of another library the tolerance is that of rows of one path.
_OF_ANOTHER = 0.75
_OF_OTHER_GPUS = 0.6
# A tree of two hosts sends half of what a ring does (`lines.ring_by_line`), so that two have up to twice the line: four
# sound HGX had 0.78 and 0.58 of two (NVIDIA/nccl#309 and a kept question), four of a congested fabric 0.28 to 0.32.
_OF_FEWER_HOSTS = 0.45
_HOSTS = re.compile(
    r"\b\d{1,5} ?x? ?(?:nodes?|hosts?|servers?|machines?|ranks?|gpus?)\b|\b(?:ranks|hosts|nodes)=\d+|\bP2P on\b",
    re.IGNORECASE,
)
# Messages from this size on are as fast as larger ones to a tenth or two.
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|a2a|broadcast|send_?recv|dispatch|combine|reduce|gather"
)

# What people lay side by side: figures typed in and those of a table that they made.
_SIDE_BY_SIDE = ("typed in", TABLE)
# nccl-tests' two columns: one library, of which a size may be disturbed in one (an MI350X guide's pass has three).
_PLACE = re.compile(r",? ?\(?\b(?:out[ -]of|in)[ -]place\b\)?", re.IGNORECASE)
# What a reader adds to the name of a collective of which a text has several tables.
_TABLE = re.compile(r" \(.{1,80}\)(?= in place$|$)")


def of_other_collectives(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What other sizes, libraries, tables and numbers of ranks say of a collective."""
    yield from of_smaller_message(row, rows)
    yield from of_other_library(row, rows)
    yield from of_other_table(row, rows)
    yield from of_other_ranks(row, rows)
    yield from of_fewer_hosts(row, rows)
    yield from of_far_pairs(row, rows)


def of_fewer_hosts(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The same collective typed in over fewer hosts, of which two may have twice the line."""
    hosts, size = row.settings.get("hosts", 1), row.settings.get("bytes", LONG_MESSAGE)
    if row.how.get("tool") not in _SIDE_BY_SIDE or hosts < 3 or size < LONG_MESSAGE:
        return
    like = [
        each for each in rows
        if each.metric == row.metric and each.value and 1 < each.settings.get("hosts", 1) < hosts
        and each.how.get("tool") == row.how.get("tool") and line_of(each) == line_of(row)
        and each.settings.get("bytes", LONG_MESSAGE) == size and _without_hosts(each) == _without_hosts(row)
    ]  # fmt: skip
    if (best := best_of(like)) is not None:
        yield of_other_rows(_rate(best), _OF_FEWER_HOSTS, f"the same over {best.settings['hosts']} hosts")


def _without_hosts(row: Observation) -> str:
    """What a row is called, without its numbers of nodes and ranks."""
    return " ".join(_HOSTS.sub(" ", row.scenario).lower().split())


def smaller_message(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The best smaller message of a collective whose bus bandwidth falls below half of it from this row's size on."""

    size = row.settings.get("bytes", 0)
    if size < LEAST_JUDGED:
        return None
    like = [
        each for each in rows
        if each.scenario == row.scenario and each.value and each.metric == row.metric and each.flow == row.flow
        and each.how == row.how and {**each.settings, "bytes": size} == row.settings
    ]  # fmt: skip
    smaller = [each for each in like if each.settings.get("bytes", 0) < size]
    best = best_of(smaller)
    if best is None:
        return None
    larger = [each.value for each in like if each.value and each.settings.get("bytes", 0) >= size]
    return best if max(larger, default=0.0) < _COLLAPSED * _rate(best) else None


def of_other_library(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The same collective of the same ranks and size by another library, where both are typed in as one question."""
    if row.how.get("tool") not in _SIDE_BY_SIDE:
        return
    column = [_rate(each) for each in rows if each.scenario == row.scenario and each.flow == row.flow]
    disturbed = _rate(row) < _OF_ANOTHER * max(column, default=0.0)
    like = [
        each for each in rows
        if each.metric == row.metric and each.flow == row.flow and each.value and each.how.get("tool") in _SIDE_BY_SIDE
        and line_of(each) == line_of(row) and _alike(each, row) and not (_of_other_column(each, row) and disturbed)
    ]  # fmt: skip
    # A name that says no collective is of the one that the others name, if that is one.
    one_name = len({_named(each) for each in like} - {""}) < 2
    like = [each for each in like if _named(each) == _named(row) or one_name]
    best = max(like, key=_rate, default=row)
    if _rate(best) > _rate(row):
        yield of_another_row(_rate(best), _OF_ANOTHER, f"the same collective in '{best.scenario}'")


def _of_other_column(each: Observation, row: Observation) -> bool:
    """Whether two rows are what a program got in place and out of place."""
    names = [one.scenario for one in (each, row)]
    return names[0] != names[1] and _PLACE.sub("", names[0]) == _PLACE.sub("", names[1])


def _alike(each: Observation, row: Observation) -> bool:
    """Whether two rows have the same settings, or by their names are of two programs with two long sizes."""
    sizes = [one.settings.get("bytes", 0) for one in (each, row)]
    same = {**each.settings, "bytes": 0} == {**row.settings, "bytes": 0}
    return same and (sizes[0] == sizes[1] or (min(sizes) >= LONG_MESSAGE and each.scenario != row.scenario))


def of_other_table(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Long messages of one of several tables of a collective in a text, where another table is faster as a whole."""
    size = row.settings.get("bytes", 0)
    if size < LEAST_JUDGED or row.how.get("tool") == "typed in" or not _TABLE.search(row.scenario):
        return
    tables: dict[str, dict[int, float]] = defaultdict(dict)
    for each in rows:
        if each.value and _table_kind(each) == _table_kind(row) and each.settings.get("bytes", 0) >= LEAST_JUDGED:
            tables[each.scenario][each.settings["bytes"]] = each.value
    own = tables.pop(row.scenario, {})
    faster = [
        name for name, table in tables.items()
        if size in table and (common := own.keys() & table)
        and max(own[at] for at in common) < _OF_ANOTHER * max(table[at] for at in common)
    ]  # fmt: skip
    best = max((tables[name][size] for name in faster), default=0.0)
    if best:
        name = next(name for name in faster if tables[name][size] == best)
        yield of_another_row(best, _OF_ANOTHER, f"the same messages in '{name}'")
        return
    for name, table in tables.items():
        longest = max((value for at, value in table.items() if at >= LONG_MESSAGE), default=0.0)
        if (
            size >= LONG_MESSAGE
            and not own.keys() & table
            and max(own.values(), default=longest) < _OF_ANOTHER * longest
        ):
            yield of_another_row(longest, _OF_ANOTHER, f"messages of {units.size(LONG_MESSAGE)} and more in '{name}'")


def of_other_ranks(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The same collective typed in of fewer and of more GPUs of a host, both far faster than this number of them."""
    ranks = row.settings.get("ranks", 0)
    if row.how.get("tool") != "typed in":
        return
    like = [
        each for each in rows
        if each.metric == row.metric and each.value and each.how.get("tool") == "typed in"
        and {**each.settings, "ranks": ranks} == row.settings and _named(each) == _named(row)
        and each.settings.get("bytes", 0) >= LEAST_JUDGED and each.settings.get("hosts", 1) == 1
    ]  # fmt: skip
    fewer = max((_rate(each) for each in like if each.settings.get("ranks", 0) < ranks), default=0.0)
    more = max((_rate(each) for each in like if each.settings.get("ranks", 0) > ranks), default=0.0)
    if nominal := min(fewer, more):
        yield of_another_row(nominal, _COLLAPSED, "the same collective of fewer and of more GPUs")


def of_other_gpus(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The same collective of as many other GPUs of the host, typed in side by side."""
    if row.how.get("tool") != "typed in" or "," not in row.flow or row.settings.get("hosts", 1) > 1:
        return
    like = [
        each for each in rows
        if each.metric == row.metric and each.value and each.scenario == row.scenario and each.flow != row.flow
        and each.settings == row.settings and each.flow.count("->") == row.flow.count("->")
        and each.how.get("p2p") == row.how.get("p2p") and each.how.get("tool") == "typed in"
    ]  # fmt: skip
    best = best_of(like)
    if best is not None:
        yield of_other_rows(_rate(best), _OF_OTHER_GPUS, f"the same of {best.flow}")


def _table_kind(row: Observation) -> tuple[object, ...]:
    """What tables of one collective in a text share: all but the name that the text gives them, and the size."""
    settings = {**row.settings, "bytes": 0}
    return row.metric, row.flow, _TABLE.sub("", row.scenario), row.how.get("tool"), settings


def _named(row: Observation) -> str:
    """The collective that a row's name says; empty if none."""
    match = _COLLECTIVE.search(row.scenario.lower())
    return match[0].replace("_", "").replace("alltoall", "a2a") if match else ""


def around_dip(row: Observation, rows: Sequence[Observation]) -> Observation | None:
    """The lesser of the best smaller and the best larger message, if both are far above this one, in place as well."""
    size, kind = row.settings.get("bytes", 0), _PLACE.sub("", row.scenario)
    if size < LEAST_JUDGED:
        return None
    like = [
        each for each in rows
        if each.metric == row.metric and _PLACE.sub("", each.scenario) == kind and each.flow == row.flow
        and each.value and {**each.settings, "bytes": size} == row.settings
    ]  # fmt: skip
    smaller = [each for each in like if 0 < each.settings.get("bytes", 0) < size]
    larger = [each for each in like if each.settings.get("bytes", 0) > size]
    if not smaller or not larger:
        return None
    least = min((max(side, key=_rate) for side in (smaller, larger)), key=_rate)
    own = [_rate(each) for each in like if each.settings.get("bytes", 0) == size]
    return least if len(own) > 1 and max(own) < _DIP * _rate(least) else None


def _rate(row: Observation) -> float:
    return row.value or 0.0


def of_smaller_message(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Messages that are slow because smaller ones of the same table were faster: bus bandwidth grows with the size."""
    best, share = smaller_message(row, rows), _COLLAPSED
    if best is None:
        best, share = around_dip(row, rows), _DIP
    if best is not None and best.value:
        yield of_another_row(best.value, share, f"messages of {units.size(best.settings['bytes'])}")
