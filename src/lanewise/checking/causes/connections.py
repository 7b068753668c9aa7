"""Causes that runs of network tools show themselves: options of the command, windows, segments, lost datagrams.

What a connection carries is its window over a round trip (RFC 7323, 1.1), whatever the line; of a packet TCP's and
IP's headers and Ethernet's framing are no payload; a socket drops what its buffer does not hold (udp(7)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.contention import OTHERS
from lanewise.checking.causes.ports import at_lesser_port
from lanewise.checking.references.one_setting import better_by_one_setting
from lanewise.checking.symptom import RowSymptom, keeps_to, line_of, quantity_in, said_quantity, value_text
from lanewise.results.figure_reasons import asked_for_no_more
from lanewise.results.observation import Observation

# Calls or datagrams of less than this cost far more than their bytes: a segment at MTU 1500 carries 1448 B.
_SMALL = 512
# IPv4 hosts take 576 B at least (RFC 791), which leaves 536; usual are 1448 to 1460, and 8948 with jumbo frames.
_SMALL_SEGMENT = 1200
# IP and TCP headers with time stamps (20 + 20 + 12 B), and Ethernet's framing (38 B).
_HEADERS = 52 + 38
# Within one building a round trip takes less (s), and default buffers fill lines.
_LONG_TRIP = 1e-3
# How near two runs' sums are that one limit holds, and from what factor on several connections carry more.
_ALIKE, _MORE = 0.1, 1.4
# From what share on lost datagrams are no chance.
_LOST = 0.01
_IPOIB, _DATAGRAM = re.compile(r"\bipoib|\bip over i(?:b|nfiniband)", re.IGNORECASE), re.compile(r"\bdatagram", re.I)
_RDMA_TEST, _OF_DATAGRAMS = re.compile(r"\brdma\b|\bib_|\bverbs\b", re.IGNORECASE), 4092
_PLAIN = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_NO_NAME = re.compile(r"run \d+")  # of a run that no line names
# A program that works all the time uses a core (%); one that uses less than half of it waits.
_IDLE = 50.0
# A mean this many times the median comes from few, very late messages (idle hosts: 8.8 and 7.9 us,
# benchmarks/runs/2026-11-27-network-faults.md).
_TAIL = 2.0
# The least turn that Linux gives a program on a core that several want (s): base_slice_ns of its EEVDF scheduler.
_TURN = 0.7e-3
_CORES_STEP = "mpstat -P ALL 1 and pidstat -w 1 at both ends; taskset or chrt -f 1 for the server; isolated cores"
_WINDOW_STEP = "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem at both ends; iperf3 without -w; several connections (-P 8)"
_LOSS_STEP = "nstat -az TcpRetransSegs TcpExtTCPLostRetransmit; ethtool -S DEVICE | grep -iE 'err|drop|discard'; cables"


def run_causes(symptom: RowSymptom) -> Iterator[Cause]:
    """What a run over a network says of its own limit, the surest first."""
    if symptom.row.path == "network" and symptom.row.metric == "goodput" and symptom.row.how.get("stalled"):
        yield from _stalled()
    elif symptom.row.path == "network" and symptom.row.metric == "goodput" and symptom.row.value:
        for find in (_asked, _small_calls, _small_segments, _datagram_mode, _window, _more_connections, _one_limit,
                     _lost_datagrams, _idle_cores, _at_another_time):  # fmt: skip
            yield from find(symptom)
    elif symptom.row.path == "network" and symptom.row.metric.startswith("latency"):
        yield from _late_messages(symptom)


def _stalled() -> Iterator[Cause]:
    """A connection that is made and then carries nothing: only short packets arrive (RFC 2923, 2.1)."""
    what = (
        "the MTU: full packets do not arrive, and no message says so (a tunnel, a filter of ICMP, a port without them)"
    )
    step = "ping -M do -s 1472 ADDRESS, then smaller; tracepath ADDRESS; ip link set DEVICE mtu 1400; clamp TCP's MSS"
    yield Cause(("mtu",), what, step, evidence="a connection is made, and nothing passes after its first packets")


def _asked(symptom: RowSymptom) -> Iterator[Cause]:
    """The rate is the one that the command asks for, or that UDP has unless one is asked for."""
    row, rate = symptom.row, symptom.row.value or 0.0
    step = "run it without -b (TCP), or with -b 0 or the rate of the line (UDP)"
    asked = said_quantity(row, "asked for", "B/s") * max(1, row.settings.get("connections", 1))
    if keeps_to(rate, asked):
        what = f"the command asks for {row.how['asked for']} a stream, and gets it"
        yield Cause(("setting", "rate"), what, step, evidence="the command", predicted=asked, explains=True)
    elif not asked and row.how.get("protocol") == "UDP" and asked_for_no_more("udp", rate):
        what = "iperf sends UDP at 1 Mb/s unless it is asked for more"
        yield Cause(("setting", "rate"), what, step, evidence="its manual (-b)", predicted=1e6 / 8, explains=True)


def _small_calls(symptom: RowSymptom) -> Iterator[Cause]:
    """Datagrams or calls of so few bytes that the kernel's work for each is the limit."""
    row, size = symptom.row, int(_plain(symptom.row, "bytes a call"))
    if 0 < size <= _SMALL:
        thing = "datagrams" if row.how.get("protocol") == "UDP" else "calls"
        what = (
            f"{thing} of {size} B: {(row.value or 0.0) / size:,.0f} of them a second, each costs as much as a large one"
        )
        step = "iperf3 without -l, or -l 128K (TCP) and -l 1448 (UDP); of small messages count how many a second arrive"
        yield Cause(("requests",), what, step, evidence="the command (-l)")


