"""Whose results a text holds, by its content, and its observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.errors import FormatError, Location
from lanewise.readers import lanewise_json
from lanewise.readers.plain_text import text as plain_text
from lanewise.readers.plain_text.claims import said_line, with_claims
from lanewise.readers.posted.statements import posted_facts
from lanewise.readers.programs import lines as program_lines
from lanewise.readers.tables import pasted_tables, timed_sizes
from lanewise.readers.texts import jsons_in, lines_of, short_lines
from lanewise.readers.tool_results import ImportedResults, merge
from lanewise.readers.tools import host_memory
from lanewise.readers.tools.collectives import (
    deepep,
    hccl,
    mscclpp,
    nccl_json,
    nccl_tests,
    oneccl,
    size_tables,
    torch_collectives,
)  # fmt: skip
from lanewise.readers.tools.gpus import (
    babelstream,
    bandwidth_test,
    bus_grind,
    clpeak,
    copy_lines,
    dcgm,
    dcgmproftester,
    nsys,
    nvbandwidth,
    nvprof,
    p2p,
    result_tables,
    rocm_bandwidth,
    rvs,
    simple_p2p,
    transferbench,
)  # fmt: skip
from lanewise.readers.tools.networks import (
    cards_and_fabrics,
    iperf,
    iperf_json,
    nixlbench,
    osu,
    perftest,
    sockets,
    ucx_perftest,
)  # fmt: skip
from lanewise.readers.tools.services import load_generators, serving_logs, training_logs
from lanewise.readers.tools.storage import disks, file_systems, fio, fio_text, gdsio, spdk_perf
from lanewise.readers.typed import figures
from lanewise.readers.words.gpus import sentences, spoken_facts
from lanewise.readers.words.host_cards import network_cards
from lanewise.readers.wrappings import bared, rejoined, unwrapped, with_whole_end
from lanewise.results.posted import PostedFacts, join

KNOWN = (
    "known are nvbandwidth (text, JSON), p2pBandwidthLatencyTest, simpleP2P, bandwidthTest, fio (text, JSON), "
    "perftest (text, JSON), gdsio, nccl-tests, rccl-tests, mscclpp-test, nixlbench, TransferBench, "
    "rocm_bandwidth_test, busGrind, ucx_perftest, logs of vLLM and LMCache, OSU micro-benchmarks, all_reduce_bench "
    "and DeepSpeed's benchmarks of torch.distributed, iperf, dcgmi diag, dcgmproftester, SPDK's perf, clpeak, "
    "BabelStream, dd, hdparm, CrystalDiskMark, KDiskMark, PiBenchmarks, qperf, netperf, nvprof (GPU trace), nsys "
    "stats, RVS, DeepEP, fabtests, XDMA's tools, xbutil, STREAM, Memory Latency Checker, sysbench memory, mbw, "
    "bw_mem, likwid-bench, elbencho, IOR, LoadGen, perf_analyzer, vLLM bench serve, kbench, OpenCL-Benchmark, "
    "gdrcopy, SuperBench's gpu_copy, hipBusBandwidth, SHOC, gpu-stream, ze_bandwidth, ze_peer, memtest_vulkan, "
    "oneCCL's benchmark, hccl_demo, steps of training loops, lines of a program of one's own (size, time and rate), "
    "tables of rates, runs and samples of lanewise, figures typed in (lanewise-rows), and any text with rates (GB/s, "
    "Gb/s, IOPS, tokens/s)"
)
_TEXTS = (
    nvbandwidth, p2p, bandwidth_test, gdsio, perftest, nccl_tests, mscclpp, rocm_bandwidth, transferbench, bus_grind,
    nixlbench, dcgm, dcgmproftester, simple_p2p, osu, iperf, fio_text, torch_collectives, spdk_perf,
    ucx_perftest, serving_logs, clpeak, disks, sockets, nvprof, nsys, size_tables, babelstream, rvs, deepep,
    cards_and_fabrics, host_memory, file_systems, load_generators, training_logs, copy_lines, result_tables, oneccl,
    hccl,
)  # fmt: skip
# A tool of GPUs prints lines that look like a program's; these print none of copies between host and GPU.
_OF_NO_GPU = ("network", "storage", "host memory")
_JSONS = (nvbandwidth, fio, iperf_json, nccl_json)
# A key that stands in no JSON but that of one of them.
_KEYS = ("nvbandwidth", "fio version", "test_start", "nccl_version")


def read_results(text: str, file: str) -> ImportedResults:
    """What a text of results says; one may hold outputs of several tools, between any other lines.

    FormatError, with the line, for what is no result of a known tool or is cut short.
    """
    if lanewise_json.is_run(text):
        return lanewise_json.read_run(text, file)
    if figures.is_text(text):
        return figures.read_text(text, file)
    lines = lines_of(text)
    if lanewise_json.is_samples(lines):
        return lanewise_json.read_samples(lines, file)
    inner = bared(with_whole_end(text, lines))
    plain = _attempt(inner, file)
    if (joined := rejoined(inner)) != inner and _tells_more(whole := _attempt(joined, file), plain):
        plain, inner = whole, joined
    if isinstance(plain, ImportedResults):
        return _renumbered(plain, file, len(inner) - len(lines))
    # Nothing read: perhaps each line has the tag of a log or of a launcher before it.
    for bare in unwrapped(inner):
        results = _attempt(bare, file)
        if isinstance(results, ImportedResults) and results.observations:
            return _renumbered(results, file, len(bare) - len(lines))
    raise plain


def _tells_more(joined: ImportedResults | FormatError, plain: ImportedResults | FormatError) -> bool:
    """Whether lines that were joined have more figures, or as many with more circumstances."""
    readings = [reading.observations if isinstance(reading, ImportedResults) else () for reading in (joined, plain)]
    told = [(len(rows), sum(len(row.settings) + len(row.how) for row in rows)) for rows in readings]
    return told[0] > told[1]


def _renumbered(results: ImportedResults, file: str, added: int) -> ImportedResults:
    """The results, with a note if lines were `added` to those of the file, or left out (below 0)."""
    note = f"{file}: line numbers are those of the text without what is around it"
    return replace(results, notes=(*results.notes, note)) if added else results


def _attempt(lines: list[str], file: str) -> ImportedResults | FormatError:
    """What lines of results say, or why they are none."""
    try:
        return _results(lines, file)
    except FormatError as error:
        return error


def _results(lines: list[str], file: str) -> ImportedResults:
    """What lines of results say; FormatError for what is no result of a known tool or is cut short."""
    short = short_lines(lines)
    posted = _said_and_listed(sentences(short), short, file)
    distinct = list(dict.fromkeys(filter(None, short)))  # a tool is known by what lines say, wherever and how often
    results = [kind.read_text(short, file) for kind in _TEXTS if kind.is_text(distinct)]
    results += _from_json("\n".join(lines), file, needed=not results)
    if not results and program_lines.is_text(short):
        results = [program_lines.read_text(short, file)]
    elif results and all(row.path in _OF_NO_GPU for each in results for row in each.observations):
        beside = program_lines.read_beside(short, file)
        results = [*results, beside] if beside.observations else results
    if not any(each.observations for each in results) and pasted_tables.is_text(distinct):
        results = [*results, pasted_tables.read_text(short, file)]
    if not results and timed_sizes.is_text(distinct):
        results = [timed_sizes.read_text(short, file)]
    if not any(each.observations or each.peers or each.notes or each.posted.statements for each in results):
        raise FormatError("no results of a tool that Lanewise knows", location=Location(file), hint=KNOWN)
    stated = ImportedResults("", (), posted=_but_printed(posted, results))
    return with_claims(merge([*results, stated]), sentences(short), file)


def read_plain(text: str, file: str) -> ImportedResults:
    """The figures of a text that no known tool wrote, and what else it states; without figures no rows."""
    lines = short_lines(lines_of(text))
    spoken = ImportedResults("", (), posted=join([spoken_facts(lines, file), said_line(sentences(lines), file)]))
    figures = plain_text.read_text(lines)
    figures = figures if figures.observations else training_logs.read_times(lines)
    return merge([spoken, figures, ImportedResults("", (), posted=posted_facts(lines, file))])


def _but_printed(posted: PostedFacts, results: Sequence[ImportedResults]) -> PostedFacts:
    """What a text states, without the numbered GPUs of its sentences where a tool prints the names by number itself.

    Of 'four L40S, compared with A100' the second is none of this machine.
    """
    if not any(name != "gpu" and name.startswith("gpu") for each in results for name in each.posted.devices):
        return posted
    return replace(
        posted, devices={name: title for name, title in posted.devices.items() if name[:3] != "gpu" or name == "gpu"}
    )


def _said_and_listed(said: list[str], lines: list[str], file: str) -> PostedFacts:
    """What sentences and tools' lists state: of GPUs what is listed, if anything is."""
    listed, spoken = posted_facts(lines, file), spoken_facts(said, file)
    cards = PostedFacts(statements=tuple(network_cards(lines, file)))
    return join((replace(spoken, devices={}) if listed.devices else spoken, listed, cards))


def read_posted(text: str, file: str) -> ImportedResults:
    """What a text states that holds no results of a tool: settings, logs, `nvidia-smi -q`."""
    return ImportedResults("", (), posted=posted_facts(short_lines(lines_of(text)), file))


def _from_json(text: str, file: str, *, needed: bool) -> list[ImportedResults]:
    """The results of JSON objects within a text; FormatError for one that cannot be read if there is `needed` one."""
    if not any(f'"{key}"' in text for key in _KEYS):
        return []
    objects = [*jsons_in(text, file)]
    results = [kind.read_json(data, file) for data in objects for kind in _JSONS if kind.is_json(data)]
    errors = [data for data in objects if isinstance(data, FormatError)]
    if needed and not results and errors:
        raise errors[0]
    return results
