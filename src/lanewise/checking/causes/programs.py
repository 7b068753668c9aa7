"""Causes of slow lines of a program of one's own: nobody but its author measured the path with it.

Of 23 such programs that were slowed on purpose (benchmarks/runs/2026-11-27-two-gpus-own-programs) eleven were slow by
what they did themselves, six by pageable memory or a buffer between, six by peer access or a setting, none by a link.
"""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.symptom import RowSymptom
from lanewise.results.figure_words import OWN_PROGRAM

_COPY = "the program itself: small pieces, a wait after each, an allocation or a second copy within the time"
_KERNEL = "the program's kernel: too few blocks or loads in flight, or single words of few bytes"
_BACKEND = "a setting (NCCL_P2P_*, NCCL_ALGO, NCCL_PROTO), or a backend such as gloo that goes through host memory"
_STEP = "measure the same path with nvbandwidth or lanewise measure gpu; nsys profile shows each copy and the gaps"


def program_faults(symptom: RowSymptom) -> Iterator[Cause]:
    """Peer access that a program must enable, then the program itself."""
    row = symptom.row
    if row.how.get("tool") != OWN_PROGRAM:
        return
    if row.path == "collective":
        yield Cause(("setting",), _BACKEND, "env | grep NCCL; print(torch.distributed.get_backend()); NCCL_DEBUG=INFO")
        return
    if row.path == "peer" and row.how.get("engine") != "SM":
        what = "the program does not enable peer access: the driver copies through host memory"
        yield Cause(("peers",), what, "cudaDeviceEnablePeerAccess or torch.cuda.can_device_access_peer, then again")
    yield Cause(("software",), _KERNEL if row.how.get("engine") == "SM" else _COPY, _STEP)
