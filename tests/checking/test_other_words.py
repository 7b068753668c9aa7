"""Figures typed in with other words of the same meaning are judged alike: each rewriting over kept questions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from checking.thread_list import QuestionThread, first_causes, threads, verdict_of

from lanewise import api
from lanewise.catalog import builtin
from lanewise.checking.named.hosts import host_generation
from lanewise.errors import LanewiseError

Rows = dict[str, Any]
_MOST = 14
_RARE = ("virtual machine of each row", "the IOMMU in words")


def _gpus(change: Callable[[str], Any]) -> Callable[[Rows], Rows]:
    return lambda text: {**text, "gpus": change(text["gpus"])} if isinstance(text.get("gpus"), str) else text


def _key(key: str, change: Callable[[Any], Any]) -> Callable[[Rows], Rows]:
    def rewrite(text: Rows) -> Rows:
        return {**text, "rows": [{**row, key: change(row[key])} if key in row else row for row in text["rows"]]}

    return rewrite


def _collective(to: Callable[[str], str]) -> Callable[[Rows], Rows]:
    def rewrite(text: Rows) -> Rows:
        named = [row for row in text["rows"] if row.get("metric") == "bus_bandwidth" and row.get("path")]
        rows = [{**row, "path": to(row["path"])} if row in named else row for row in text["rows"]]
        return {**text, "rows": rows}

    return rewrite


def _by_row(key: str) -> Callable[[Rows], Rows]:
    """The name of all GPUs on each row of GPUs in place of the head of the file."""

    def rewrite(text: Rows) -> Rows:
        if not isinstance(text.get("gpus"), str):
            return text
        rows = [{key: text["gpus"], **row} if "gpu" in str(row["flows"]) else row for row in text["rows"]]
        return {**{name: value for name, value in text.items() if name != "gpus"}, "rows": rows}

    return rewrite


def _stated_by_rows(key: str) -> Callable[[Rows], Rows]:
    def rewrite(text: Rows) -> Rows:
        stated = dict(text.get("stated") or {})
        if key not in stated:
            return text
        value = stated.pop(key)
        return {**text, "stated": stated, "rows": [{**row, key: value} for row in text["rows"]]}

    return rewrite


def _host_of_gpus(name: str) -> Callable[[Rows], Rows]:
    """Another name of the host's memory in copies of GPUs, where no node of it is named."""

    def rewrite(text: Rows) -> Rows:
        flows = " ".join(str(row["flows"]) for row in text["rows"])
        if "gpu" not in flows or re.search(r"host[1-9]|host0:|cpu", flows):
            return text
        return _key("flows", lambda each: re.sub(r"\bhost0\b", name, str(each)))(text)

    return rewrite


def _stated(change: Callable[[str, Any], tuple[str, Any]]) -> Callable[[Rows], Rows]:
    """What the head of the file states, each key and value changed."""

    def rewrite(text: Rows) -> Rows:
        stated = text.get("stated")
        return {**text, "stated": dict(change(*each) for each in stated.items())} if isinstance(stated, dict) else text

    return rewrite


def _value(change: Callable[[str], str]) -> Callable[[Rows], Rows]:
    """Values that are a number and its unit, changed; others say more than that."""
    return _key("value", lambda value: change(value) if _PLAIN.fullmatch(str(value)) else value)


_PLAIN = re.compile(r"(?P<number>\d+(?:\.\d+)?) (?P<unit>[GM]B/s|[GM]b/s|us|ms)")
_CAPITALS = ("iommu", "acs", "cpu", "mtu")
_SHORT_NAMES = (
    (re.compile(r"NVIDIA GeForce RTX (\d{4})"), r"\1"), (re.compile(r"NVIDIA (A100)-SXM4-(\d+)GB"), r"\1 \2G SXM4"),
    (re.compile(r"(?:Tesla )?(V100)-SXM2-16GB"), r"\1 SXM2"), (re.compile(r"NVIDIA H100 80GB HBM3"), "HGX H100"),
    (re.compile(r"AMD Instinct (MI\d+X?)"), r"\1"), (re.compile(r"NVIDIA (H200|B200|L40S|A40)"), r"\1"),
)  # fmt: skip


