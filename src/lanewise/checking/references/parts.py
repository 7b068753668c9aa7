"""What GPUs can do by their names alone, as references of peer copies, collectives and short copies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise.catalog import Catalog, Part
from lanewise.checking.named.abilities import GpuAbility, is_coherent, raw_rate, shares_host_memory
from lanewise.checking.references.board_pairs import fine_all_reduce_of_two
from lanewise.checking.verdict import Verdict
from lanewise.perf.flow import Flow
from lanewise.results.figure_words import FAR_WORDS
from lanewise.results.observation import Observation

# What starts a copy and waits for it costs at most, s: a launch is 5 to 10 us, a synchronisation as much again.
START = 40e-6
# Shorter copies (B) tell nothing of a path: even on a healthy machine they cost more to start than to carry.
LEAST_SHORT_COPY = 10**6
# How near a rate is to that of some of the NVLinks: of two V100 and P100 by 0.2 and 0.5 % (Dell, C4130).
_NEAR_LINKS = 0.06
NO_NVLINK = "without NVLinks,"
# Four lanes of Gen2 carry 1.6 GB/s of copies, and no slot for GPUs has less: below half of it a long copy is slow,
# whatever the GPU. A coherent link (NVLink-C2C) carries more than any of PCIe.
LEAST_RATE = 0.8e9
_FINE_COHERENT = 0.7
# A GB200 whose memory is on the other node has 0.35 of its coherent link (pytorch/torchtitan#3519): slow is less.
_FAR_COHERENT = 0.25
# Each pair of a board of four A100 or H100 has a third of their NVLinks (HGX data sheets), of one of eight all.
_SLOW_ON_A_BOARD = 0.28
# Where NVSwitches join all GPUs every pair has all links; kernels and libraries get 0.82 and more of them (evidence
# b200-p6, b300-engaging), and nobody on a sound board less than half.
_SLOW_BEHIND_SWITCHES = 0.5
# Staged copies both ways below switches: two GPUs of one share its uplink in all four stages (0.21 and 0.23 of both
# links on a DGX A100 and on eight RTX 3090, 0.32 of GPUs of two switches).
_OF_SWITCHES = (
    (re.compile(r"\b(?:same|one) (?:pcie )?switch|\bPIX\b|\bPXB\b", re.IGNORECASE), 0.2),
    (re.compile(r"\bswitch(?:es)?\b|\bPLX\b|\bPEX", re.IGNORECASE), 0.3),
)
# GPUs with more memory bandwidth (B/s) than this have sixteen lanes of Gen3 or eight of Gen4 and up (makers'
# specifications from the GTX 1080 Ti on); even in a Thunderbolt 3 box, 2.4 GB/s, they reach twice this rate.
STRONG, LEAST_OF_STRONG = 400e9, 1.2e9
# Shorter messages (B) are below the peak on healthy machines: 8 H100 still gain above 256 MiB (NVIDIA/nccl-tests#212).
LEAST_MESSAGE = 256 * 10**6
# From where on a collective over NVSwitches is fine: in messages of 64 MiB and more rings reach 0.75 to 0.93 of what
# copies do (reduce_scatter of H100 311 to 362 GB/s of 390, nine collectives of B300 628 to 914), all_reduce 0.81 and
# more (A100 220, H200 325 to 347).
_FINE_ALL_REDUCE, _FINE_RING, _LEAST_FINE = 0.8, 0.74, 64 * 10**6
# What pairs exchange in both directions at once: two H200 sendrecv 0.66 and 0.69, alltoall 0.60 and 0.71 of 391 GB/s in
# 64 and 256 MB (benchmarks/runs/2026-11-27-two-gpus-own-programs).
_FINE_PAIRS, _PAIRS = 0.58, ("sendrecv", "alltoall", "all_to_all")
# In 16 MB and more the same machine reached 0.16 of its NVLinks with NCCL's slowest protocol, 0.07 without P2P.
_LEAST_OF_NVLINKS, _LEAST_LONG = 0.1, 16 * 10**6
_FINE_OF_ALL = 0.8
# What a ring of GPUs without NVLinks has of a peer copy at least, staged and across sockets.
LEAST_OF_CARDS = 0.12
# Rings of healthy PCIe peers reach 0.67 to 0.73 of one copy in 32 MiB (four and eight RTX PRO 6000 37.6 to 41.1 of
# 56.3 GB/s, Visual-Synthesizer/rtx6kpro); four whose far pairs NCCL staged reached 0.54 (the same page).
_FULL_RING = 0.65
# Below it nothing moves data between GPUs of one host: eight RTX 4090 at two EPYC 7543 staged 0.8 GB/s.
_LEAST_RING = 0.4e9
# All NVLinks of a B200 or B300 carry 0.9 TB/s each way (NVIDIA's data sheet), and NVLink SHARP sends half of the bytes:
# no collective is faster, whatever the GPUs.
FASTEST_LINKS = 1.8e12
# One core copies pageable memory into the driver's buffer, at 5 to 14 GB/s whatever the link (ProjectPhysX' page of
# OpenCL-Benchmark: 9.9 GB/s on a B300 of Gen6 x16, 14.1 on a B200 of Gen5 x16; clpeak's results: 4.6 on a TITAN V, of
# which an eighth is left off).
BY_ONE_CORE = 4e9
# A CPU waits for each of its reads of a GPU's memory: 0.52 to 0.55 GB/s whatever the link (gdrcopy's README).
_READ_BY_CPU = 0.3e9
# PCIe within Thunderbolt 3 and 4 or USB4: 32 Gb/s; Thunderbolt 5 and USB4 version 2: 64 Gb/s.
TUNNEL_RATE, _TUNNEL = 2.8e9, (1.8e9, 1.2e9, 8e9)
THROUGH_TUNNEL = "PCIe tunnel of"
# Host memory of a stated NUMA node.
_NODE = re.compile(r"\bhost\d*:\d|\bcpu\d")
# GPUs beside a Grace that NVSwitches join, on a board or over a rack (NVIDIA's data sheets of the NVL4 and NVL72).
_IN_A_RACK = re.compile(r"\bGB[23]00\b", re.IGNORECASE)
# These load every rank's links alike; those between pairs, from or to one rank need not.
RING_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")


@dataclass(frozen=True, slots=True)
class Reference:
    """What a row is compared with: fine from `fine_low` to `fine_high`, slow below `slow_below` (all SI).

    `nominal` is shown as the expected value. `own`: it is of this row's own path, so that it may call the row ok.
    """

    basis: str
    nominal: float
    fine_low: float
    slow_below: float
    fine_high: float | None
    limit: str
    source: str
    own: bool = True

    def verdict(self, value: float) -> Verdict:
        """The verdict on a rate by this reference alone."""
        if value < self.slow_below:
            return Verdict.SLOW
        if value < self.fine_low:
            return Verdict.UNKNOWN
        if self.fine_high is not None and value > self.fine_high:
            return Verdict.FAST
        return Verdict.OK if self.own else Verdict.UNKNOWN


def of_another_row(reached: float, share: float, limit: str) -> Reference:
    """What another row reached, of which a row must have a share: less is slow, but no row is fine by another alone."""
    return Reference("same path", reached, share * reached, share * reached, None, limit, "the other row", own=False)


def of_other_rows(reached: float, share: float, limit: str) -> Reference:
    """The same of several rows on other devices."""
    return replace(of_another_row(reached, share, limit), basis="siblings", source="the other rows")


def best_of(rows: Iterable[Observation]) -> Observation | None:
    """The fastest of rows, None if there is none with a rate."""
    best = max(rows, key=lambda row: row.value or 0.0, default=None)
    return best if best is not None and best.value else None


def short_copy(row: Observation, long: Reference) -> Reference | None:
    """The reference of a copy too short for the rate of a long one: slow only where no start could cost as much."""
    size = row.settings.get("bytes", 0)
    if (row.value or 0.0) >= long.fine_low:
        return long
    if size < LEAST_SHORT_COPY or row.how.get("p2p") == "off":
        return None

    def carried(rate: float) -> float:
        return size / (size / rate + START)

    return replace(
        long, nominal=carried(long.nominal), fine_low=carried(long.fine_low), slow_below=0.5 * carried(long.slow_below),
        own=False, limit=f"copies of {size / 1e6:.3g} MB, {long.limit}",
    )  # fmt: skip


def any_copy(row: Observation, title: str, catalog: Catalog, memory: float = 0.0) -> Iterator[Reference]:
    """What every GPU reaches in a long copy to or from host memory or a peer, though its name tells no link.

    `memory`: what its own memory was measured at, B/s.
    """
    host = row.path in ("host to device", "device to host")
    if row.how.get("engine") == "CPU" or not (host or row.path.startswith("peer")):
        return
    least, limit, source = 2 * LEAST_RATE, "Gen2 x4, the least of a GPU's slot", "the PCIe specification"
    slow = LEAST_RATE
    if host and memory > STRONG:
        limit, slow = "a tunnel of Thunderbolt, the least link that GPUs of such memory have", LEAST_OF_STRONG
    if host and is_coherent(title) and not shares_host_memory(title) and row.how.get("host memory") != "pageable":
        least, limit, source = raw_rate(5, 16), f"the coherent link of {title}, more than PCIe has", "its data sheet"
        slow = least
        part = catalog.gpu(title)
        key = f"engine.c2c_{'h2d' if row.path == 'host to device' else 'd2h'}"
        if part is not None and (rate := part.number(key)) and row.metric == "goodput":
            slow = max(slow, _FAR_COHERENT * rate)
            yield Reference("parts", rate, _FINE_COHERENT * rate, slow, None, limit, f"part {part.name}")
            return
    yield Reference("parts", least, slow, slow, None, limit, source, own=False)


def tunnel_copy(tunnel: str, source: str) -> Iterator[Reference]:
    """What a copy to or from any GPU or drive behind that tunnel reaches."""
    low, slow, high = _TUNNEL
    yield Reference("parts", TUNNEL_RATE, low, slow, high, f"{THROUGH_TUNNEL} {tunnel}", source)


def host_copy(part: GpuAbility, flows: Sequence[Flow], row: Observation) -> Iterator[Reference]:
    """What one GPU's copies to and from host memory can do."""
    nominal = part.host_rate(row.path == "host to device")
    if (gpus := len({end for flow in flows for end in (flow.src, flow.dst) if end.startswith("gpu")})) > 1:
        # Several GPUs at once share what nobody described, but more than each alone is not there to be had.
        times = gpus if row.metric == "total" else 1
        if gpus == len(flows) and (row.value or 0.0) >= _FINE_OF_ALL * times * nominal:
            limit = f"{f'{times} times ' * (times > 1)}Gen{part.gen} x{part.lanes} of {part.title}"
            yield Reference("parts", times * nominal, _FINE_OF_ALL * times * nominal, 0.0, None, limit, part.source)
        return
    low, slow = (0.8, 0.75)  # 0.78 of a V100 and a T4 in a cloud's machines
    if part.in_a_laptop:
        low, slow = 0.7, 0.65  # an RTX 5070 Laptop at Gen5 x8: 0.72 and 0.75 of it (20.1 and 20.9 GB/s)
    if row.metric == "total":
        nominal, low, slow = 2 * nominal, 0.65, 0.55  # both ways of an A100: 35 of 52
    elif len(flows) > 1:
        low, slow = 0.38, 0.35  # one way of both: 11 of 26 on an A100
    elif row.how.get("host memory") == "pageable":
        low = slow = min(0.2, BY_ONE_CORE / nominal)
    elif "timed" in row.how and not row.how.get("host memory"):
        slow = min(0.2, BY_ONE_CORE / nominal)  # what else the time holds, and which memory it is, nobody said
    elif row.how.get("engine") == "CPU" and row.path == "device to host":
        low = slow = _READ_BY_CPU / nominal
    elif row.how.get("engine") == "CPU":
        low, slow = 0.5, 0.3
    elif row.how.get("engine") == "SM":
        low, slow = 0.6, 0.5  # kernels read host memory at 35 of 55 on H100 (NVIDIA/nvbandwidth#24)
    if _NODE.search(row.flow) or FAR_WORDS.search(row.scenario):
        slow = min(slow, 0.45 if row.metric == "goodput" else 0.4)  # that node may be the far one
    wires = part.wires_to_host
    fastest = None if wires is None else wires * (2 if row.metric == "total" else 1)
    pageable = "pageable memory over " if row.how.get("host memory") == "pageable" else ""
    limit = f"{pageable}Gen{part.gen} x{part.lanes} of {part.title}"
    yield Reference("parts", nominal, low * nominal, slow * nominal, fastest, limit, part.source)


