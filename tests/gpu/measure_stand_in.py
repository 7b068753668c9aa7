"""`lanewise` with the stand-in as its driver: python measure_stand_in.py [--slow] measure gpu ..."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpu.stand_in import Cuda, Run

from lanewise.cli.main import main
from lanewise.probes.gpu import probe as gpu

SLOW = "--slow"


def _open(library: str = "") -> gpu.GpuProbe:
    # An H200 pair's rates, so that what is compared with its predictions comes out near them.
    cuda = Cuda(link=55.5e9, duplex=103e9, peer=396e9, staged=38.4e9, setup=2.8e-6)
    return gpu.GpuProbe(cuda, Path("/nowhere"))  # type: ignore[arg-type]


def _slowly(run: Run) -> object:
    time.sleep(0.05)
    return at_once(run)


at_once = Run.run
if __name__ == "__main__":
    gpu.open_gpus = _open
    if SLOW in sys.argv:
        sys.argv.remove(SLOW)
        Run.run = _slowly  # type: ignore[method-assign, assignment]
    sys.exit(main())
