"""What the stated data rate of a network says of rows that cross it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise import units
from lanewise.checking.named.abilities import GpuAbility, raw_rate
from lanewise.checking.references.experts import RANKS_OF_EXPERTS, is_of_experts, kept_by_experts
from lanewise.checking.references.host_cards import are_all_cards_used, host_cards, used_cards
from lanewise.checking.references.parts import LEAST_MESSAGE, RING_COLLECTIVES, Reference, tunnel_copy
from lanewise.checking.references.rails import rails
from lanewise.checking.symptom import line_of, quantity_in
from lanewise.errors import LanewiseError
from lanewise.perf.flow import Flow
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, slot_link

# A network's payload of its data rate: perftest, NFS and NCCL reach 70 to 97 %.
# A GB10's ConnectX-7 has two functions of four lanes each: ib_write_bw 109 Gb/s of each (defilantech/LLMKube#1423).
_BUILT_IN, _OF_A_SPARK = re.compile(r"\bGB10\b|\bDGX Spark\b", re.IGNORECASE), raw_rate(5, 4)
# A port may be reached through two PCIe devices, each with lanes of its own for half of the line and more: Socket
# Direct (NVIDIA's ConnectX user manuals: two times eight lanes for one port), the card of a GB10.
_HALF_OF_PORT = re.compile(r"\b(?:one|1|a|single|each) (?:pcie )?half\b(?! of the (?!port|card|line))", re.IGNORECASE)
# A bond keeps each connection on one of its ports, which a hash of addresses chooses (IEEE 802.1AX, frame distribution;
# Linux' bonding driver). Of four connections a port no port is left without, in 96 of 100 cases (four ports).
_ALL_PORTS = 4
_PORTS = re.compile(r"\b([1-9]\d?) ?(?:x ?(\d[\d.]*) ?([GM])|x|ports|links)", re.IGNORECASE)
# One message in flight of this size fills a line: 8 MiB have 95 % of 400 Gb/s, 512 KiB 41 % (uccl-project/uccl#931).
_LONG_MESSAGE = 8 * 2**20
FINE_SHARE, SLOW_SHARE = 0.70, 0.66
# Messages (B) of which a card sends far more a second than a line carries: of 4 KiB 400 Gb/s are 12 million, cards send
# 100 million and more (`net.message_rate` of the catalogue). With what a line carries in 20 us in flight, ten times an
# RDMA message's 2 us (perftest), none of them waits for an answer.
_LEAST_IN_BULK, _ROUND_TRIP = 4 * 2**10, 20e-6
_SOCKETS = re.compile(r"socket|tcp", re.IGNORECASE)
# DGX-1 has four cards of 100 Gb/s, later boards eight and more of 200 and 400 (NVIDIA's user guides).
_LEAST_CARD = 12.5e9
# Boards with NVSwitches whose hosts load the plugin for EFA have 400 Gb/s and more (AWS: p4d 400, p5 3200 Gb/s).
_LEAST_EFA, _GEN_OF_NVSWITCHES = 50e9, 4
# Cards of more than a board's NVLinks carry nothing more.
_MOST_OF_NVLINKS, _OF_ALL_CARDS = 1.15, 0.75
# The least of a line that a ring reaches: 60 of 100 Gb/s over EFA (NVIDIA/nccl-tests#22), less a third.
_SLOW_RING = 0.4
# A step of a ring over a network takes 14 us by NCCL's constants and 24.1 by RCCL's (hwLat of Ring and Simple in
# src/graph/tuning.cc). The bound is 0.24 to 0.62 of what four sound machines of two and four hosts have in 4 to 128 MiB
# (data/evidence: h100-p5-two, h100-single-two, b200-p6-four, mi300x-two).
_RING_STEP, _LEAST_RING_MESSAGE = 25e-6, 4 * 2**20
# Thirteen packets of 512 B in each of 8,000 microframes a second (USB 2.0 specification, 5.8.4).
_USB2, _USB2_PAYLOAD = re.compile(r"\busb ?2(?:\.0)?\b(?!\.)", re.IGNORECASE), 53.2e6
# IP between two hosts over a Thunderbolt cable: 15 and 20 of 40 Gb/s on sound ones (zen-kernel/zen-kernel#102,
# vitalif/vitastor#57); a third less than the lesser is slow.
_THUNDERBOLT, _OF_THUNDERBOLT = re.compile(r"thunderbolt|\btb[1-5]\b|\busb ?4", re.IGNORECASE), (0.37, 0.25)
# The lines of such cables (USB4 specification, 3.2); a line of 10 Gb/s is that of an adapter or card.
_CABLES = (2.5e9, 5e9, 10e9)
# Of a packet 20 B are IP's header and 20 B TCP's (RFC 791, RFC 9293); around it Ethernet has 14 B of header, 4 of
# checksum, 8 of preamble and 12 of gap (IEEE 802.3): at MTU 1500 TCP gets 94.9 % of the line, at 9000 99.1 %.
_HEADERS, _FRAMING, _ETHERNET_MTU = 40, 38, (576, 9600)
# The least link of an NVMe drive of four lanes, and what of it drives of that generation read (3.2 to 3.5 GB/s).
_OLDEST_SLOT, _OF_A_SLOT = (3, 4), 0.8
_ONE_DRIVE = re.compile(r"\b(?:nvme|ssd)\d")
SHARE_OF_A_RANK = "a rank's share of the line of"
# The fastest line of cards with a port each for 16 lanes of Gen5 (ConnectX-7), and what RDMA gets of a line.
_FASTEST_PORT, _PAYLOAD_OF_PORT = 50e9, (0.9, 0.995)
_RDMA = re.compile(r"\bib_|rdma|roce|infiniband|verbs|\bucx|perftest|\budp\b", re.IGNORECASE)
# What TCP and RDMA get of a port at MTU 1500 and 9000 (`causes.ports`).
_PAYLOAD_OF_A_PORT = (0.9, 1.0)
# What of a line is all of its payload: a host that lost one of four cards has less, unless NCCL says that it uses all.
_FILLED_LINE = 0.8
# A tree between two hosts has twice the line; what has more goes over several cards, of which nobody said how many.
_MOST_OF_A_LINE = 2.1


def by_line(
    row: Observation,
    flows: Sequence[Flow],
    posted: PostedFacts,
    wires: float | None,
    series: Sequence[Observation] = (),
) -> Iterator[Reference]:
    """The line of payload over a network: flows of one direction share a line, or have one each.

    `wires`: what the link of the row's GPUs carries in B/s, by which less than the line is fine. `series`: the rows of
    its path: where a larger message of the same program fills the line, a smaller one need not.
    """
    line, text = line_of_network(row, posted)
    larger_fills = any(_fills_later(row, other, line) for other in series)
    thunderbolt = line in _CABLES and _over_thunderbolt(row, posted)
    if thunderbolt and row.path == "storage":
        for copy in tunnel_copy(f"a line of {text}", "as stated"):
            yield replace(copy, fine_high=min(line, copy.fine_high or line))
    elif line and wires is not None and len(flows) == 1 and line > wires and row.path == "storage":
        low, slow = FINE_SHARE * wires, SLOW_SHARE * wires
        yield Reference("line", wires, low, slow, wires, f"the GPU's link, less than the line of {text}", "as stated")
    elif line > (spark := _of_a_spark(row, posted)) > 0 and row.path == "network" and len(flows) == 1:
        limit = f"Gen5 x4 of each of its card's functions, less than the line of {text}"
        yield Reference("line", spark, FINE_SHARE * spark, SLOW_SHARE * spark, line, limit, "the card of a DGX Spark")
    elif not line:
        yield from _full_port(row, flows)
    elif len(flows) == 1 and (part := _part_of_line(row, posted, line)) is not None:
        yield part
    else:
        directions = {flow.dst.startswith("host") and flow.dst != "host0" for flow in flows}
        both = 2 if row.metric == "total" and len(directions) == 2 else 1
        fastest = line * max(both, len(flows) if row.metric == "total" else 1) * kept_by_experts(row)
        fine, least = _OF_THUNDERBOLT if thunderbolt and row.path == "network" else (FINE_SHARE, SLOW_SHARE)
        lenient = _by_one_drive(row, line) or larger_fills
        low, slow = fine * line * both, 0.0 if lenient else _slow_below(row, line * both, least)
        limit = f"the line of {text}{_payload_of_tcp(row, posted, line)}"
        yield Reference("line", line * both, low, slow, fastest, limit, "as stated")


def of_lesser_port(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """The line that the words say, of a row that fills a port which came up at less than it can (`ethtool`)."""
    speeds = {each.value: each.source for each in posted.stated("port speed")}
    words = next((each.value for each in posted.stated("line in words")), row.how.get("line", ""))
    if len(speeds) != 1 or row.path != "network" or row.metric != "goodput" or not words:
        return
    (text, source), line = next(iter(speeds.items())), quantity_in(words, "B/s")
    now, most = (quantity_in(each, "B/s") for each in text.split(" of "))
    low, high = _PAYLOAD_OF_A_PORT
    if low * now < (row.value or 0.0) < high * now and now < line <= most:
        limit = f"the line of {words}, of which the port came up at {text.partition(' of ')[0]}"
        yield Reference("line", line, FINE_SHARE * line, SLOW_SHARE * line, None, limit, source)


def _of_a_spark(row: Observation, posted: PostedFacts) -> float:
    """What a GB10's network card carries by one function, or by both if the row says so, in B/s; 0 of other cards."""
    words = " ".join((posted.title("gpu0"), row.how.get("device", ""), row.scenario))
    return min(max(rails(row), 1), 2) * _OF_A_SPARK if _BUILT_IN.search(words) else 0.0