def peer_copy(part: GpuAbility, row: Observation, *, bridged: bool = False) -> Iterator[Reference]:
    """What the GPUs of a peer copy can do, staged or not, one way or both."""
    linked = part.all_linked or bridged
    both = 2 if row.metric == "total" else 1
    limit = f"Gen{part.gen} x{part.lanes} of {part.title}"
    pcie = part.peer_rate() * both
    # A name that the catalogue does not have may have NVLinks or xGMI.
    fastest = raw_rate(part.gen, part.lanes) * both if part.part is not None and not part.has_own_links else None
    if row.how.get("p2p") == "off":
        # Two stages, at best overlapped; below one uplink or port they share it.
        staged, wires = 0.85 * pcie, part.wires_to_host
        fastest = fastest if wires is not None else None
        fine = next((share for words, share in _OF_SWITCHES if both > 1 and words.search(row.scenario)), 0.4)
        yield Reference("parts", staged, fine * pcie, 0.1 * pcie, fastest, f"staged over {limit}", part.source)
    elif part.all_linked and not row.how.get("p2p") and part.nvlink_rate is not None:
        # Whether a library copies over NVLink is not said, but nothing else carries so much.
        nvlink = part.nvlink_rate * both
        if 0.75 * nvlink <= (row.value or 0.0) <= 1.15 * nvlink:
            limit = f"all NVLinks of {part.title}"
            yield Reference("parts", nvlink, 0.75 * nvlink, 0.0, 1.15 * nvlink, limit, part.source)
    elif part.nvlink_rate is not None and row.how.get("p2p") == "on":
        nvlink = part.nvlink_rate * both
        slow = 1.05 * raw_rate(part.gen, part.lanes) * both if linked else 0.28 * pcie
        least = _SLOW_BEHIND_SWITCHES if part.always_switched else _SLOW_ON_A_BOARD
        slow = max(slow, least * nvlink) if part.all_linked else slow
        high = 1.15 * nvlink
        yield from _some_links(part, both, row.value or 0.0)
        if not linked and (row.value or 0.0) <= pcie * 1.15:
            # A bridge joins pairs alone, and not every machine has one.
            yield Reference("parts", pcie, 0.75 * pcie, slow, None, f"{NO_NVLINK} {limit}", part.source)
        yield Reference("parts", nvlink, 0.75 * nvlink, slow, high, f"all NVLinks of {part.title}", part.source)
    elif row.how.get("p2p") == "on":
        yield Reference("parts", pcie, 0.75 * pcie, 0.28 * pcie, fastest, limit, part.source)