def _small_segments(symptom: RowSymptom) -> Iterator[Cause]:
    """Segments far below those of an MTU of 1500."""
    size = int(_plain(symptom.row, "segment"))
    if 0 < size < _SMALL_SEGMENT:
        what = (
            f"TCP's segments have {size} B: headers leave {size / (size + _HEADERS):.0%} of the line, and packets cost"
        )
        step = (
            "ip link (mtu) at both ends and of tunnels; ip route get ADDRESS (mtu, advmss); iperf3 -M, iptables TCPMSS"
        )
        yield Cause(("mtu",), what, step, evidence="the tool prints it")


def _datagram_mode(symptom: RowSymptom) -> Iterator[Cause]:
    """IP over InfiniBand in datagram mode, whose packets are those of the fabric: 2044 or 4092 B (RFC 4391)."""
    row = symptom.row
    facts = " ".join(f"{each.key} {each.value}" for each in (*symptom.posted.statements, *symptom.posted.unused))
    stated = {each.value for each in symptom.posted.stated("mtu")}
    mtu = row.settings.get("mtu") or (int(stated.pop()) if len(stated) == 1 else 0)
    is_ip = _IPOIB.search(f"{row.scenario} {facts}") and not _RDMA_TEST.search(row.scenario)
    if is_ip and (0 < mtu <= _OF_DATAGRAMS or _DATAGRAM.search(f"{row.scenario} {facts}")):
        what = "the MTU: IPoIB in datagram mode has packets of 2 or 4 KiB, in connected mode (RFC 4755) of 64 KiB"
        step = "cat /sys/class/net/ib0/mode; echo connected > /sys/class/net/ib0/mode; ip link set ib0 mtu 65520"
        yield Cause(("mtu",), what, step, evidence=f"an MTU of {mtu}" if mtu else "datagram mode is stated")