def _part_of_line(row: Observation, posted: PostedFacts, line: float) -> Reference | None:
    """One half of a port, or few connections over a bond: what these carry of the line; None for other rows."""
    if row.path != "network" or row.metric != "goodput":
        return None
    if _HALF_OF_PORT.search(row.scenario):
        link = slot_link(row.how.get("slot", ""))
        half = min(line, raw_rate(*link.whole)) if link is not None and link.whole else line / 2
        limit = "one of the two PCIe devices of a port, less than its line"
        return Reference("line", half, FINE_SHARE * half, SLOW_SHARE * half, line, limit, "as stated")
    ports, connections = ports_of_bond(posted, line), row.settings.get("connections", 0)
    if ports < 2 or connections >= _ALL_PORTS * ports:
        return None
    port = line / ports
    if connections != 1:  # or nobody says how many
        limit = f"the line of all {ports} ports of a bond"
        return Reference("line", line, FINE_SHARE * line, SLOW_SHARE * port, line, limit, "as stated")
    limit = f"one of the {ports} ports of a bond, on which a connection stays"
    return Reference("line", port, FINE_SHARE * port, SLOW_SHARE * port, line, limit, "as stated")


def ports_of_bond(posted: PostedFacts, line: float) -> int:
    """How many ports the stated bond has whose sum is the line, in B/s; 0 if none is stated, or if it has another."""
    count, port = _stated_bond(posted)
    return count if not port or math.isclose(count * port, line, rel_tol=0.01) else 0


