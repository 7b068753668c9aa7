"""Causes of slow figures of plain text, and of rows whose names say what was changed: what their own words say first.

Of 184 kept slow questions without a GPU whose cause is known 142 had one in software, 31 in a link, 23 in the size or
number of requests, 21 in a virtual machine and 13 in a setting (`tests/checking/threads`, November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.references.texts import of_plain_text, version_differs, words_of
from lanewise.checking.symptom import RowSymptom, value_text
from lanewise.results.observation import Observation

_SETTING = re.compile(
    r"\b(?:with|without|w/o?|enabled?|disabled?|on|off|default|tuned|untuned|setting|config\w*|option|mode|api)\b|"
    r"(?<!\S)--?[a-z][\w-]+|=\w", re.I,
)  # fmt: skip
_LINK = re.compile(
    r"\bpcie?\b|\bslot\b|\blanes?\b|\bx(?:1|2|4|8|16)\b|\bgen ?[1-6]\b|\bcables?\b|\busb ?[23]?(?:\.\d)?\b|\briser\b|"
    r"\badapter\b|\bthunderbolt\b|\bfpga\b|\bxdma\b|\bcapture card\b|\bhub\b", re.I,
)  # fmt: skip
_VIRTUAL = re.compile(
    r"\bvms?\b|\bguests?\b|\bkvm\b|\bqemu\b|\besxi\b|hyper-?v|proxmox|virtio|vmware|\bxen\b|virtualbox|\bwsl2?\b|"
    r"virtual machine", re.I,
)  # fmt: skip
_SHARED = re.compile(r"\bat once\b|simultaneous|concurrent|in parallel|at the same time|\ball (?:drives|disks)\b", re.I)
# Drives that were faster when new, empty, cool or just begun to be written.
_WORN = re.compile(
    r"\bf?s?trim\b|\bdiscard|\bmonths?\b|\bweeks?\b|\b"
    r"after (?:\d+ ?(?:s|sec\w*|min\w*|[gt]b)\b|a while|some|much|writing)|"
    r"\blater\b|\bat first\b|\bcache (?:is )?full|\bsustained|\bfalls?\b|\bfell\b|\bdrops?\b|\bsteady", re.I,
)  # fmt: skip
_GPU = re.compile(r"\bgpus?\b|\bcuda|\bnccl|\brccl|\bgpu ?direct|\bgdr\b|\ball_?reduce|\b[ABH][123]00\b|\bV100\b", re.I)
_NETWORK = re.compile(
    r"\bnetwork|\bnics?\b|\brdma|\broce|infiniband|\bib_|\befa\b|\bhosts\b|\bnodes\b|\d ?gb/s|gbps|"
    r"gbit|connectx|\bhdr|\bndr|\bnixl|\bmooncake", re.I,
)  # fmt: skip
_STEPS = {
    "network": "compare with iperf3 -P 8 and ib_write_bw -q 4; top -H during the run: is one core busy?",
    "storage": "fio --direct=1 --bs=1M --iodepth=32 on the same file and on the device below it",
    "service": "run both with the same requests and settings; py-spy or perf top while it runs; read the release notes",
    "host memory": "compare STREAM with arrays of four times the caches, one thread a core",
}
_LINK_STEP = (
    "while it runs: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; ethtool DEVICE; lsusb -t; another port or cable"
)


def text_causes(symptom: RowSymptom) -> Iterator[Cause]:
    """What the words of a figure and of the one it is held against say, then what is commonest on such a path."""
    row = symptom.row
    if row.metric == "bus_bandwidth" and row.how.get("expectation"):
        yield from _below_a_wish(row)
    if not of_plain_text(row):
        return
    best = _held_against(symptom)
    words = f"{words_of(row)} {row.how.get('after', '')} {words_of(best) if best is not None else ''}"
    evidence = f"'{best.scenario}' reached {value_text(best)}" if best is not None else ""
    if _GPU.search(words) and _NETWORK.search(words):
        what = "data of the GPUs goes through host memory, or the card is far from its GPU"
        step = "NCCL_DEBUG=INFO must show GDRDMA; nvidia-smi topo -m: PIX or PXB to the card"
        yield Cause(("staged",), what, step, evidence=evidence)
    about = row.how.get("about", "")
    if about == "storage" and _WORN.search(words):
        what = "the drive itself: its cache is full, it was not trimmed, it is hot or worn"
        yield Cause(("drive",), what, "fstrim -av; smartctl -a; let it idle, then write again", evidence=evidence)
    yield from _changed(row, best, evidence)
    link = Cause(("link",), "the link: a slower port, slot, cable or hub than the one that was meant", _LINK_STEP)
    judged_by_parts = row.path in ("host to device", "device to host") and not row.how.get("against")
    if (about == "device" or _LINK.search(words)) and not judged_by_parts:
        yield link
    if _SHARED.search(words):
        yield _shared(about)
    if _VIRTUAL.search(words):
        what = "the virtual machine: virtual devices, memory of any NUMA node, an IOMMU that translates"
        yield Cause(("virtual machine",), what, "measure the same on the host, or pass the device through")
    if judged_by_parts:
        return
    what = "the program, its driver or its settings: one thread, small requests, a copy or a lock on the way"
    yield Cause(("software",), what, _STEPS.get(about, "run another program over the same path and compare"))
    if about == "storage":
        what = "small requests or few in flight: the rate is the bytes in flight over the time of one request"
        yield Cause(("requests",), what, _STEPS["storage"])
    elif about == "service":
        what = "a setting of the service: batch size, requests in flight, precision, graphs or caching"
        yield Cause(("setting",), what, "compare the settings that both runs print at their start")
    elif about != "host memory" and not judged_by_parts:
        yield link


def _below_a_wish(row: Observation) -> Iterator[Cause]:
    """A collective below what its text expects: of 9 kept ones within a host 7 have a cause in the library, of 9 over a
    network 5 have data staged in host memory."""
    if row.settings.get("hosts", 1) > 1 or row.path == "network":
        what = "data of the GPUs goes through host memory: GPUDirect RDMA is off, or a card is far from its GPU"
        yield Cause(("staged",), what, "NCCL_DEBUG=INFO must show GDRDMA; nvidia-smi topo -m")
    what = "the library: its version, its choice of algorithm or transport"
    yield Cause(("software",), what, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING: channels, via P2P or SHM")
    what = "a setting of the library: NCCL_P2P_*, NCCL_IB_*, NCCL_ALGO, NCCL_PROTO, channels"
    yield Cause(("setting",), what, "env | grep NCCL; cat /etc/nccl.conf; unset them and measure again")


def _changed(row: Observation, best: Observation | None, evidence: str) -> Iterator[Cause]:
    """The version or setting that two figures' words differ in."""
    if best is None:
        return
    step = "change only that and measure again, twice each way"
    if version_differs(row, best):
        yield Cause(("software",), "what changed between the two versions or runs", step, evidence=evidence)
    else:
        yield Cause(("software",), "the program or driver in which the two runs differ", step, evidence=evidence)
    if _SETTING.search(f"{words_of(row)} {words_of(best)}"):
        yield Cause(("setting",), "the setting in which the two runs differ", step, evidence=evidence)


def _shared(about: str) -> Cause:
    what = "what they share on the way: one real drive, controller, port or uplink"
    step = "lspci -tv and lsblk -o NAME,PKNAME,TRAN: what is above both; add up the rates of all at once"
    return Cause(("shared",), what if about != "network" else "a port or uplink that they share", step)


def _held_against(symptom: RowSymptom) -> Observation | None:
    """The row that the verdict rests on, by its name in the reference."""
    limit = symptom.result.expected.limit
    texts = [other.row for other in symptom.results if of_plain_text(other.row)]
    better = [row for row in texts if row.metric == symptom.row.metric]
    return next((row for row in better if f"'{row.scenario}'" == limit), None)
