"""Logs of vLLM and LMCache: KV transfers between workers, KV caches to and from host memory, loads of weights.

Source of what is read: vllm/distributed/kv_transfer (MB is 2^20 bytes; the throughput is all bytes over the sum of the
transfers' times), lmcache/v1/cache_engine.py (gb and GB/s are of 2^30 bytes), vllm/model_executor/model_loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import GIB, MIB, ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "vLLM and LMCache"
_TRANSFER = re.compile(r"KV Transfer metrics: (?=.{0,300}Num successful transfers=)(?P<pairs>.{1,600})")
_PAIR = re.compile(r"([A-Z][\w ()/-]{2,40})=([\d.]{1,20})(?=,|\s|$)")
_CACHE = re.compile(
    r"\b(?P<verb>Stored|Retrieved) (?P<tokens>\d{1,12}) out of .{1,80}? size: (?P<size>[\d.]{1,20}) gb, "
    r"cost (?P<cost>[\d.]{1,20}) ms, throughput: [\d.]{1,20} GB/s"
)
_LOAD = re.compile(
    r"Loading weights took (?P<weights>[\d.]{1,20}) seconds|"
    # Before 0.9 it wrote GB for the same 2^30 bytes.
    r"(?:Model loading|Loading model weights) took (?P<size>[\d.]{1,20}) Gi?B(?: memory)? "
    r"and (?P<whole>[\d.]{1,20}) seconds"
)
# The bar of a load that ended: 30 of 30 files, hours, minutes and seconds.
_BAR = re.compile(
    r"Loading (?:safetensors|pt) checkpoint shards: 100%.{0,120}\b(?P<files>\d{1,4})/(?P=files) "
    r"\[(?:(?P<h>\d{1,3}):)?(?P<m>\d\d):(?P<s>\d\d)<"
)
_OVERLAP = "vLLM divides by the sum of the transfers' times: transfers that overlap are faster together than it says"


def is_text(lines: Sequence[str]) -> bool:
    """Whether a line is one of these."""
    return any(
        _TRANSFER.search(line) or _CACHE.search(line) or _LOAD.search(line) or _BAR.search(line) for line in lines
    )


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row a line and figure; FormatError with the line of a figure that is none."""
    rows: list[Observation] = []
    notes: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        at = Location(file, number)
        if match := _TRANSFER.search(line):
            values = {name: figure(text, at) for name, text in _PAIR.findall(match["pairs"])}
            rows += _transfers(values)
            notes |= dict.fromkeys(_posting(values))
        elif match := _CACHE.search(line):
            rows += _cache(match, at)
        elif match := _LOAD.search(line):
            rows += _load(match, at)
        elif match := _BAR.search(line):
            hours, minutes, seconds = (figure(match[key] or "0", at) for key in "hms")
            kind = ToolValue("weights->gpu0", "weights->gpu0", "makespan", "s", "load")
            rows.append(observation("vLLM", "load of the files", kind, 3600 * hours + 60 * minutes + seconds, {}, {}))
        check_rows(rows, at)
    return ImportedResults(TOOL, tuple(rows), notes=(*notes, *(_OVERLAP,) * bool(notes)))


def _posting(values: dict[str, float]) -> Iterator[str]:
    """What a transfer of KV blocks waits for, as far as its times say it."""
    post, whole, pieces = (
        values.get(name, 0.0) for name in ("Avg post time (ms)", "Avg xfer time (ms)", "Avg number of descriptors")
    )
    if post and whole and pieces:
        share, each = 100 * post / whole, 1e3 * post / pieces
        text = f"KV transfers of {pieces:.0f} pieces: posting takes {share:.0f} % of the time, {each:.2g} us a piece"
        yield text + ("; larger blocks or fewer pieces would help, a faster path would not" if share > 50 else "")


def _transfers(values: dict[str, float]) -> Iterator[Observation]:
    """The rate and the mean time of the transfers of an interval; none where there were none."""
    pieces, size = values.get("Avg number of descriptors", 0.0), values.get("Avg MB per transfer", 0.0) * MIB
    if not values.get("Num successful transfers") or not size:
        return
    settings = {"blocks": round(pieces), "bytes": round(size / pieces)} if pieces >= 1 else {}
    flow = "prefill->decode"
    # No goodput: transfers that overlap share a path that each of them is timed on.
    for name, metric, unit, scale in (("Throughput (MB/s)", "transfer_rate", "GB/s", MIB / 1e9),
                                      ("Avg xfer time (ms)", "transfer_time", "ms", 1.0),
                                      ("Avg post time (ms)", "post_time", "ms", 1.0)):  # fmt: skip
        if name in values:
            kind = ToolValue(flow, flow, metric, unit, "network")
            yield observation("vLLM", "KV transfer", kind, values[name] * scale, {}, settings)


def _cache(match: re.Match[str], at: Location) -> Iterator[Observation]:
    size, seconds = figure(match["size"], at) * GIB, figure(match["cost"], at) * 1e-3
    stored = match["verb"] == "Stored"
    flow = "gpu0->host0" if stored else "host0->gpu0"
    if seconds > 0 and size > 0:
        kind = ToolValue(flow, flow, path="device to host" if stored else "host to device")
        scenario = f"KV cache {match['verb'].lower()}"  # by a kernel (csrc/mem_kernels.cu)
        tokens = {"tokens": int(match["tokens"])}
        yield observation("LMCache", scenario, kind, size / seconds / 1e9, {"engine": "SM"}, tokens)


def _load(match: re.Match[str], at: Location) -> Iterator[Observation]:
    flow, whole = "weights->gpu0", match["whole"]
    seconds = figure(whole or match["weights"], at)
    scenario = "load of the model" if whole else "load of the weights"
    kind = ToolValue(flow, flow, "makespan", "s", "load")
    yield observation("vLLM", scenario, kind, seconds, {}, {})
    if whole and seconds > 0:
        rate = figure(match["size"], at) * GIB / seconds / 1e9
        yield observation("vLLM", scenario, ToolValue(flow, flow, "total", "GB/s", "load"), rate, {}, {})