def _stated_bond(posted: PostedFacts) -> tuple[int, float]:
    """The ports of the stated bond, and the data rate of each in B/s; 0 for what nobody states."""
    for statement in posted.stated("bond")[:1]:
        if match := _PORTS.search(statement.value):
            scale = {"g": 1e9, "m": 1e6}.get((match[3] or "").lower(), 0.0)
            return int(match[1]), float(match[2] or 0) * scale / 8
    return 0, 0.0


def keeps_to_fewer_ports(row: Observation, other: Observation, posted: PostedFacts) -> bool:
    """Whether a row had fewer connections over a bond than another, so that it uses fewer of the ports."""
    own, others = (each.settings.get("connections", 1) for each in (row, other))
    line, _ = line_of_network(row, posted)
    return row.path == "network" and own < others and own < _ALL_PORTS * ports_of_bond(posted, line)


def by_line_in_bulk(
    row: Observation, flows: Sequence[Flow], posted: PostedFacts, series: Sequence[Observation]
) -> Iterator[Reference]:
    """The line of short messages typed in of which so many are in flight that none waits for an answer."""
    line, text = line_of_network(row, posted)
    size = row.settings.get("bytes", 0)
    in_flight = size * row.settings.get("depth", 1) * row.settings.get("threads", 1)
    lone = row.how.get("tool") == "typed in" and row.metric == "goodput" and len(flows) == 1
    if not lone or size < _LEAST_IN_BULK or not 0 < line * _ROUND_TRIP <= in_flight:
        return
    if not _over_thunderbolt(row, posted) and not any(_fills_later(row, other, line) for other in series):
        slow = SLOW_SHARE * line
        yield Reference("line", line, slow, slow, None, f"the line of {text}", "as stated", own=False)