def _short(name: str) -> str:
    return next((short.sub(to, name) for short, to in _SHORT_NAMES if short.fullmatch(name)), name)


def _stated_at_the_top(text: Rows) -> Rows:
    """What is stated as keys of the file, with others that say nothing."""
    rest = {key: value for key, value in text.items() if key not in ("stated", "rows")}
    return {**rest, "host": "node17", "OS": "Linux", **(text.get("stated") or {}), "rows": text["rows"]}


def _of_all_rows(stated: bool) -> Callable[[Rows], Rows]:
    """What all rows have alike at the head of the file, below `stated` or at its top."""

    def rewrite(text: Rows) -> Rows:
        first, *others = text["rows"]
        alike = (key for key in _OF_ALL if key in first and all(each.get(key) == first[key] for each in others))
        shared = {key: first[key] for key in alike}
        rows = [{key: value for key, value in row.items() if key not in shared} for row in text["rows"]]
        head = {"stated": {**shared, **(text.get("stated") or {})}} if stated else shared
        return {**text, **head, "rows": rows} if shared and others else text

    return rewrite


_OF_ALL = ("bytes", "depth", "threads", "ranks", "hosts", "host memory", "p2p", "engine")
_PEERS = {True: "enabled", False: "disabled"}
_LINK = re.compile(r"Gen(\d) x(\d+)")
_RANGE = re.compile(r"gpu\[0-(\d+)\]")
REWRITINGS: dict[str, Callable[[Rows], Rows]] = {
    "the number of GPUs": _gpus(lambda name: name if name[0].isdigit() else f"8x {name}"),
    "NVIDIA's names in small letters": _gpus(lambda name: name.lower() if "NVIDIA" in name else name),
    "a list of GPUs": _gpus(lambda name: [name] * 16),
    "gpu on each row": _by_row("gpu"),
    "AllReduce": _collective(lambda name: name.replace("all_reduce", "AllReduce").replace("all_gather", "AllGather")),
    "all-reduce": _collective(lambda name: name.replace("all_reduce", "all-reduce").replace("alltoall", "all-to-all")),
    "the library first": _collective(lambda name: f"RCCL {name}" if name in ("all_reduce", "all_gather") else name),
    "busbw": _key("metric", lambda name: name.replace("bus_bandwidth", "busbw")),
    "p2p in words": _key("p2p", lambda word: _PEERS.get(word, word)),
    "page-locked": _key("host memory", lambda kind: {"pinned": "page-locked", "pageable": "malloc"}.get(kind, kind)),
    "PCIe 4.0 x8": _key("link under load", lambda link: _LINK.sub(r"PCIe \1.0 x\2", str(link))),
    "GPU": _key("flows", lambda flows: str(flows).replace("gpu", "GPU")),
    "cuda:0": _key("flows", lambda flows: re.sub(r"\bgpu(?=\d)", "cuda:", str(flows))),
    "gpu[0..7]": _key("flows", lambda flows: _RANGE.sub(r"gpu[0..\1]", str(flows))),
    "CPU": _host_of_gpus("CPU"),
    "cpu0": _host_of_gpus("cpu0"),
    "cpu of each row": _stated_by_rows("cpu"),
    "virtual machine of each row": _stated_by_rows("virtual machine"),
    "stated at the top": _stated_at_the_top,
    "gpus below stated": lambda text: {**{key: text[key] for key in text if key != "gpus"},
                                       "stated": {"gpus": text["gpus"], **(text.get("stated") or {})}}
    if "gpus" in text else text,
    "keys of all rows at the top": _of_all_rows(stated=False),
    "keys of all rows below stated": _of_all_rows(stated=True),
    "keys in capitals": lambda text: {
        **text, "rows": [{key if key in ("NUMA node", "of") else key.capitalize(): value for key, value in row.items()}
                         for row in text["rows"]]},
    "GiB/s": _value(lambda value: _PLAIN.sub(lambda each: f"{float(each['number']) / 1.073741824:.6g} GiB/s", value)
                    if value.endswith("GB/s") else value),
    "measured": _value(lambda value: f"{value} (measured)"),
    "about": _value(lambda value: f"about {value}"),
    "up to": _value(lambda value: f"{value} (up to)"),
    "spread": _value(lambda value: _PLAIN.sub(r"\g<number> +/- 0.1 \g<unit>", value)),
    "bits in full": _value(lambda value: value.replace("Gb/s", "Gbit/s").replace("Mb/s", "Mbits/sec")),
    "of bandwidth": _value(lambda value: value.replace("/s", "ps") if "B/s" in value else value),
    "short names of GPUs": _gpus(_short),
    "stated keys in capitals": _stated(lambda key, value: (key.upper() if key in _CAPITALS else key, value)),
    "the IOMMU in words": _stated(lambda key, value: (key, "disabled" if key == "iommu" and value == "off" else value)),
}


