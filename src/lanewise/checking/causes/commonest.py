"""What a kind of path is slow by most often: the second cause where everything that is known shows but one.

The order is that of 278 kept slow questions with a known cause (`tests/checking/threads`, the half of them with an even
hash, November 2026): of 65 over a network 56 had one in software and 9 in a setting, of 22 with a GPU's memory 11 in
data staged in host memory, 10 in software and 7 in a far card; of 53 of drives 41, 10 and 9 in software, a setting and
requests; of 55 copies from or to a host 33, 17 and 16 in software, pageable memory and a link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import PAGEABLE
from lanewise.checking.named.abilities import is_coherent
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.symptom import RowSymptom

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


def commonest(symptom: RowSymptom) -> Iterator[Cause]:
    """The commonest causes of such a path, whatever is known of this one: after all others."""
    return (replace(cause, inconclusive=True) for cause in _of_path(symptom))


def _of_path(symptom: RowSymptom) -> Iterator[Cause]:
    row = symptom.row
    yield _PROGRAM
    if row.path in HOST_COPIES:
        if row.how.get("host memory") != "pinned" and not is_coherent(symptom.posted.title(symptom.gpu)):
            yield PAGEABLE.cause()
        yield LINK
    elif row.path == "network":
        yield _NETWORK_SETTING
    elif row.path == "storage":
        yield _DRIVE_SETTING
        yield REQUESTS
    elif row.metric == COLLECTIVE or row.path:
        yield _SETTING
    else:
        yield REQUESTS