def _some_links(part: GpuAbility, both: int, value: float) -> Iterator[Reference]:
    """The rate of some of the NVLinks of a GPU that has them to several others, as in meshes of SXM boards.

    A bridge over four cards gives each pair a third of them (NVIDIA H200 NVL data sheet: two- and four-way bridges).
    """
    links = part.part.number("nvlink.links") if part.part is not None else None
    if part.part is None or links is None or part.nvlink_rate is None or part.all_linked:
        return
    each = part.nvlink_rate * both / links
    count = round(value / each)
    possible = count < links if "sxm" in part.part.name else 3 * count == links and part.part.name.endswith("-nvl")
    if count and possible and abs(value / (count * each) - 1) < _NEAR_LINKS:
        nominal, limit = count * each, f"{count} of the {links:g} NVLinks of {part.title}"
        yield Reference("parts", nominal, 0.9 * nominal, 0.0, None, limit, part.source)


def rack_collective(row: Observation, title: str, catalog: Catalog, *, joined: bool) -> Iterator[Reference]:
    """Bounds of a collective of GPUs beside a Grace that NVSwitches join: their link to the host is none of PCIe.

    `joined`: all hosts of the row are in one NVLink domain.
    """
    part = catalog.gpu(title) if _IN_A_RACK.search(title) else None
    raw = part.number("nvlink.rate") if part is not None else None
    if part is not None and raw:
        nvlink, source = part.number("engine.nvlink") or 0.9 * raw, f"part {part.name}"
        for each in _over_nvlinks(row, title, nvlink, source, part):
            # The slowest of sound pairs of trays has 0.84 in 256 MiB (kept questions a4x-max-two-trays: 650 GB/s).
            low = max(_least_over_nvlinks(row) * nvlink, each.slow_below) if joined else each.slow_below
            yield replace(each, slow_below=low, fine_low=max(low, each.fine_low))


