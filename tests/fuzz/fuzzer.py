"""Reads mutated inputs until one leaves with another error than LanewiseError, or takes memory or time without bound.

    python -m fuzz.fuzzer --inputs 1000 --seed 0          the same inputs each time
    python -m fuzz.fuzzer --seconds 60 [--family yaml]    new inputs; what fails is kept in tests/fuzz/failures

The bounds of memory (2 GiB) and of processor time (60 s an input) only end what does not end by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.targets import TARGETS, corpus, mutate
from lanewise.errors import LanewiseError

FAILURES = Path(__file__).parent / "failures"
_MEMORY, _SECONDS = 2 << 30, 60


class TooLong(BaseException):
    """An input that is still read after that much processor time; no `except Exception` takes it."""


def _too_long(*_: object) -> None:
    raise TooLong(f"still reading after {_SECONDS} s of processor time")


def failure(family: str, data: bytes) -> str:
    """The traceback of an input that a reader cannot refuse properly; empty for all others."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        TARGETS[family].read(data)
    except LanewiseError as error:
        shown = error.show()
        return "" if error.cause and len(shown) < 20_000 else f"an error without a cause, or of {len(shown)} letters"
    except (Exception, TooLong):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def smaller(family: str, data: bytes) -> bytes:
    """The input without what the failure does not need, as far as a short search finds."""
    last = failure(family, data).strip().rpartition("\n")[2].partition(":")[0]
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if failure(family, shorter).strip().rpartition("\n")[2].partition(":")[0] == last:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def inputs(family: str, seed: int) -> Iterator[bytes]:
    """First the corpus, then changed ones without end; the same for the same seed."""
    seeds = corpus(family)
    yield from seeds
    chance = random.Random(f"{family} {seed}")
    while True:
        yield mutate(chance.choice(seeds), chance)


def bound_memory() -> None:
    """Bound the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> int:
    """Fuzz as the command line says; 1 if an input failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--family", choices=TARGETS)
    parser.add_argument("--inputs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args()
    bound_memory()
    print(f"seed {options.seed}", flush=True)
    families = [options.family] if options.family else list(TARGETS)
    return fuzz(families, options.seed, options.inputs, options.seconds)


def fuzz(families: Sequence[str], seed: int, most: int = 0, seconds: float = 0.0) -> int:
    """Read so many inputs of each family, or for so long in all; prints and keeps what fails, 1 if anything did."""
    signal.signal(signal.SIGVTALRM, _too_long)
    warnings.simplefilter("ignore")
    failed: dict[str, str] = {}
    for family in families:
        count, end = 0, time.monotonic() + seconds / len(families)
        for data in inputs(family, seed):
            count += 1
            text = failure(family, data)
            place = "\n".join(text.splitlines()[-4:-1])
            if text and place not in failed:
                failed[place] = text
                with contextlib.suppress(RecursionError, MemoryError):
                    data = smaller(family, data)
                path = FAILURES / family / hashlib.sha256(data).hexdigest()[:12]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                print(f"{family}: {path}\n{text}", flush=True)
            if count >= most if most else time.monotonic() > end:
                break
        print(f"{family}: {count} inputs", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
