"""References of copies and kernels within a GPU's own memory: its rated bandwidth, and other rows of that memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lanewise import units
from lanewise.catalog import Catalog
from lanewise.checking.named.abilities import ability, raw_rate
from lanewise.checking.named.links import is_slice
from lanewise.checking.references.parts import Reference, best_of, of_another_row, of_other_rows
from lanewise.checking.references.side_by_side import kind_of_work
from lanewise.checking.references.stated_limits import names_limit
from lanewise.checking.symptom import name_of_test
from lanewise.errors import LanewiseError
from lanewise.results.figure_words import OWN_PROGRAM, PLAIN_TEXT
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

GPU_MEMORY = "GPU memory"
# Kernels and copies reach 0.7 to 0.94 of the pins' rate (BabelStream and nvbandwidth: RTX 2060 0.89, V100 0.83, A100
# 0.87, H100 0.86 to 0.92, H200 0.84, MI300X 0.68 to 0.81; half of it on Intel's Max 1550, Jetson Orin 0.75).
_FINE = 0.6
# Below this share no chip's memory is the reason; what a program asks of it, or a clock that stayed low.
_SLOW = 0.3
# Decoding and the like need not keep the memory busy, but no more of it idle than that.
_SLOW_WORK = 0.05
# Decoding reads all weights for each token: 0.25 of the memory's rate for a model of 0.8B on an M4 Max, 0.75 for 27B.
_DECODING, _SLOW_DECODING = re.compile(r"\bdecod|\bgenerat|\btg\d", re.IGNORECASE), 0.2
# Cards are sold and run with memory up to a tenth faster than the reference card's.
_ABOVE = 1.1
# Smaller buffers (B) cost more to start than to move, and lie in the cache.
_LEAST = 64 << 20
# The largest caches have 256 MiB (MI300X); buffers of twice that do not lie in them.
_FAR_ABOVE_CACHES = 512 << 20
# Of two programs on the same memory half leaves room for kernels that do not keep it busy.
_OF_OTHER = 0.5
_OF_LIMIT = 0.75
# Of the same kernel by name 0.75, as for host memory (`side_by_side`).
_OF_KERNEL = 0.75
# A copy from device to device, and words that name two of them.
_D2D = re.compile(r"\bd(?:evice)?(?:2|to| to |->|_to_)d(?:evice)?(?=\b|_)", re.IGNORECASE)
_TWO_GPUS = re.compile(
    r"\bp2p\b|\bpeer|\bpairs?\b|nvlink|\bgpu ?\d{1,2}\D{1,8}gpu ?\d|cuda:\d\D{1,8}cuda:\d", re.IGNORECASE
)
# One way of a B200's NVLinks (NVIDIA's HGX B200 data sheet: 1.8 TB/s both ways).
_MOST_NVLINK = 900e9
# The diagonal of a matrix of copies between GPUs says nothing of a path.
DIAGONALS = ("p2pBandwidthLatencyTest", "rocm_bandwidth_test", "TransferBench", "SuperBench", "nvbandwidth")
_COUNTED_ONCE = re.compile(r"counted once")
# Rated bandwidth by name, GB/s, of GPUs that the catalogue does not have (their makers' specifications; where a name
# has several memories, the fastest). The first that matches counts.
_RATED = (
    (r"\bM[12] Ultra", 800), (r"\bM3 Ultra", 819), (r"\bM4 Max", 546), (r"\bM[123] Max", 400), (r"\bM4 Pro", 273),
    (r"\bM3 Pro", 150), (r"\bM[12] Pro", 200), (r"\bM4\b", 120), (r"\bM[23]\b", 100), (r"\bM1\b", 68.3),
    (r"RTX 2060 SUPER|RTX 20[78]0(?! (?:Ti|SUPER))|RTX 2070 SUPER", 448), (r"RTX 2080 SUPER", 496), (r"RTX 2060", 336),
    (r"RTX 3060 Ti|RTX 3070(?! Ti)", 608), (r"RTX 3070 Ti", 608), (r"RTX 3080 Ti", 912), (r"RTX 3090 Ti", 1008),
    (r"RTX 4060(?! Ti)", 272), (r"RTX 4070 Ti SUPER", 672), (r"RTX 4070 (?:Ti|SUPER)", 504), (r"RTX 4080 SUPER", 736),
    (r"RTX 5060(?! Ti)", 448), (r"GTX 1060", 216), (r"GTX 16[56]0", 336), (r"RX Vega 56", 410), (r"RX Vega 64", 484),
    (r"RX 5700", 448), (r"RX 6600", 256), (r"RX 6700 XT", 384), (r"RX 6[89][05]0", 576), (r"RX 7800 XT", 624),
    (r"RX 7900 (?:GRE|XT)\b", 800), (r"Arc\S* A7[57]0", 560), (r"\bMI300A\b", 5300), (r"\bMI250\b", 1638.4),
    (r"\bGB10\b|DGX Spark", 273), (r"AGX Orin", 204.8), (r"AGX Thor|Jetson Thor", 273), (r"Strix Halo|80[56]0S", 256),
)  # fmt: skip


def with_copies_within(rows: Iterable[Observation], posted: PostedFacts, catalog: Catalog) -> Iterator[Observation]:
    """The rows; a program's "d2d" copy that no link between two GPUs carries is one within its GPU's memory.

    CUDA calls both cudaMemcpyDeviceToDevice. Programs count such a copy once: its size over its time.
    """
    for row in rows:
        named = row.path == "peer" and row.how.get("tool") in (OWN_PROGRAM, PLAIN_TEXT) and _D2D.search(row.scenario)
        if named and not _TWO_GPUS.search(row.scenario) and (row.value or 0.0) > _most_of_peers(posted, catalog):
            gpu = row.flow.partition("->")[0].strip()
            how = {key: value for key, value in row.how.items() if key not in ("flows", "p2p")}
            row = replace(row, flow=f"{gpu}->{gpu}", path=GPU_MEMORY, how=how, note="counted once")
        yield row


def _most_of_peers(posted: PostedFacts, catalog: Catalog) -> float:
    """More than any copy between two GPUs of that name has, B/s; of one that nobody named more than all NVLinks."""
    part = ability(posted.title("gpu0") or posted.title("gpu"), catalog)
    if part is None:
        return _ABOVE * _MOST_NVLINK
    return _ABOVE * max(part.nvlink_rate or 0.0, raw_rate(part.gen, part.lanes))


def of_gpu_memory(
    row: Observation, rows: Sequence[Observation], posted: PostedFacts, catalog: Catalog
) -> Iterator[Reference]:
    """What the GPU's memory is rated at, and the best that another row of the same memory says."""
    tool = row.how.get("tool", "")
    if row.path != GPU_MEMORY or row.metric != "goodput" or row.value is None or tool.startswith(DIAGONALS):
        return
    gpu = _gpu(row)
    rate, source = rated(posted, gpu, catalog)
    moved = 2 if _COUNTED_ONCE.search(row.note) else 1  # a copy reads and writes what it is counted for
    if is_slice(f"{row.scenario} {posted.title(gpu)}"):
        return
    small = row.settings.get("bytes", _LEAST) < _LEAST
    if rate:
        nominal = rate / moved
        limit = f"the memory of {posted.title(gpu) or gpu}"
        _, work = kind_of_work(row)
        least = _SLOW if not work else _SLOW_DECODING if _DECODING.search(row.scenario) else _SLOW_WORK
        slow = 0.0 if small else least * nominal
        # A tool's own small buffers lie in the cache of a healthy GPU; what somebody typed in is a question.
        most = nominal if posted.stated("memory rate") else _ABOVE * nominal
        high = most if tool == "typed in" or not small else None
        yield Reference("parts", nominal, _FINE * nominal, slow, high, limit, source)
    like = [
        each for each in rows
        if each is not row and each.path == row.path and each.metric == row.metric and each.flow == row.flow
        and each.value and each.how.get("tool") == row.how.get("tool") == "typed in"
    ]  # fmt: skip
    if title := posted.title(gpu):
        yield from _of_equal_gpus(row, [each for each in rows if posted.title(_gpu(each)) == title])
    limits = [each for each in like if names_limit(each)]
    if (best := best_of(limits)) is not None:
        nominal = best.value or 0.0
        yield Reference("same path", nominal, _OF_LIMIT * nominal, _OF_OTHER * nominal, None, f"'{best.scenario}'",
                        "the other row", own=not rate)  # fmt: skip
    like = [
        each for each in like
        if not names_limit(each) and _comparable(each, row) and _of_one_work(each, row)
    ]  # fmt: skip
    if (best_row := best_of(like)) is not None:
        same = kind_of_work(best_row)[0] & kind_of_work(row)[0]
        share = _OF_KERNEL if same else _OF_OTHER
        yield of_another_row(best_row.value or 0.0, share, f"'{best_row.scenario}'")


