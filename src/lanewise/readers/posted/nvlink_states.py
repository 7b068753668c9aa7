"""NVLinks that count errors or are down, as `nvidia-smi nvlink -e` and `dcgmi nvlink -s` print them.

Sources: nvidia-smi's manual page; DCGM's user guide (U: up, D: down, X: disabled, _: not supported) and its health
checks, for which one recovery is an error, and 100 CRC errors a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lanewise import late_re as re
from lanewise.results.posted import Statement

_NumberedLine: TypeAlias = tuple[int, str]
_GPU = re.compile(r"\s*(?:GPU (\d{1,3}): \S|gpuId (\d{1,3}):)")
_COUNT = re.compile(r"\s{1,12}Link (\d{1,2}): (Replay|Recovery|CRC(?: F[Ll][Ii][Tt])?) Errors?: (\d{1,18})\s*$")
_STATES = re.compile(r"\s{0,16}((?:[UDX_] ){1,35}[UDX_])\s*$")
# Replays and CRC errors from here on: ten seconds of DCGM's limit. Few of them are how links train.
_MANY = 1000


def nvlink_states(lines: Sequence[_NumberedLine], file: str) -> Iterator[Statement]:
    """The links of GPUs that had to recover or repeat much, and those that are down beside others that are up."""
    gpu, told = "a GPU", set[tuple[str, str]]()
    for number, line in lines:
        if match := _GPU.match(line):
            gpu = f"gpu{match[1] or match[2]}"
        elif match := _COUNT.match(line):
            count, recovers = int(match[3]), match[2] == "Recovery"
            if (count >= _MANY or (recovers and count)) and (gpu, match[1]) not in told:
                told.add((gpu, match[1]))
                what = f"link {match[1]} of {gpu}: {count} {match[2].lower()} errors"
                yield Statement("NVLink errors", what, f"{file}:{number}")
        elif (match := _STATES.match(line)) and "U" in match[1] and (down := match[1].count("D")):
            what = f"{down} links of {gpu} are down" if down > 1 else f"a link of {gpu} is down"
            yield Statement("NVLink errors", what, f"{file}:{number}")