def _window(symptom: RowSymptom) -> Iterator[Cause]:
    """A window that was asked for, or so few bytes in flight over a long round trip."""
    row, trip = symptom.row, round_trip(symptom)
    if row.how.get("protocol") == "UDP" or symptom.posted.stated("lost packets"):
        return
    if symptom.posted.stated("faster before"):
        return  # with the same window
    if row.how.get("window"):
        yield Cause(("window",), "the window that the command asks for: one connection carries it once a round trip",
                    _WINDOW_STEP, evidence="the tool prints it")  # fmt: skip
    elif trip >= _LONG_TRIP:
        each = (row.value or 0.0) * trip / max(1, row.settings.get("connections", 1))
        evidence = f"{units.size(round(each / 1000) * 1000)} in flight at {units.readable(trip, 's', 3)}"
        what = "the window: buffers of sender or receiver hold less than line times round trip"
        # The payload of a lesser port may be chance.
        yield Cause(("window",), what, _WINDOW_STEP, evidence=evidence, inconclusive=at_lesser_port(symptom))
        if row.how.get("repeats") is None:  # nobody counted them
            what = "lost packets: a connection sends less after each loss, the longer the round trip the longer so"
            yield Cause(("congestion",), what, _LOSS_STEP, evidence=evidence, inconclusive=at_lesser_port(symptom))


def _more_connections(symptom: RowSymptom) -> Iterator[Cause]:
    """More connections of the same tool carry more: each has its window, its core and its share of losses."""
    row = symptom.row
    # What one setting costs, all else alike, it costs each connection.
    by_setting = better_by_one_setting(row, symptom.better(same_flow=True)) is not None
    more = [each for each in _other_runs(symptom) if _connections(each) > _connections(row)
            and (each.value or 0.0) > _MORE * (row.value or 0.0)]  # fmt: skip
    if more and row.how.get("protocol") != "UDP":
        evidence = f"{_connections(more[0])} connections reached {value_text(more[0])}"
        what = "each connection's window: buffers of sender or receiver hold less than line times round trip"
        yield Cause(("window",), what, _WINDOW_STEP, evidence=evidence, inconclusive=by_setting)


def _one_limit(symptom: RowSymptom) -> Iterator[Cause]:
    """Another number of connections carries just as much, and nothing is lost: something on the way counts bytes."""
    row = symptom.row
    if at_lesser_port(symptom) or symptom.posted.stated("lost packets"):
        return
    alike = [each for each in _other_runs(symptom) if _connections(each) != _connections(row)
             and abs((each.value or 0.0) / (row.value or 1.0) - 1) < _ALIKE]  # fmt: skip
    if alike:
        what = "a limit by rate on the way: a shaper, or the bandwidth that an instance or a contract has"
        step = "tc -s qdisc; tc class show; virsh domiftune; the data sheet of the instance; ask the provider"
        evidence = f"{_connections(alike[0])} connections carry as much ({value_text(alike[0])})"
        yield Cause(("setting", "limit"), what, step, evidence=evidence)


def _lost_datagrams(symptom: RowSymptom) -> Iterator[Cause]:
    """Datagrams that were sent and did not arrive at the program."""
    lost = _plain(symptom.row, "lost")
    if lost >= _LOST:
        evidence = f"{lost:.0%} of the datagrams are lost"
        what = "the receiver drops datagrams: its socket's buffer is small, or its core is busy"
        step = "nstat -az UdpRcvbufErrors; sysctl net.core.rmem_max, then a larger buffer (iperf3 -w 4M); pin its core"
        yield Cause(("setting", "buffer"), what, step, evidence=evidence)
        what = "a port or switch on the way drops what comes in bursts"
        yield Cause(("congestion",), what, _LOSS_STEP, evidence=evidence)


def _idle_cores(symptom: RowSymptom) -> Iterator[Cause]:
    """Neither end of a connection used much of its core, so that its own work is not what it waits for."""
    ends = [_plain(symptom.row, key) for key in ("local core", "remote core") if symptom.row.how.get(key)]
    if ends and max(ends) < _IDLE:
        what = "the line or the cores: other programs use them at the same time, so that this one waits for its turn"
        step = "mpstat -P ALL 1 and sar -n DEV 1 at both ends while it runs; taskset to an idle core; a line of its own"
        evidence = f"the tool used {ends[0]:.0f} and {ends[-1]:.0f} % of a core"
        yield Cause(OTHERS, what, step, evidence=evidence, inconclusive=True)