def fastest_of_any_collective() -> Reference:
    """What no collective exceeds."""
    limit, source = "the NVLinks of the fastest GPUs, both ways", "NVIDIA's data sheet of the B300"
    return Reference("parts", FASTEST_LINKS, 0.0, 0.0, FASTEST_LINKS, limit, source, own=False)


def least_of_any_collective(row: Observation) -> Iterator[Reference]:
    """What no collective within a host stays below with long messages, staged through host memory as it may be."""
    if row.settings.get("bytes", 0) >= _LEAST_FINE:
        limit, source = "half a lane of Gen1 for each GPU", "the PCIe specification"
        yield Reference("parts", _LEAST_RING, _LEAST_RING, _LEAST_RING, None, limit, source, own=False)


def _ring_share(row: Observation) -> float:
    """What a healthy collective reaches at least of what copies over its links do; 0 for messages that are short."""
    share = 0.65 if row.scenario.startswith(RING_COLLECTIVES) else 0.35
    if row.settings.get("ranks") == 2:  # two H200 gather and scatter 256 MiB at 0.59 to 0.64 of their NVLinks
        share = min(share, 0.5)
    return share if row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE else 0.0


def _least_over_nvlinks(row: Observation) -> float:
    """What a healthy collective reaches at least of the NVLinks that join all its GPUs."""
    least = _LEAST_OF_NVLINKS if row.settings.get("bytes", LEAST_MESSAGE) >= _LEAST_LONG else 0.0
    return max(least, _ring_share(row))


