"""The JSON of nccl-tests (-J, from 2.17 on) as the table that they print beside it, which `nccl_tests` reads.

Source: the tests' own sources (github.com/NVIDIA/nccl-tests, src/util.cu): times are microseconds, rates GB/s of 1e9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lanewise.errors import FormatError, Location
from lanewise.readers.tool_results import ImportedResults
from lanewise.readers.tools.collectives import nccl_tests

_HEADS = "size count type redop root " + "time algbw busbw #wrong " * 2


def is_json(data: Any) -> bool:
    """Whether a JSON object is that of nccl-tests."""
    return isinstance(data, dict) and "nccl_version" in data and isinstance(data.get("results"), list)


def read_json(data: Mapping[str, Any], file: str) -> ImportedResults:
    """Bus bandwidth of each size; FormatError for a run without results or what is no result."""
    try:
        lines = [*_lines(data)]
    except (KeyError, TypeError, AttributeError) as error:
        cause = f"the JSON of nccl-tests is not as it should be: {error}"
        raise FormatError(cause, location=Location(file), hint="give the whole file") from None
    if not data["results"]:
        raise FormatError("the JSON of nccl-tests has no results", location=Location(file), hint="let the test finish")
    results = nccl_tests.read_text(lines, file)
    statements = tuple(replace(each, source=file) for each in results.posted.statements)
    return replace(results, posted=replace(results.posted, statements=statements))


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    yield f"# nccl-tests version 0 nccl-headers=0 nccl-library={data['nccl_version']}"
    yield f"# Collective test starting: {str(data['args'][0]).rpartition('/')[2]}"
    config = data["config"]
    yield f"# nThread {config['nthreads']} nGpus {config['ngpus']} warmup iters: {config.get('warmup_iters', 1)}"
    for rank in config["devices"]:
        yield (
            f"#  Rank {rank['rank']} Group {rank['group']} Pid {rank['pid']} on {rank['hostname']} device "
            f"{rank['device']} {rank['device_hex']} {rank['device_info']}"
        )
    yield f"# {_HEADS}"
    for row in data["results"]:
        if row["out_of_place"] is None:
            continue  # a replay of a trace
        words = [row[key] for key in ("size", "count", "type", "redop", "root")]
        for part in filter(None, (row["out_of_place"], row["in_place"])):
            wrong = part["nwrong"]
            words += [part.get("time", part.get("cpu_time")), part["alg_bw"], part["bus_bw"]]
            words.append("N/A" if wrong is None else wrong)
        yield " ".join(map(str, words))