def _gpu(row: Observation) -> str:
    return row.flow.partition("->")[0].strip()


def _of_equal_gpus(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """The memory of other GPUs of that name by the same test of a tool: chips of one name differ by a few per cent."""
    test = _test(row)
    like = [each for each in rows if each.path == row.path and _gpu(each) != _gpu(row) and _test(each) == test]
    best = best_of(like)
    if best is not None and row.how.get("tool") != "typed in":
        yield of_other_rows(best.value or 0.0, _OF_OTHER, f"the memory of {_gpu(best)}, a GPU of the same name")


def _test(row: Observation) -> tuple[object, ...]:
    """What a tool measured, without the label of a run."""
    return name_of_test(row), row.metric, row.settings, row.how.get("tool"), row.how.get("pattern")


def _of_one_work(other: Observation, row: Observation) -> bool:
    """Whether the names say the same kernel, and the same work where both say one."""
    (kernel, work), (other_kernel, other_work) = kind_of_work(row), kind_of_work(other)
    return kernel == other_kernel and (work == other_work or not work or not other_work)


def _comparable(other: Observation, row: Observation) -> bool:
    """Whether two rows differ in nothing but buffers that are both far larger than any cache."""
    sizes = [each.settings.get("bytes", 0) for each in (other, row)]
    same = {**other.settings, "bytes": 0} == {**row.settings, "bytes": 0}
    return same and (sizes[0] == sizes[1] or min(sizes) >= _FAR_ABOVE_CACHES)


def measured_memory(gpu: str, rows: Sequence[Observation]) -> float:
    """The most that a GPU's memory was measured at, B/s; 0 if no row says it."""
    own = [row.value or 0.0 for row in rows if row.path == GPU_MEMORY and row.metric == "goodput"
           and row.flow.startswith(f"{gpu}->") and not names_limit(row)]  # fmt: skip
    return max(own, default=0.0)


def rated(posted: PostedFacts, gpu: str, catalog: Catalog) -> tuple[float, str]:
    """The rated bandwidth of a GPU's memory in B/s and where it is from; 0 where nothing says it."""
    for statement in posted.stated("memory rate")[:1]:
        try:
            return units.parse(statement.value, "B/s"), statement.source
        except LanewiseError:
            break
    title = posted.title(gpu)
    part = catalog.gpu(title) if title else None
    if part is not None and (rate := part.number("memory.rate")):
        return rate, f"part {part.name}"
    known = next((rate for pattern, rate in _RATED if re.search(pattern, title, re.IGNORECASE)), 0.0) if title else 0.0
    return known * 1e9, "its maker's specification"