def _full_port(row: Observation, flows: Sequence[Flow]) -> Iterator[Reference]:
    """One card that carries the payload of a port of 400 Gb/s, where nobody says what port it is.

    Less says nothing: half of a faster port is the payload of a slower one.
    """
    low, high = (share * _FASTEST_PORT for share in _PAYLOAD_OF_PORT)
    one = len(flows) == 1 and row.path == "network" and row.metric == "goodput" and bool(row.how.get("device"))
    if one and low < (row.value or 0.0) < high:
        yield Reference("line", _FASTEST_PORT, low, 0.0, None, "a port of 400 Gb/s, which it fills", "its own rate")


def _fills_later(row: Observation, other: Observation, line: float) -> bool:
    """Whether another row is of the same program in larger messages, and fills the line."""
    size, larger = row.settings.get("bytes", 0), other.settings.get("bytes", 0)
    one = other.scenario == row.scenario and other.flow == row.flow and other.metric == row.metric
    return 0 < size < min(larger, _LONG_MESSAGE) and one and (other.value or 0.0) >= FINE_SHARE * line > 0


def _by_one_drive(row: Observation, line: float) -> bool:
    """Whether one drive of unknown model gives what such a drive can, which is less than the line."""
    lone = row.path == "storage" and _ONE_DRIVE.search(row.flow) is not None and "," not in row.flow
    wires = raw_rate(*_OLDEST_SLOT)
    return lone and line > wires and (row.value or 0.0) > _OF_A_SLOT * wires


def uses_rdma(row: Observation) -> bool:
    """Whether the name of a row says that its packets are RDMA's."""
    return _RDMA.search(row.scenario) is not None


def _payload_of_tcp(row: Observation, posted: PostedFacts, line: float) -> str:
    """What TCP gets of a line at the MTU that the row or the text states; empty if none, or for RDMA's packets."""
    stated = {statement.value for statement in posted.stated("mtu")}
    mtu = row.settings.get("mtu") or (int(stated.pop()) if len(stated) == 1 else 0)
    if not _ETHERNET_MTU[0] <= mtu <= _ETHERNET_MTU[1] or uses_rdma(row):
        return ""
    rate = units.show(line * (mtu - _HEADERS) / (mtu + _FRAMING), row.display_unit, 3)
    return f", of which TCP at MTU {mtu} gets {rate}"


def _over_thunderbolt(row: Observation, posted: PostedFacts) -> bool:
    """Whether a Thunderbolt or USB4 cable joins the ends."""
    stated = " ".join(statement.value for statement in posted.stated("tunnel"))
    return _THUNDERBOLT.search(f"{row.scenario} {stated}") is not None