def _over_nvlinks(row: Observation, title: str, nvlink: float, source: str, part: Part | None) -> Iterator[Reference]:
    """The bounds of a collective over the NVLinks of a board or rack with NVSwitches."""
    low, limit = _least_over_nvlinks(row) * nvlink, f"NVLinks of {title}"
    if row.settings.get("hosts", 1) > 1:
        low = 0.0  # of a rack its NVLinks may join the hosts, or a network does
    long = row.settings.get("bytes", LEAST_MESSAGE) >= _LEAST_FINE
    share = _FINE_ALL_REDUCE if row.scenario.startswith("all_reduce") else _FINE_RING
    share = _FINE_PAIRS if row.scenario.startswith(_PAIRS) else share
    if part is not None and row.settings.get("ranks") == 2 and row.scenario.startswith("all_reduce"):
        of_two = fine_all_reduce_of_two(part, row.settings.get("bytes", _LEAST_FINE))
        share = share if of_two is None else min(share, of_two / nvlink)
    fine = long and (row.value or 0.0) >= share * nvlink
    # NVLink SHARP sends each byte once where a ring sends it twice.
    yield Reference("parts", nvlink, share * nvlink if fine else low, low, 2 * nvlink, limit, source, own=fine)


def collective(row: Observation, part: GpuAbility, *, pcie_alone: bool = False) -> Iterator[Reference]:
    """A ring is as fast as its slowest link: bus bandwidth is at most that of one GPU's links.

    `pcie_alone`: somebody states that no bridge of NVLinks or xGMI joins the GPUs.
    """
    if part.nvlink_rate is not None and part.all_linked:
        yield from _over_nvlinks(row, part.title, part.nvlink_rate, part.source, part.part)
    else:
        pcie = part.peer_rate()
        # A name that the catalogue does not have may have NVLinks or xGMI, and cards may have bridges.
        bridged = not pcie_alone and (part.part is None or part.nvlink_rate is not None)
        high = None if bridged else raw_rate(part.gen, part.lanes)
        # Whether a ring is staged or crosses sockets is not known, and either costs most of the link.
        limit, low = (
            f"ring over Gen{part.gen} x{part.lanes} of {part.title}",
            min(_ring_share(row), LEAST_OF_CARDS) * pcie,
        )
        fine = (is_card(part) or pcie_alone) and _is_full_ring(row, pcie)
        yield Reference("parts", pcie, _FULL_RING * pcie if fine else low, low, high, limit, part.source, own=fine)


def is_card(part: GpuAbility) -> bool:
    """Whether a GPU is a card with PCIe alone: SXM modules and Instinct have links of their own to each other."""
    return part.part is not None and not re.search(r"sxm|^mi\d", part.part.name)


def _is_full_ring(row: Observation, pcie: float) -> bool:
    """Whether a ring has all that peer copies of such GPUs leave it: nothing is staged, and no link is lesser."""
    return row.scenario.startswith(RING_COLLECTIVES) and (row.value or 0.0) >= _FULL_RING * pcie