def _judged(thread: QuestionThread, folder: Path) -> tuple[str, list[str]]:
    checkup = thread.check(folder)
    return verdict_of(checkup), first_causes(checkup)


def typed_questions() -> list[tuple[QuestionThread, Rows]]:
    """The kept questions typed in as rows that can be read, in an order that no rule follows."""
    found = []
    for thread in sorted(threads(), key=lambda each: hashlib.sha256(each.name.encode()).hexdigest()):
        if thread.rows.startswith("lanewise-rows") and not thread.system:
            try:
                text = yaml.load(thread.rows, yaml.CSafeLoader)
            except yaml.YAMLError:
                continue
            if isinstance(text.get("rows"), list):
                found.append((thread, text))
    return found


@pytest.fixture(scope="module")
def typed() -> list[tuple[QuestionThread, Rows]]:
    return typed_questions()


@pytest.mark.parametrize("name", REWRITINGS)
def test_other_words_of_the_same_meaning_are_judged_alike(
    name: str, typed: list[tuple[QuestionThread, Rows]], tmp_path: Path
) -> None:
    tried = 0
    for thread, text in typed:
        rewritten = REWRITINGS[name](text)
        if rewritten == text:
            continue
        try:
            expected = _judged(thread, tmp_path)
        except LanewiseError:
            continue
        rows = yaml.safe_dump(rewritten, sort_keys=False, allow_unicode=True)
        assert _judged(replace(thread, rows=rows), tmp_path) == expected, thread.name
        tried += 1
        if tried == _MOST:
            break
    assert tried >= _MOST or (tried and name in _RARE)


def test_gpus_that_rows_name_differently_keep_their_own_names(tmp_path: Path) -> None:
    rows = """lanewise-rows: 1
rows:
  - {flows: "host0->gpu0", value: 24.9 GB/s, gpu: NVIDIA GeForce RTX 4090}
  - {flows: "host0->gpu1", value: 1.2 GB/s, gpu: NVIDIA GeForce RTX 3090}
"""
    path = tmp_path / "rows.txt"
    path.write_text(rows, encoding="utf-8")
    verdicts = {result.row.flow: result.verdict.value for result in api.check([path], None).results}
    assert verdicts == {"host0->gpu0": "ok", "host0->gpu1": "slow"}


def test_algorithm_bandwidth_is_compared_as_bus_bandwidth(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text(
        "lanewise-rows: 1\ngpus: NVIDIA H100 80GB HBM3\nrows:\n"
        "  - {flows: 'gpu[0-7]->gpu[0-7]', path: allreduce, value: 270 GB/s, metric: algbw, ranks: 8, bytes: 8G}\n",
        encoding="utf-8",
    )
    (result,) = api.check([path], None).results
    assert (result.row.metric, result.row.scenario) == ("bus_bandwidth", "all_reduce")
    assert result.row.value == pytest.approx(270e9 * 2 * 7 / 8)


@pytest.mark.parametrize(
    ("cpu", "generation"),
    [("i9-7900X", 3), ("i7-5960X", 3), ("Ryzen 9 7950X", 5), ("7950X3D", 5), ("5950X", 4), ("i9 14900K", 5)],
)
def test_numbers_that_makers_share_are_told_apart_by_the_series(cpu: str, generation: int) -> None:
    assert host_generation(cpu, builtin()) == generation
