"""Verdicts where no model predicts a row: by what the named parts can do, the line, and other rows of the same run.

Each reference says from where on a row is fine and below what it is slow; between the two nothing is known. A row is
ok only if a reference of its own path says so: rows that are like each other may all be slow.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from lanewise.catalog import Catalog
from lanewise.checking.expectation import NOTHING_DESCRIBED, starts_longer_than_it_moves, too_short
from lanewise.checking.named.abilities import not_in_the_catalogue
from lanewise.checking.references.ceilings import ceiling
from lanewise.checking.references.collective_times import slower_than_any_ring
from lanewise.checking.references.collectives import of_other_collectives, of_other_gpus
from lanewise.checking.references.detours import (
    of_host_memory,
    of_pageable_back,
    of_staged_copy,
    of_wanted_pinned,
    of_writes,
)
from lanewise.checking.references.drives import (
    any_nvme_drive,
    drive_references,
    long_disk,
    of_downgraded_link,
    of_gpu_host,
    of_sata_link,
    random_disk,
    rated_reads,
    sata_ssd,
    small_reads,
    unknown_drive,
)
from lanewise.checking.references.gpu_memory import GPU_MEMORY, of_gpu_memory
from lanewise.checking.references.gpus_of_a_name import of_gpus_of_a_name
from lanewise.checking.references.host_nodes import of_other_node
from lanewise.checking.references.judgement import (
    ASKED_FOR_NO_MORE,
    HOST_COPIES,
    between,
    by_reference,
    compared,
    link_with_rate,
    met_limit,
    of_unasked,
    verdict_by,
)
from lanewise.checking.references.kinds import of_other_rows
from lanewise.checking.references.latencies import (
    faster_than_any_link,
    is_median_of_a_network,
    is_time,
    of_small_collectives,
    of_small_messages,
    slower_than_others,
)
from lanewise.checking.references.lines import (
    all_to_all_by_line,
    by_line,
    by_line_in_bulk,
    filled_line,
    keeps_to_fewer_ports,
    of_lesser_port,
    over_gloo,
    ring_by_line,
    sendrecv_by_line,
)
from lanewise.checking.references.many_rows import evenly_sampled, fastest
from lanewise.checking.references.memory_modules import of_memory_channels
from lanewise.checking.references.one_setting import OneSetting
from lanewise.checking.references.packets import of_packets, of_small_messages_on_a_line
from lanewise.checking.references.parts import (
    Reference,
    fastest_of_any_collective,
    short_copy,
)
from lanewise.checking.references.paths import (
    fewer_in_flight,
    of_like_size,
    of_mapped_file,
    of_one_folder,
    of_smaller,
    same_path,
)
from lanewise.checking.references.rdma_turned_off import of_rdma_turned_off
from lanewise.checking.references.rings import of_peer_copies
from lanewise.checking.references.row_parts import RowParts
from lanewise.checking.references.same_load import of_same_load
from lanewise.checking.references.siblings import Siblings, flows_of
from lanewise.checking.references.side_by_side import COUNTS, kinds_side_by_side, of_fewer_gpus, of_like
from lanewise.checking.references.stated_limits import (
    NO_MEASUREMENT,
    measured,
    names_limit,
    of_expected_collective,
    of_native,
    of_short_requests,
    of_stated_count,
    of_stated_limit,
)
from lanewise.checking.references.texts import PlainTextRows, of_plain_text
from lanewise.checking.references.together import of_several_gpus
from lanewise.checking.references.training_steps import of_waiting
from lanewise.checking.symptom import row_devices
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.figure_reasons import asked_for_no_more
from lanewise.results.match import CONTEXT, METHOD, Identity, identity
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts
from lanewise.topology.model import System

# The rate of a collective (NCCL): only bounds judge it where the machine is not described.
COLLECTIVE = "bus_bandwidth"
NO_COLLECTIVES = "without a description of the machine a collective is checked by bounds alone"
UNNAMED_COLLECTIVE = (
    "the table does not say which collective it is: add a line with the command, such as all_gather_perf"
)
UNNAMED = "nobody named the GPU"
NOT_IN_CATALOGUE = "the catalogue does not have"
RATES = ("goodput", "total", COLLECTIVE)
# Copies within one memory: the diagonal of a matrix says nothing of a path.
WITHIN_ONE = ("GPU memory", "host memory")
# What a row is compared with is faster; of thousands of one path the fastest say as much.
_MOST_ON_A_PATH = 200
_IGNORED_ON_A_PATH = (*CONTEXT, "scenario", "settings", "path",
                      *(key for key in METHOD if key not in ("flows", "p2p", "phase")))  # fmt: skip


@dataclass
class References:
    """The references of the rows of one check, with what was posted of the machine."""

    rows: Sequence[Observation]
    posted: PostedFacts
    catalog: Catalog
    system: System | None = None
    _siblings: Siblings = field(init=False)
    _paths: dict[Identity, list[Observation]] = field(init=False)
    _measured: list[Observation] = field(init=False)
    _between: dict[frozenset[str], list[Observation]] = field(init=False)
    _kinds: Mapping[str, Sequence[Observation]] = field(init=False)
    _settings: OneSetting = field(init=False)
    _of_gpus: dict[str, References] = field(init=False)
    texts: PlainTextRows = field(init=False)
    parts: RowParts = field(init=False)

    def __post_init__(self) -> None:
        self._of_gpus = {}
        self.texts = PlainTextRows([row for row in self.rows if of_plain_text(row)])
        self.rows = [row for row in self.rows if not of_plain_text(row) and ceiling(row, self.posted) is None]
        rows, self.rows = self.rows, fastest(self.rows)
        self._measured = measured(self.rows)
        self._kinds, self._settings = kinds_side_by_side(self._measured), OneSetting(self._measured)
        memory = [row for row in self.rows if row.path == GPU_MEMORY]
        self.parts = RowParts(self.posted, self.catalog, self.system, memory)
        self._between = defaultdict(list)
        for row in self.rows:
            self._between[row_devices(row)].append(row)
        rates = [
            row for row in evenly_sampled(rows)
            if row.value is not None and row.metric in RATES and row.path not in WITHIN_ONE
        ]  # fmt: skip
        self._siblings, self._paths = Siblings(rates, self.posted), defaultdict(list)
        for row in rates:
            self._paths[identity(row, _IGNORED_ON_A_PATH)].append(row)
        for path, rows in self._paths.items():
            if len(rows) > _MOST_ON_A_PATH:
                self._paths[path] = sorted(rows, key=lambda each: each.value or 0.0, reverse=True)[:_MOST_ON_A_PATH]

    def of_its_gpu(self, row: Observation) -> References:
        """The references of a row that names another GPU than the text: rows of the same GPU, or of an unnamed one."""
        name = row.how.get("GPU", "")
        if name and name not in self._of_gpus:
            rows = [each for each in self.rows if each.how.get("GPU", name) == name]
            posted = replace(self.posted, devices={"gpu": name})
            self._of_gpus[name] = References(rows, posted, self.catalog, self.system)
        return self._of_gpus[name] if name else self

    def with_posted(self, posted: PostedFacts) -> References:
        """The references of the same rows, sorted once, with other facts posted of the machine."""
        others = copy(self)
        others._of_gpus = {}
        others.posted, others._siblings = posted, self._siblings.with_posted(posted)
        others.parts = replace(self.parts, posted=posted)
        return others

    def judge(self, result: PathResult) -> PathResult:
        """The result of a row that nothing was expected of, judged by its references if it has any."""
        row = result.row
        if row.value is None or result.verdict is not Verdict.UNKNOWN:
            return result
        if of_plain_text(row):
            return self._of_a_text(result)
        if is_time(row):
            return self._of_a_time(result)
        if is_median_of_a_network(row):
            return of_small_messages(result)
        if (above := ceiling(row, self.posted)) is not None:
            return by_reference(row, above, Verdict.FAST)
        if names_limit(row):
            return replace(result, note=NO_MEASUREMENT)
        if row.path == "network" and asked_for_no_more(f"{row.scenario} {row.note}", row.value):
            return replace(result, note=ASKED_FOR_NO_MORE)
        return self._by_references(result)

    def _by_references(self, result: PathResult) -> PathResult:
        """The result of a row by the first reference that calls it slow, else fine, else too fast."""
        row, references, older = result.row, list(self.of(result.row)), self.parts.older_host(result.row)
        verdicts = [verdict_by(row, reference, older) for reference in references]
        if met := met_limit(references, verdicts):
            return replace(
                by_reference(row, met, Verdict.UNKNOWN), note=f"{compared(row, met)}, but less than its parts can"
            )
        for verdict in (Verdict.SLOW, Verdict.OK, Verdict.FAST):
            if verdict in verdicts:
                return by_reference(row, references[verdicts.index(verdict)], verdict)
        if row.path == "network" and asked_for_no_more(row.how.get("protocol", ""), row.value or 0.0):
            return of_unasked(result)
        if row.how.get("expectation"):
            return self._as_wanted(result)
        own = next((reference for reference in references if reference.own), None)
        return self._undecided(result) if own is None or row.metric == COLLECTIVE else between(row, own, older)

    def _undecided(self, result: PathResult) -> PathResult:
        """The result of a row that no reference of its own path is known of, with the reason."""
        row = result.row
        if row.metric == COLLECTIVE:
            unnamed = row.scenario.split()[:1] == ["collective"]
            note = UNNAMED_COLLECTIVE if unnamed else NO_COLLECTIVES
            return replace(result, note=note) if unnamed or result.note == NOTHING_DESCRIBED else result
        if (link := link_with_rate(row)) and not self.parts.gpu(row):
            note = f"{UNNAMED}; the rate is what a link of {link} gives, or a part of what a better one does"
            return replace(result, note=note)
        if result.note != NOTHING_DESCRIBED:
            return result
        missing = not_in_the_catalogue(row, self.posted, self.catalog) or unknown_drive(row, self.parts.drive(row))
        return replace(result, note=f"{NOT_IN_CATALOGUE} {missing}") if missing else result

    def _of_a_time(self, result: PathResult) -> PathResult:
        """A latency, by that of the same copy in other rows, else by what the asker expects of it."""
        result = slower_than_others(result, self._between[row_devices(result.row)], self.rows)
        result = faster_than_any_link(of_small_collectives(of_small_messages(result)))
        result = slower_than_any_ring(result, self.parts.gpu(result.row))
        asked = result.verdict is Verdict.UNKNOWN and result.row.how.get("expectation")
        return self._as_wanted(result) if asked else result

    def _as_wanted(self, result: PathResult) -> PathResult:
        """By what is wanted of a row; a link's rating says nothing of what takes longer to start than to move."""
        wanted, row = self.texts.judge(result), result.row
        of_a_link = row.how["expectation"] == "nominal" and starts_longer_than_it_moves(row)
        return self._undecided(result) if of_a_link and wanted.verdict is Verdict.SLOW else wanted

    def _of_a_text(self, result: PathResult) -> PathResult:
        """A figure of plain text: by what its path, drive or line can do if the text says that, else by its words."""
        row = result.row
        by_words = self.texts.judge(result)
        references = [*self._of_a_lone_flow(row)]
        verdicts = [reference.verdict(row.value or 0.0) for reference in references]
        if row.path == "peer":  # a bridge of NVLinks that nobody speaks of carries more than PCIe
            verdicts = [Verdict.UNKNOWN if each is Verdict.FAST else each for each in verdicts]
        # Who expects more of a path than it can do is told that it is fine.
        wanted = by_words.verdict is Verdict.SLOW and row.how.get("expectation") in ("expected", "nominal")
        for verdict in (Verdict.FAST, Verdict.OK, Verdict.SLOW):
            if verdict in verdicts and (by_words.verdict is not Verdict.SLOW or wanted or verdict is Verdict.FAST):
                return by_reference(row, references[verdicts.index(verdict)], verdict)
        return by_words

    def _of_a_lone_flow(self, row: Observation) -> Iterator[Reference]:
        """The references of a figure of plain text that need no other row."""
        if row.metric == COLLECTIVE:
            named = replace(row, scenario=row.how.get("collective", ""))
            yield from self.parts.bounds(named)
            return
        if row.metric != "goodput" or too_short(row):
            return
        if row.path in HOST_COPIES or row.path == "peer":
            yield from self.parts.references(row)
        elif row.path == "network":
            yield from of_lesser_port(row, self.posted)
        elif row.path == GPU_MEMORY:
            yield from of_gpu_memory(row, self.rows, self.posted, self.catalog)
        elif row.path == "storage" and (drive := self.parts.drive(row)) is not None:
            yield from drive_references(row, drive)

    def of(self, row: Observation) -> Iterator[Reference]:
        """All references of a row, those of its own path first."""
        yield from self._of_any_metric(row)
        if row.metric not in RATES or row.path in WITHIN_ONE:
            return
        if row.metric == COLLECTIVE:
            yield from self._of_a_collective(row)
            return
        yield from self._of_short_requests(row) if too_short(row) else self._of_long_copies(row)
        yield from of_mapped_file(row, self._on_path(row))
        yield from of_several_gpus(row, self.rows)
        yield from of_other_node(row, self.rows)
        yield from of_other_rows(row, self.rows)
        yield from of_smaller(row, self._on_path(row))
        if row.path == "storage" or not too_short(row) or (row.path, row.how.get("tool")) == ("network", "typed in"):
            yield from self._siblings.of_kind(row)

    def _of_any_metric(self, row: Observation) -> Iterator[Reference]:
        """References by rows side by side, memories, packets and what is counted a second."""
        yield from of_like(row, self._kinds)
        yield from self._settings.of(row)
        yield from of_gpu_memory(row, self.rows, self.posted, self.catalog)
        yield from of_memory_channels(row, self.posted, self.catalog)
        yield from of_native(row, self.rows)
        yield from of_packets(row, self.posted)
        yield from of_waiting(row, self.rows)
        yield from of_same_load(row, self.rows, self.posted)
        if row.metric == COUNTS:
            yield from of_stated_count(row, self.rows)
            yield from of_fewer_gpus(row, self.rows)
            yield from of_gpus_of_a_name(row, self.rows, self.posted)

    def _of_a_collective(self, row: Observation) -> Iterator[Reference]:
        """References of a collective: other ones, copies between its GPUs, its network, and bounds."""
        yield from of_other_collectives(row, self._measured)
        part = self.parts.gpu(row)
        if part is not None and part.nvlink_rate is None and not part.has_own_links:
            yield from of_other_gpus(row, self._measured)
        yield from of_peer_copies(row, self._measured, part)
        yield from of_expected_collective(row, self.rows)
        yield from filled_line(row, self.posted)
        yield from all_to_all_by_line(row, self.posted)
        yield from sendrecv_by_line(row, self.posted)
        part = part or self.parts.gpu_of_all_ranks(row)
        yield from over_gloo(row, self.posted, part)
        yield from ring_by_line(row, self.posted, part)
        yield from of_rdma_turned_off(row, self.posted)
        yield fastest_of_any_collective()
        yield from self.parts.bounds(row)

    def _of_short_requests(self, row: Observation) -> Iterator[Reference]:
        """References of copies, requests or messages that cost more to start than to carry."""
        on_path = self._on_path(row)
        yield from of_short_requests(row, on_path)
        yield from of_small_messages_on_a_line(row, self.posted)
        shorter = (short_copy(row, reference) for reference in self.parts.references(row))
        yield from (reference for reference in shorter if reference is not None)
        if row.path == "storage":
            if (drive := self.parts.drive(row)) is not None:
                yield from rated_reads(row, drive)
            yield from small_reads(row)
            yield from random_disk(row, self.posted)
        # A tool's own scenarios of short copies differ in method; what is typed in side by side is one question.
        if row.path in ("storage", "network") or row.how.get("tool") == "typed in":
            yield from same_path(row, on_path)
        if row.path == "network":
            yield from by_line_in_bulk(row, flows_of(row), self.posted, on_path)
        if row.path in ("storage", "network"):
            yield from fewer_in_flight(row, on_path)
            yield from of_like_size(row, on_path)

    def _of_long_copies(self, row: Observation) -> Iterator[Reference]:
        """References of copies and I/O that fill their path: its parts, line, drive, and other rows of it."""
        on_path, part = self._on_path(row), self.parts.gpu(row)
        yield from self.parts.references(row)
        yield from self._of_a_drive(row)
        yield from of_lesser_port(row, self.posted)
        wires = math.inf if part is None else part.wires_to_host
        yield from by_line(row, flows_of(row), self.posted, wires, on_path)
        yield from of_rdma_turned_off(row, self.posted)
        others = [each for each in on_path if not keeps_to_fewer_ports(row, each, self.posted)]
        yield from same_path(row, measured(others))
        yield from of_stated_limit(row, on_path)
        yield from of_staged_copy(row, self._between[row_devices(row)])
        yield from of_host_memory(row, self.rows)
        yield from of_pageable_back(row, self.rows)
        yield from of_wanted_pinned(row, self.rows, part)
        peer_rate = None if part is None else part.peer_rate()
        yield from self._siblings.of_other_pairs(row, peer_rate)
        yield from self._siblings.of_both_ways(row, peer_rate)
        yield from of_writes(row, self.rows)
        yield from of_one_folder(row, self.rows)

    def _of_a_drive(self, row: Observation) -> Iterator[Reference]:
        """References by the drive, the disk or the link that somebody names."""
        if (drive := self.parts.drive(row)) is None:
            yield from of_gpu_host(row, self.posted, self.catalog)
            yield from any_nvme_drive(row)
            yield from long_disk(row, self.posted)
            yield from sata_ssd(row, self.posted)
        elif not self.parts.tunnel_of_drive(row):
            yield from drive_references(row, drive)
        yield from of_downgraded_link(row, self.posted)
        yield from of_sata_link(row, self.posted)

    def _on_path(self, row: Observation) -> list[Observation]:
        """The rows of the same flows, however they were moved: the fastest where they are many."""
        return self._paths[identity(row, _IGNORED_ON_A_PATH)]
