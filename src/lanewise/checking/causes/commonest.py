"""What a kind of path is slow by most often: told of a slow row where all that is known shows but one cause, and of
figures that nothing can be compared with.

The two causes of each kind are the commonest of the kept slow questions with a known cause (`tests/checking/threads`,
November 2026, `benchmarks/commonest_causes.py`), those that rules were written on / those held out, a question counted
for each cause that an engineer would sign:

| kind | questions | first | second |
|---|---|---|---|
| network | 148 / 54 | software 117 / 43 | setting 37 / 13 |
| network to or from a GPU | 44 / 13 | software 18 / 6 | staged 16 / 5 |
| drive or volume | 81 / 43 | software 58 / 30 | setting 17 / 15 (requests 17 / 15) |
| drive, one request at a time | 9 / 8 | software 7 / 4 | requests 6 / 5 |
| drive, long requests, several in flight | 12 / 4 | link 6 / 1 | software 5 / 2 |
| host copy, pinned memory | 37 / 14 | software 18 / 4 | link 13 / 8 |
| host copy, other or unnamed memory | 73 / 38 | software 46 / 23 | pageable 33 / 19 |
| between GPUs | 30 / 20 | software 14 / 11 | peers or staged 8 / 8 |
| collective | 57 / 31 | setting 30 / 20 | software 29 / 14 |
| a GPU's memory | 18 / 11 | software 14 / 11 | requests 3 / 2 |
| counts a second | 45 / 22 | software 32 / 18 | setting 21 / 13 |

Of a drive the time of one request limits one at a time alone, so that a setting is told of the others. Of other kinds
(latencies, a host's memory) too few are known: nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import DIRECT, PAGEABLE
from lanewise.checking.named.abilities import is_coherent, shares_host_memory
from lanewise.checking.references.gpu_memory import DIAGONALS, GPU_MEMORY
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.side_by_side import COUNTS
from lanewise.checking.symptom import RowSymptom
from lanewise.results.observation import Observation

_PROGRAM = Cause(
    ("software",), "the program or its driver: one thread, small pieces, a copy or a lock on the way",
    "run another program over the same path and compare; top -H and perf top: is one core busy?",
)  # fmt: skip
_NETWORK_SETTING = Cause(
    ("setting",), "a setting of the network: MTU, buffers, offloads, interrupts of one core, the processor's governor",
    "ip -s link; ethtool -k, -g and -l DEVICE; sysctl net.ipv4.tcp_rmem; cpupower frequency-info",
)  # fmt: skip
_DRIVE_SETTING = Cause(
    ("setting",), "a setting of the drive or its file system: sync or barriers, write cache, scheduler, power saving",
    "mount; cat /sys/block/DEVICE/queue/{scheduler,write_cache}; nvme get-feature -f 2; cpupower frequency-info",
)  # fmt: skip
REQUESTS = Cause(
    ("requests",), "small requests or few in flight: the rate is the bytes in flight over the time of one request",
    "ask for larger pieces and more of them at once until the rate no longer grows",
)  # fmt: skip
_SETTING = Cause(
    ("setting",), "a setting of the library, the driver or the firmware",
    "compare with their defaults: env | grep -E 'NCCL|RCCL|UCX|HSA|CUDA'; what the program prints at its start",
)  # fmt: skip
LINK = Cause(
    ("link",), "the link: fewer lanes, an older generation, a slower port or cable, or shared with other devices",
    "while it runs: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; sudo lspci -tv; lsusb -t; ethtool DEVICE",
)  # fmt: skip


_PEERS = Cause(
    ("peers",), "peer copies are off: data between the GPUs goes through host memory",
    "nvidia-smi topo -p2p r; nvidia-smi topo -m; NCCL_DEBUG=INFO must show P2P, not SHM",
)  # fmt: skip
# Tools that copy from and to pinned memory alone.
PINNED_TOOLS = ("nvbandwidth", "rocm_bandwidth_test", "TransferBench", "busGrind", "dcgmi", "lanewise")
# Requests (B) that are long for a drive, of which several are in flight: the time of one request does not limit them.
_LONG = 128 * 2**10
NETWORK, NETWORK_OF_GPU = "network", "network of a GPU"
DRIVE, DRIVE_ONE, DRIVE_LONG = "drive", "drive, one request at a time", "drive, long requests"
PINNED, HOST_COPY, PEER, COUNT = "pinned host copy", "host copy", "between GPUs", "counts a second"
COMMONEST: Mapping[str, tuple[Cause, Cause]] = {
    NETWORK: (_PROGRAM, _NETWORK_SETTING),
    NETWORK_OF_GPU: (_PROGRAM, DIRECT.cause()),
    DRIVE: (_PROGRAM, _DRIVE_SETTING),
    DRIVE_ONE: (_PROGRAM, REQUESTS),
    DRIVE_LONG: (LINK, _PROGRAM),
    PINNED: (_PROGRAM, LINK),
    HOST_COPY: (_PROGRAM, PAGEABLE.cause()),
    PEER: (_PROGRAM, _PEERS),
    COLLECTIVE: (_SETTING, _PROGRAM),
    GPU_MEMORY: (_PROGRAM, REQUESTS),
    COUNT: (_PROGRAM, _SETTING),
}  # fmt: skip


def commonest(symptom: RowSymptom) -> Iterator[Cause]:
    """The commonest causes of such a path, whatever is known of this one: after all others."""
    kind = kind_of_path(symptom.row, symptom.posted.title(symptom.gpu))
    return (replace(cause, inconclusive=True) for cause in COMMONEST.get(kind, (_PROGRAM, _SETTING)))


def kind_of_path(row: Observation, title: str) -> str:
    """The kind of COMMONEST that a row is of, with the name (`title`) of its GPU; empty for other kinds."""
    of_gpu = "gpu" in row.how.get("flows", row.flow)
    if row.metric in (COLLECTIVE, "algorithm_bandwidth", "time"):
        return COLLECTIVE
    if row.path == "network" and row.unit != "s":
        return NETWORK_OF_GPU if of_gpu and not shares_host_memory(title) else NETWORK
    if row.path == "storage" and row.unit != "s":
        in_flight = row.settings.get("depth", 0) * row.settings.get("threads", 1) or row.settings.get("threads", 0)
        is_long = row.settings.get("bytes", 0) >= _LONG and not of_gpu
        return DRIVE_ONE if in_flight == 1 else DRIVE_LONG if in_flight > 1 and is_long else DRIVE
    if row.unit == "1/s":
        return COUNT if row.metric in (COUNTS, "completed", "offline") else ""
    if row.unit == "s":
        return ""
    if set(row.path.split(", ")) <= set(HOST_COPIES):
        pinned = row.how.get("host memory") == "pinned" or row.how.get("tool", "").startswith(PINNED_TOOLS)
        return PINNED if pinned or is_coherent(title) else HOST_COPY
    if row.path.startswith("peer"):
        return PEER
    return GPU_MEMORY if row.path == GPU_MEMORY and not row.how.get("tool", "").startswith(DIAGONALS) else ""