def ring_by_line(row: Observation, posted: PostedFacts, part: GpuAbility | None) -> Iterator[Reference]:
    """The line of long messages of a collective: of one rank a host, or of rings over boards with NVSwitches.

    The links within hosts without them may be the limit. Between two hosts a tree's bus bandwidth may exceed the line.
    """
    hosts = row.settings.get("hosts", 2)
    board = part is not None and part.all_linked and row.scenario.startswith(RING_COLLECTIVES)
    several, size = row.settings.get("ranks", hosts) > hosts and not board, row.settings.get("bytes", LEAST_MESSAGE)
    if several or size < _LEAST_RING_MESSAGE:
        return
    line, text = line_of_network(row, posted)
    if hosts > 1 and board and part is not None and size >= LEAST_MESSAGE:
        yield from _idle_cards(row, posted, part)
        yield from _over_sockets(posted, part)
    if line and hosts > 1:
        slow = with_steps(row, _SLOW_RING * line)
        yield Reference("line", line, slow, slow, None, f"a ring over the line of {text}", "as stated", own=False)


def with_steps(row: Observation, rate: float) -> float:
    """The bus bandwidth in B/s of a ring over hosts that moves data at a rate and waits for each of its steps.

    All-reduce of S bytes by n ranks takes 2 (n - 1) steps and 2 (n - 1) / n S over the rate (nccl-tests,
    doc/PERFORMANCE.md), the other rings half of both. Messages of `LEAST_MESSAGE` and all other rows have the rate.
    """
    if not _is_short_ring(row):
        return rate
    ranks = row.settings.get("ranks", row.settings["hosts"])
    return 1 / (1 / rate + ranks * _RING_STEP / row.settings["bytes"])


def _is_short_ring(row: Observation) -> bool:
    """Whether a row is a ring over hosts whose messages are too short to fill the line."""
    ring = row.settings.get("hosts", 1) > 1 and row.scenario.startswith(RING_COLLECTIVES)
    return ring and row.settings.get("bytes", LEAST_MESSAGE) < LEAST_MESSAGE


def _slow_below(row: Observation, line: float, share: float) -> float:
    """The rate in B/s below which a row is slow that has a share of the line if it is sound."""
    if not _is_short_ring(row):
        return share * line
    return with_steps(row, min(share, _SLOW_RING) * line) if row.settings["bytes"] >= _LEAST_RING_MESSAGE else 0.0


