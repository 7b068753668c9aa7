"""Ports of networks as causes: one that came up at a lower rate, one of two that carries all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.named.abilities import shares_host_memory
from lanewise.checking.symptom import RowSymptom, quantity_in

# Half of a line is what one of two ports or cards carries.
_HALF = (0.39, 0.53)
# Rates of ports that many machines have besides their fast ones, Gb/s. Of these, one of two ports and one of four lanes
# TCP gets 0.94 with packets of 1500 B, RDMA and larger packets 0.97 to 0.99.
_OTHER_PORTS = (0.1, 1, 2.5, 10)
_PAYLOAD, _PAYLOAD_OF_PORT = (0.915, 0.992), 0.96
# Who types "about 1 Gb/s" has rounded the payload of such a port up. Half of a line says less.
_ROUNDED = 1.005
OF_PERFTEST = re.compile(r"\bib_(?:write|read|send)_bw|\bperftest", re.IGNORECASE)

# Variables that bind a library to cards or ports (documentation of NCCL, PyTorch and UCX), and the rows that use it.
_BINDING = {
    "NCCL_IB_HCA": r"nccl", "NCCL_SOCKET_IFNAME": r"nccl", "GLOO_SOCKET_IFNAME": r"gloo",
    "UCX_NET_DEVICES": r"ucx|mpi\b|osu",
}  # fmt: skip


def bound_to_a_port(symptom: RowSymptom) -> Iterator[Cause]:
    """A variable binds the library to one card or port, which may be another than that of the line."""
    row = symptom.row
    for variable, library in _BINDING.items() if row.path == "network" else ():
        for stated in symptom.posted.stated(variable):
            if re.search(library, row.scenario, re.IGNORECASE) and not re.search(r"[,^]", stated.value):
                what = f"{variable}={stated.value} binds the library to one card or port: has it the rate of the line?"
                step = "ibdev2netdev; ibstat or ethtool of that device; ip route get ADDRESS; name the port of the line"
                yield Cause(("port",), what, step, evidence=stated.source)


def slower_port(symptom: RowSymptom) -> Iterator[Cause]:
    """The port that the row names came up at a lower rate than the others of its host."""
    row = symptom.row
    for stated in symptom.posted.stated("slower port"):
        device = stated.value.split()[0]
        if re.search(rf"\b{re.escape(device)}\b", f"{row.scenario} {row.how.get('device', '')}"):
            what = f"the port of {stated.value}, as the others of its host have: fewer lanes or a lower speed"
            step = "ibstat and mlxlink of both ends of its cable; another cable, another port of the switch"
            yield Cause(("link", device), what, step, evidence=stated.source)


def one_port(symptom: RowSymptom) -> Iterator[Cause]:
    """Half of a line that is the sum of two ports."""
    row, (low, high) = symptom.row, _HALF
    if row.path == "network" and row.how.get("line") and row.metric == "goodput" and low < symptom.share < high:
        what = "one port or card of two carries all data: a connection stays on one port of a bond"
        step = "cat /proc/net/bonding/*; ethtool -S of each port during the run; NCCL_IB_QPS_PER_CONNECTION=2 or more"
        yield Cause(("port",), what, step)


def lesser_port(symptom: RowSymptom) -> Iterator[Cause]:
    """The payload of a lesser port than the line: it came up at a lower rate, carries all alone, or is another one."""
    row, result = symptom.row, symptom.result
    if row.path != "network" or row.metric != "goodput" or result.tolerance is None or result.tolerance.basis != "line":
        return
    if crosses_a_link(symptom) or not result.expected.value:
        return  # what lies between GPU and card is likelier
    line, rate = result.expected.value * 8e-9, (row.value or 0.0) * 8e-9
    # perftest's MB/sec are of 2^20 bytes (`format_factor` in perftest_resources.c), whatever they were typed in as.
    rates = (rate, rate * 2**20 / 1e6) if OF_PERFTEST.search(row.scenario) and row.display_unit == "MB/s" else (rate,)
    typed = row.how.get("tool") == "typed in"
    for port in sorted({*_OTHER_PORTS, line / 2, line / 4}):
        most = _ROUNDED if typed and port in _OTHER_PORTS else _PAYLOAD[1]
        if port < line and any(_PAYLOAD[0] * port < each < most * port for each in rates):
            what = f"a port on the way runs at {port:g} Gb/s, or one of {port:g} Gb/s carries all data"
            step = (
                "ethtool DEVICE or ibstat at both ends: the rate of each port; ip route get ADDRESS: which card it is"
            )
            # Of the port at this end somebody has looked: only the far one may be a lesser.
            port_rates = [quantity_in(stated.value, "B/s") for stated in symptom.posted.stated("port rate")]
            looked = result.expected.value in port_rates
            yield Cause(
                ("port",), what, step, predicted=_PAYLOAD_OF_PORT * port * 1e9 / 8, explains=not looked,
                inconclusive=looked,
            )  # fmt: skip


def at_lesser_port(symptom: RowSymptom) -> bool:
    """Whether a rate is the payload of a lesser port than the line: such a port is full, and drops what is too much."""
    return any(True for _ in lesser_port(symptom))


def crosses_a_link(symptom: RowSymptom) -> bool:
    """Whether the data of a GPU with memory of its own goes over a network or to or from a drive."""
    gpu = symptom.gpu
    shared = bool(gpu) and shares_host_memory(symptom.posted.title(gpu))
    return symptom.row.path in ("network", "storage") and bool(gpu) and not shared
