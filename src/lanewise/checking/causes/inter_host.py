"""Causes of slow collectives between the GPUs of several hosts: what data takes in place of GPUDirect RDMA.

Five of the six questions of the fourteenth blind batch that show one slow collective over hosts, and no faster one,
had one of these two causes (the sixth a small MTU), as had three of the four kept ones of virtual machines; of 24 kept
ones of any kind seven had the first, three the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.named.abilities import shares_host_memory
from lanewise.checking.references.experts import RANKS_OF_EXPERTS, is_of_experts, kept_by_experts
from lanewise.checking.references.host_cards import host_cards, used_cards
from lanewise.checking.references.lines import SHARE_OF_A_RANK, uses_rdma
from lanewise.checking.references.nvlink_domains import are_hosts_joined
from lanewise.checking.references.parts import RING_COLLECTIVES
from lanewise.checking.symptom import RowSymptom, value_text

# Over sockets these had 3 and 4 GB/s with lines of 3,200 and 1,600 Gb/s, staged 8 to 33.
_OF_SOCKETS = 6e9
# A rate below half of all cards may be that of some.
_OF_CARDS = 0.5
# The least that a card's payload has of its line (`lines`).
_PAYLOAD_OF_SHARED = 0.7
_NONE = ("no", "off", "false", "0")


def idle_cards(symptom: RowSymptom) -> Iterator[Cause]:
    """NCCL uses some of the network cards of each host, or the rate is what some of them carry."""
    row, cards, used = symptom.row, host_cards(symptom.posted), used_cards(symptom.posted)
    if row.metric != "bus_bandwidth" or row.settings.get("hosts", 1) < 2 or cards is None:
        return
    step = "NCCL_DEBUG=INFO must list all cards (NET/IB : Using ...); unset NCCL_IB_HCA; ibstat of each: is it active?"
    if used is not None and used.count < cards.count:
        what = f"NCCL uses {used.count} of the {cards.count} network cards of each host ({used.names})"
        yield Cause(("setting", "network cards"), what, step, evidence=used.source)
    elif used is None and cards.rate and (row.value or 0.0) < _OF_CARDS * cards.rate * cards.count:
        carried = math.ceil((row.value or 0.0) / cards.rate)
        what = f"few of the {cards.count} network cards of each host are in use: the rate is what {carried} carry"
        yield Cause(("setting", "network cards"), what, step)


def experts_on_one_card(symptom: RowSymptom) -> Iterator[Cause]:
    """DeepEP's ranks of a host share one of its cards, by the rate: an eighth of the card for each, or twice that.

    What ranks send to their own host counts as well, of two hosts half. Variables: NVSHMEM's documentation.
    """
    row, line = symptom.row, symptom.result.expected.value or 0.0
    most = kept_by_experts(row) * line / RANKS_OF_EXPERTS
    if is_of_experts(row) and _PAYLOAD_OF_SHARED * line / RANKS_OF_EXPERTS <= (row.value or 0.0) <= most:
        what = f"all {RANKS_OF_EXPERTS} ranks of a host send through one network card: the rate is its share of each"
        step = "NVSHMEM_DEBUG=INFO shows the card of each rank; NVSHMEM_ENABLE_NIC_PE_MAPPING=1 with NVSHMEM_HCA_LIST"
        yield Cause(
            ("port",), what, step, evidence=f"an eighth of a card is {units.show(line / 8, row.display_unit, 3)}"
        )


def outside_nvlink_domain(symptom: RowSymptom) -> Iterator[Cause]:
    """Hosts within one NVLink domain that exchange less than its NVLinks carry: NCCL does not use all of them.

    One GPU without working NVLinks, or NCCL_MNNVL_ENABLE=0, sends all to the network (kept questions of two GB300
    racks); MNNVL needs the IMEX service on each host (NVIDIA's IMEX guide).
    """
    if symptom.row.metric != "bus_bandwidth" or not are_hosts_joined(symptom.row, symptom.posted):
        return
    said = "the words say that one NVLink domain joins the hosts"
    what = "the NVLinks between the hosts are not in use: a GPU has lost its own, or the fabric is not up"
    step = "nvidia-smi nvlink -s of each GPU; nvidia-smi -q | grep -A5 Fabric (State, Status, CliqueId): all alike?"
    yield Cause(("nvlink",), what, step, evidence=said)
    what = "a setting keeps NCCL from NVLinks between hosts: NCCL_MNNVL_ENABLE=0, a topology file, IMEX is not running"
    step = "env | grep NCCL; nvidia-imex-ctl -N; NCCL_DEBUG=INFO must show MNNVL 1"
    yield Cause(("setting", "MNNVL"), what, step)


def few_channels_of_sends(symptom: RowSymptom) -> Iterator[Cause]:
    """Sends over hosts below a rank's share of the line: NCCL gives a pair few channels, which rings do not need."""
    row, hosts = symptom.row, symptom.row.settings.get("hosts", 1)
    if not symptom.result.expected.limit.startswith(SHARE_OF_A_RANK):
        return
    rings = [other for other in symptom.better_rates() if other.settings.get("hosts", 1) == hosts
             and other.flow == row.flow and other.scenario.startswith(RING_COLLECTIVES)]  # fmt: skip
    evidence = f"{rings[0].scenario} of the same hosts reached {value_text(rings[0])}" if rings else ""
    what = "a setting: channels and queue pairs that the library gives a pair of ranks of two hosts"
    step = "NCCL_NCHANNELS_PER_NET_PEER=4, then 8; NCCL_IB_QPS_PER_CONNECTION=2; compare with ib_write_bw of one card"
    yield Cause(("setting", "channels"), what, step, evidence=evidence)


def without_gpudirect(symptom: RowSymptom) -> Iterator[Cause]:
    """TCP sockets or GPU data staged in host memory: the likelier of the two, by the rate, first."""
    row = symptom.row
    hosts = row.settings.get("hosts", 1)
    one_each = row.path == "network" and row.scenario.startswith(RING_COLLECTIVES)  # of a GPU with memory of its own
    one_each = one_each and not shares_host_memory(symptom.posted.title(symptom.gpu))
    if not (row.metric == "bus_bandwidth" or one_each) or hosts < 2 or "gpu" not in row.flow.lower():
        return
    if are_hosts_joined(row, symptom.posted):
        return  # whatever the network does, NVLinks should carry the data
    if any(other.settings.get("hosts", 1) == hosts for other in symptom.better_rates() if other.flow == row.flow):
        return  # the same hosts carry more in another row: what differs there is the cause
    sockets = Cause(
        ("transport",), "data between the hosts goes by TCP sockets, not by RDMA (EFA, GPUDirect-TCPXO)",
        "NCCL_DEBUG=INFO must show NET/IB or the plugin, not NET/Socket; ibv_devinfo or fi_info in the container",
    )  # fmt: skip
    staged = Cause(
        ("staged",), "GPUDirect RDMA is off: data of the GPUs goes through host memory",
        "NCCL_DEBUG=INFO must show GDRDMA; sudo modprobe nvidia_peermem, or DMA-BUF; NCCL_NET_GDR_LEVEL",
    )  # fmt: skip
    first, second = (sockets, staged) if (row.value or 0.0) < _OF_SOCKETS else (staged, sockets)
    # Where RDMA of host memory was measured between the hosts, nothing need go over sockets.
    rdma = any("gpu" not in each.row.flow and each.row.path == "network" and uses_rdma(each.row)
               for each in symptom.results)  # fmt: skip
    yield first
    if not rdma:
        yield second
    if any(statement.value.lower() not in _NONE for statement in symptom.posted.stated("virtual machine")):
        what = "virtual machines: the card and the GPU exchange data through the root complex and an IOMMU"
        yield Cause(("virtual machine",), what, "ATS and ACS direct translation for card and GPU; compare on the host")
    if rdma:
        yield second