def _at_another_time(symptom: RowSymptom) -> Iterator[Cause]:
    """A run that nothing names was slower than another one of the same tool with the same connections."""
    row = symptom.row
    like = [each for each in _other_runs(symptom) if _connections(each) == _connections(row)
            and (each.value or 0.0) > _MORE * (row.value or 0.0)]  # fmt: skip
    if like and _NO_NAME.fullmatch(row.scenario):
        what = "other programs used the line or the cores during this run: nothing else is said to differ"
        step = "sar -n DEV 1 and mpstat -P ALL 1 at both ends while nothing is measured; run it again"
        evidence = f"another run of the same tool reached {value_text(like[0])}"
        yield Cause(OTHERS, what, step, evidence=evidence, inconclusive=True)


def _late_messages(symptom: RowSymptom) -> Iterator[Cause]:
    """Whether all messages are late alike, or a few of them are very late."""
    times = {
        each.row.metric: each.row.value for each in symptom.results
        if each.row.flow == symptom.row.flow and each.row.scenario == symptom.row.scenario and each.row.value
    }  # fmt: skip
    mean, median = times.get("latency_mean"), times.get("latency_p50")
    if not mean or not median:
        return
    evidence = f"mean {units.readable(mean, 's', 3)}, median {units.readable(median, 's', 3)}"
    if mean > _TAIL * median:
        what = "the cores at one end: other programs run there, and some messages wait until these have had their turn"
        yield Cause(OTHERS, what, _CORES_STEP, evidence=evidence)
    else:
        what = "every message is late alike: interrupts are gathered, CPU or card sleep between messages, or a long way"
        for each in symptom.posted.stated("interrupt delay"):
            evidence = f"ethtool -c: rx-usecs {each.value} ({each.source}); {evidence}"
        step = "ethtool -c DEVICE (rx-usecs, adaptive-rx); cpupower idle-set -D 10; tracepath ADDRESS; sysctl busy_poll"
        yield Cause(("setting", "delay"), what, step, evidence=evidence)
        if median >= _TURN:
            what = "the cores at one end: other programs run there, and each message waits for their turns to end"
            yield Cause(OTHERS, what, _CORES_STEP, evidence=evidence)


def round_trip(symptom: RowSymptom) -> float:
    """The round trip in s that the tool or the text states, 0 if none does or several do."""
    own = said_quantity(symptom.row, "round trip", "s")
    stated = {statement.value for statement in symptom.posted.stated("round trip")}
    return own or (quantity_in(stated.pop(), "s") if len(stated) == 1 else 0.0)


def _other_runs(symptom: RowSymptom) -> list[Observation]:
    """The other runs of the same tool and protocol over the same flow."""
    row, tool = symptom.row, symptom.row.how.get("tool")
    return [
        each.row for each in symptom.results
        if each.row is not row and each.row.flow == row.flow and each.row.path == "network" and each.row.value
        and each.row.metric == row.metric and each.row.how.get("tool") == tool and "connections" in each.row.settings
        and "connections" in row.settings and each.row.how.get("protocol") == row.how.get("protocol")
        and each.row.how.get("asked for") == row.how.get("asked for") and line_of(each.row) == line_of(row)
    ]  # fmt: skip


def _connections(row: Observation) -> int:
    return row.settings.get("connections", 1)


def _plain(row: Observation, key: str) -> float:
    """A number that a reader kept; 0 if there is none, or something else that somebody typed in."""
    text = row.how.get(key, "")
    return float(text) if _PLAIN.fullmatch(text) else 0.0