def all_to_all_by_line(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """What all-to-all gets of the hosts' lines: of n ranks, g a host, n - g of the n pieces of a rank use them.

    Bus bandwidth is (n - 1) / n of a rank's data over the time (nccl-tests, doc/PERFORMANCE.md), so that it is at most
    (n - 1) / (n - g) of a rank's share of the line.
    """
    hosts, ranks = row.settings.get("hosts", 1), row.settings.get("ranks", 0)
    line, text = line_of_network(row, posted)
    if not row.scenario.startswith("alltoall") or hosts < 2 or ranks % hosts or ranks < 2 or not line:
        return
    each = ranks // hosts
    nominal = line / each * (ranks - 1) / (ranks - each)
    long = row.settings.get("bytes", 0) / ranks >= _LONG_MESSAGE
    limit = f"{ranks - each} of {ranks} pieces of each rank over the line of {text}"
    slow = _SLOW_RING * nominal if long else 0.0
    yield Reference("line", nominal, FINE_SHARE * nominal, slow, None, limit, "as stated")


def sendrecv_by_line(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """What the last rank of a host sends to the first of the next one: its share of the line, as any flow over it.

    Each rank sends all of its data to one other (nccl-tests, doc/PERFORMANCE.md): 48.4 and 49.7 of 50 GB/s on sound
    hosts (data/evidence/h100-roce-two-nccl and a kept question of B200).
    """
    hosts, ranks = row.settings.get("hosts", 1), row.settings.get("ranks", 0)
    line, text = line_of_network(row, posted)
    if not row.scenario.startswith("sendrecv") or hosts < 2 or ranks < 2 or ranks % hosts or not line:
        return
    share = line * hosts / ranks
    slow = SLOW_SHARE * share if row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE else 0.0
    limit = f"{SHARE_OF_A_RANK} {text}"
    yield Reference("line", share, FINE_SHARE * share, slow, None, limit, "as stated")


def _idle_cards(row: Observation, posted: PostedFacts, part: GpuAbility) -> Iterator[Reference]:
    """What all cards of each host would carry, where NCCL uses some of them, as fast each, and NVLinks carry more."""
    cards, used = host_cards(posted), used_cards(posted)
    if cards is None or used is None or not 0 < used.count <= cards.count / 2:
        return
    all_of_them = (row.value or 0.0) / used.count * cards.count
    if part.nvlink_rate is not None and all_of_them <= _MOST_OF_NVLINKS * part.nvlink_rate:
        limit = f"{cards.count} network cards of each host, of which {used.count} carried it"
        slow = _OF_ALL_CARDS * all_of_them
        yield Reference("line", all_of_them, slow, slow, None, limit, cards.source, own=False)


def over_gloo(row: Observation, posted: PostedFacts, part: GpuAbility | None) -> Iterator[Reference]:
    """Long messages of GPUs of boards with NVSwitches by gloo, which copies to host memory and sends over TCP.

    Source: the table of backends in torch.distributed's documentation, which has NCCL for GPUs.
    """
    stated = posted.stated("backend")
    long = row.settings.get("bytes", LEAST_MESSAGE) >= LEAST_MESSAGE
    if stated and long and part is not None and part.all_linked and part.gen >= _GEN_OF_NVSWITCHES:
        limit, slow = "a card of 100 Gb/s, the least of hosts with such boards", 0.5 * _LEAST_CARD
        yield Reference("line", _LEAST_CARD, _LEAST_CARD, slow, None, limit, stated[0].source, own=False)


def _over_sockets(posted: PostedFacts, part: GpuAbility) -> Iterator[Reference]:
    """What hosts with boards of GPUs exchange by RDMA at least, where NCCL's log says that they use TCP sockets."""
    plugin = posted.stated("network plugin")
    if plugin and posted.stated("network transport") and part.gen >= _GEN_OF_NVSWITCHES:
        limit = "the network cards of hosts with EFA and such boards"
        yield Reference("line", _LEAST_EFA, _LEAST_EFA, 0.5 * _LEAST_EFA, None, limit, plugin[0].source, own=False)
    for stated in [each for each in posted.stated("network transport") if _SOCKETS.fullmatch(each.value.strip())][:1]:
        limit = "a card of 100 Gb/s, the least of hosts with such boards"
        yield Reference("line", _LEAST_CARD, _LEAST_CARD, 0.5 * _LEAST_CARD, None, limit, stated.source, own=False)


def filled_line(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """A collective over hosts with the bus bandwidth of the stated line or more: a tree of two hosts has twice it."""
    line, text = line_of_network(row, posted)
    share = FINE_SHARE if are_all_cards_used(posted) else _FILLED_LINE
    if line and row.settings.get("hosts", 1) > 1 and share * line <= (row.value or 0.0) <= _MOST_OF_A_LINE * line:
        yield Reference("line", line, share * line, 0.0, None, f"the line of {text}", "as stated")


def line_of_network(row: Observation, posted: PostedFacts) -> tuple[float, str]:
    """The line's data rate in B/s with its text, of the row or the only one that is stated; 0 if none."""
    across = row.path == "network" or row.settings.get("hosts", 1) > 1
    stated = {statement.value for statement in posted.stated("line")} if across else set()
    experts = is_of_experts(row)
    cards = host_cards(posted) if row.settings.get("hosts", 1) > 1 or (experts and not line_of(row)) else None
    if cards is not None and cards.rate:
        ranks, text = 1, f"{cards.count} x {units.show(cards.rate, 'Gb/s')}"
        if experts:
            ranks, text = RANKS_OF_EXPERTS, f"{text} for {RANKS_OF_EXPERTS} ranks"
        return cards.rate * cards.count / ranks, text
    text = line_of(row) or (stated.pop() if len(stated) == 1 else "")
    ports, port = _stated_bond(posted)
    if not text and not stated and row.path == "network" and ports * port:
        return ports * port, f"{ports} x {units.show(port, 'Gb/s')}"
    try:
        rate = units.parse(text, "B/s") if text else 0.0
        if rate > _USB2_PAYLOAD and _USB2.search(row.scenario):
            return _USB2_PAYLOAD, f"{text} behind USB 2.0"
        return rate, text
    except LanewiseError:
        return 0.0, ""
