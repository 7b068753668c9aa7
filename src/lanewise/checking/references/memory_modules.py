"""Rates of a host's memory compared with what its modules carry, where somebody states them or their rate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from lanewise import units
from lanewise.catalog import Catalog
from lanewise.checking.references.parts import Reference
from lanewise.errors import LanewiseError
from lanewise.results.observation import Observation
from lanewise.results.posted import MODULES, PostedFacts

# A DIMM of DDR3 to DDR5 has 64 data bits (JESD79-3, -4 and -5; DDR5's are two subchannels of 32).
_BYTES = 8
# STREAM's Triad has 0.55 of what eight channels of DDR4 carry (superuser.com 1815148), as a store that is no streaming
# one reads its line first. Two modules to a channel carry what one does, so that half of what is stated may be all.
_FINE, _SLOW = 0.55, 0.25
_SLOW_BY_CHANNEL = 0.4
_MOST_OF_CHANNELS = 0.75
# A rounded figure; no program gets more than the pins carry.
_ABOVE = 1.05
STATED_RATE = "the stated rate of the memory"
OF_CHANNELS = "all channels of the CPU"
_CHANNELS_OF = re.compile(r"\b(\d{1,2}) channels\b")
# More modules than this are two to a channel: two sockets have at most 24 channels (EPYC 9004).
_CHANNELS = 24
_ONE = re.compile(r"\b(?:single|one|1)[ -]?(?:thread|core|job)|\bper (?:core|thread)\b", re.IGNORECASE)
_NOT_IN_ORDER = re.compile(r"random|latency|cache", re.IGNORECASE)
_LEAST = 2**30
# Programs that measure memory: what others take of a rate is their own affair.
_OF_MEMORY = re.compile(
    r"\bstream\b|\btriad\b|\bmlc\b|\bmbw\b|memory latency checker|likwid|\bbandwidth\b", re.IGNORECASE
)
# What one core asks of the memory at least: ten lines of 64 B in flight (Intel's optimization manual, line fill buffers
# of Skylake), each of which takes 100 ns. Fewer threads than that need not reach what all cores do.
_OF_A_CORE = 10 * 64 / 100e-9


def of_memory_channels(row: Observation, posted: PostedFacts, catalog: Catalog) -> Iterator[Reference]:
    """All that modules, their rate and the channels of the CPU say of a host's memory."""
    yield from of_empty_channels(row, posted, catalog)
    yield from of_full_channels(row, posted, catalog)
    yield from of_modules(row, posted)


def modules_rate(posted: PostedFacts) -> tuple[float, int, str]:
    """What all modules that somebody states carry in B/s, how many they are, and where it stands; 0 if none."""
    for statement in posted.stated("memory modules"):
        if match := MODULES.search(statement.value):
            count = int(match["count"])
            return count * _BYTES * int(match["rate"]) * 1e6, count, statement.source
    return 0.0, 0, ""


def _channels(posted: PostedFacts, catalog: Catalog) -> int:
    """The memory channels of a socket of the only CPU that is named; 0 where nobody knows them, or models differ."""
    cpus = {statement.value for statement in posted.stated("cpu")}
    name = cpus.pop() if len(cpus) == 1 else ""
    figure = catalog.get(name).figures.get("memory.rate") if name in catalog else None
    counts = _CHANNELS_OF.findall(figure.condition) if figure is not None else []
    return int(counts[0]) if len(counts) == 1 else 0


def of_full_channels(row: Observation, posted: PostedFacts, catalog: Catalog) -> Iterator[Reference]:
    """A node's own memory with more of a socket's rate than three of four channels carry: none of a fourth is empty."""
    cpus = {statement.value for statement in posted.stated("cpu")}
    name = cpus.pop() if len(cpus) == 1 else ""
    figure = catalog.get(name).figures.get("memory.rate") if name in catalog else None
    nodes = set(row.flow.replace(" ", "").split("->"))
    own = len(nodes) == 1 and ":" in row.flow and row.path == "host memory" and row.metric == "goodput"
    if own and figure is not None and isinstance(figure.value, float) and not posted.stated("memory rate"):
        fine = (row.value or 0.0) >= _MOST_OF_CHANNELS * figure.value
        cached = _NOT_IN_ORDER.search(f"{row.scenario} {row.note}") or 0 < row.settings.get("bytes", 0) < _LEAST
        if fine and not cached:
            least, limit = _MOST_OF_CHANNELS * figure.value, f"a socket's memory, {figure.condition}"
            yield Reference("parts", figure.value, least, 0.0, None, limit, figure.source)


def of_empty_channels(row: Observation, posted: PostedFacts, catalog: Catalog) -> Iterator[Reference]:
    """A host's memory whose modules leave channels empty: no program gets more than these carry.

    Empty slots alone prove nothing, as boards have two to a channel. The modules of a whole host are compared with the
    channels of one socket, so that one of two sockets without any passes.
    """
    channels = _channels(posted, catalog)
    carried, count, source = modules_rate(posted)
    if (row.value or 0.0) > _ABOVE * carried:
        return  # counted otherwise, or the modules are others: `of_modules` says so
    if posted.stated("memory rate") or row.how.get("expectation") == "nominal":
        return  # whoever says what the modules carry asks about that
    if 0 < count < channels and row.path == "host memory" and row.metric == "goodput" and ":" not in row.flow:
        limit = f"{OF_CHANNELS}, of which {count} modules fill some"
        most = carried / count * channels
        yield Reference("parts", most, _FINE * most, min(carried, _FINE * most), None, limit, source)


def of_modules(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """What a host's memory has of the rate of its modules, or of its stated rate, all cores together."""
    rate, count, source = modules_rate(posted)
    of_memory, node = row.path == "host memory" and row.metric == "goodput", ":" in row.flow
    words = f"{row.scenario} {row.note}"
    alone = row.settings.get("threads", 2) == 1 or _ONE.search(words)
    if not of_memory or _NOT_IN_ORDER.search(words) or 0 < row.settings.get("bytes", 0) < _LEAST:
        return
    slow = _SLOW if _perhaps_two_a_channel(count) else _SLOW_BY_CHANNEL
    limit, above = f"{count} modules, {rate / max(count, 1) / 1e9:.1f} GB/s each", _ABOVE
    if not rate and _OF_MEMORY.search(f"{row.scenario} {row.how.get('tool', '')}"):
        (rate, source), limit, above = stated_rate(posted), STATED_RATE, 1.1  # as in `ceilings`
    if rate:
        # A node has all of the memory or a part of it: what is fine of all is fine of a part.
        # One core need not reach what all do.
        slow = 0.0 if node or alone else min(slow * rate, _OF_A_CORE * row.settings.get("threads", math.inf))
        yield Reference("parts", rate, _FINE * rate, slow, above * rate, limit, source)


def stated_rate(posted: PostedFacts) -> tuple[float, str]:
    """The rate of a host's memory that somebody stated, in B/s, and where; 0 if none, or if a GPU is named as well."""
    for statement in posted.stated("memory rate")[:1]:
        try:
            return (0.0, "") if posted.devices else (units.parse(statement.value, "B/s"), statement.source)
        except LanewiseError:
            break
    return 0.0, ""


def _perhaps_two_a_channel(count: int) -> bool:
    """Whether so many modules may be two to a channel: a desktop's four, a server's sixteen or 32."""
    return count in (4, 8, 16) or count > _CHANNELS
