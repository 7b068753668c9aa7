"""Keys of figures typed in that the form does not have: near misses of its own are refused, others are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import replace
from difflib import SequenceMatcher

from lanewise import late_re as re
from lanewise.results.posted import VARIABLE
from lanewise.yaml_positions import YamlNode

# How alike two words are of which one is the other, mistyped: one letter more, less or other of five and more.
_ALIKE = 0.75
# "Few errors are made in the first character of a word" (Yannakoudakis and Fawthrop, The rules of spelling errors,
# Information Processing & Management 19, 1983): `vcpus` is not meant for `cpu`.
_FIRST = 1
# Words that are like a key, and mean something else.
_OTHER_WORDS = ("model", "host")
# A setting by number has such a name, which is a label of Prometheus, and none that a row has already.
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TAKEN = ("machine", "flow", "scenario", "verdict", "repeat", "metric", "engine", "mode", "p2p", "path")
_MOST = 2**53
# What people and tools (fio, perftest, nccl-tests) call keys of the form, with values of which they mean it: a size of
# 70B or 16 is a model's or counts something else.
_ALSO_CALLED = {
    "bytes": (
        re.compile(r"(?:(?:message|msg|block|transfer|request|io)[ _-]?)?size|bs", re.IGNORECASE),
        re.compile(r"\d[\d.]* ?(?:[kMG]i?B?| B|bytes)|[1-9]\d{2,}", re.IGNORECASE),
    ),
    "depth": (re.compile(r"(?:io|queue)[ _-]?depth|qd", re.IGNORECASE), re.compile(r"\d+")),
    "ranks": (
        re.compile(r"n(?:um)?[ _-]?(?:ranks|procs|gpus)|world[ _-]?size|processes|np", re.IGNORECASE),
        re.compile(r"\d+"),
    ),
    "hosts": (
        re.compile(r"(?:n(?:um)?[ _-]?)?(?:nodes|machines|servers)|n(?:um)?[ _-]?hosts", re.IGNORECASE),
        re.compile(r"\d+"),
    ),
    "threads": (re.compile(r"n(?:um)?[ _-]?(?:threads|jobs)|jobs", re.IGNORECASE), re.compile(r"\d+")),
    "host memory": (
        re.compile(r"(?:host )?(?:memory|buffers?)|memory type", re.IGNORECASE),
        re.compile(r"(?:(?:un-?|not )?pinned|page(?:able|-?locked))\b.*", re.IGNORECASE),
    ),
    "NUMA node": (re.compile(r"numa(?:[ _-]?node)?", re.IGNORECASE), re.compile(r"\d+")),
    "flows": (
        re.compile(r"flow|paths?|route", re.IGNORECASE),
        re.compile(r".*(?:->|→|=>|\bto\b).*|[HD]2[HD]|(?:all )?\d+ gpus|gpu.*", re.IGNORECASE),
    ),
    "value": (
        re.compile(r"measured|result|reached|bandwidth|bw|rate|throughput|speed|latency|busbw|algbw", re.IGNORECASE),
        re.compile(r".*\d.*[A-Za-z].*"),
    ),
    "line": (
        re.compile(
            r"(?:line|link|port|network|nic|wire|fabric)(?:[ _-]?(?:rate|speed))?|speed|network|ethernet|infiniband|"
            r"interconnect",
            re.IGNORECASE,
        ),
        re.compile(
            r"(?:\d{1,2} ?[x×*] ?)?(?:\d[\d.]* ?(?:G|GbE|Gb/s|Gbps|Gbit/s|[GM]b(?:it)?s?/s(?:ec)?)|[FEHNX]DR(?:\d+)?)"
        ),
    ),
    "device": (
        re.compile(r"drive|disk|ssd|nvme|nic|hca|adapter", re.IGNORECASE),
        re.compile(r".*[A-Za-z].*"),
    ),
    "path": (
        re.compile(r"test|tool|benchmark|program|name|op(?:eration)?|collective|command|scenario", re.IGNORECASE),
        re.compile(r".*[A-Za-z].*"),
    ),
    "expected": (
        re.compile(r"expect(?:ation)?|should be|target|wanted", re.IGNORECASE),
        re.compile(r".*\d.*[A-Za-z].*"),
    ),
    "rated": (
        re.compile(
            r"rating|nominal|theor(?:y|etical)|spec(?:ification)?|data ?sheet|advertised|max(?:imum)?|peak",
            re.IGNORECASE,
        ),
        re.compile(r".*\d.*[A-Za-z].*"),
    ),
}


_PERFTEST = re.compile(r"\bib_(?:write|read|send|atomic)_bw\b|\bperftest\b", re.IGNORECASE)


def near_miss(word: str, known: Iterable[str]) -> bool:
    """Whether a word is one of the known ones, mistyped: letters swapped, or one too many, missing or another."""
    word = word.lower()
    return word not in _OTHER_WORDS and any(_mistyped(word, each.lower()) for each in known)


def _mistyped(word: str, known: str) -> bool:
    if word[:_FIRST] != known[:_FIRST]:
        return False
    words, knowns = word.split(), known.split()
    if len(words) == len(knowns) > 1:  # memory type is no memory rate
        return all(one == other or _mistyped(one, other) for one, other in zip(words, knowns, strict=True))
    return sorted(word) == sorted(known) or SequenceMatcher(None, word, known).ratio() > _ALIKE


def form_key(key: str, known: Collection[str]) -> str:
    """The known key that is written otherwise: Bytes, host_memory; itself if none."""
    plain = re.sub(r"[\s_-]+", " ", str(key)).strip().casefold()
    alike = (name for name in known if re.sub(r"[\s_-]+", " ", name).casefold() == plain)
    return key if key in known else next(alike, key)


def with_form_keys(node: YamlNode, known: Collection[str]) -> YamlNode:
    """A mapping with the `known` keys where it writes them otherwise."""
    return _renamed(node, {key: form_key(key, known) for key in node.value}) if node.is_map else node


def with_usual_keys(row: YamlNode) -> YamlNode:
    """The row with the form's names of keys that it calls otherwise: `size: 4k` is `bytes: 4k`."""
    if not row.is_map:
        return row
    keys = [key for key in row.value if not _is_of_its_run(row, key)]
    return _renamed(row, {key: usual_key(row[key], row.value) for key in keys})


def _is_of_its_run(row: YamlNode, key: str) -> bool:
    """Whether a key is the peak that perftest prints of the iterations of one run ('BW peak'), which rates nothing."""
    path = row["path"].as_written() if row["path"].given else ""
    return key.lower() in ("peak", "bw peak") and _PERFTEST.search(path) is not None


def _renamed(row: YamlNode, usual: Mapping[str, str]) -> YamlNode:
    """A mapping with other names of keys, but for those that two of its keys would have."""
    twice = [name for name in usual.values() if [*usual.values()].count(name) > 1]
    renamed = {key: name for key, name in usual.items() if name != key and name not in twice}
    for positions in (row.document.values, row.document.keys):  # where the file has them, whatever they are called
        positions |= {(*row.path, name): positions[*row.path, key] for key, name in renamed.items()}
    return replace(row, value={renamed.get(key, key): value for key, value in row.value.items()})


def usual_key(node: YamlNode, given: Collection[str]) -> str:
    """The form's name of a key that a row or file calls otherwise, unless it has that as well (`given`)."""
    key = node.key
    if not isinstance(node.value, str | int) or isinstance(node.value, bool):
        return key
    value = node.as_written().strip()
    others = ((name, *words) for name, words in _ALSO_CALLED.items() if name not in given)
    return next((name for name, also, means in others if also.fullmatch(key) and means.fullmatch(value)), key)


def with_texts(row: YamlNode, texts: Mapping[str, str], place: str) -> YamlNode:
    """The row with these texts of its keys, those that it lacks at the position of its key `place`."""
    values, keys = row.document.values, row.document.keys
    for name, text in texts.items():
        at = (*row.path, name if name in row.value else place)
        values[*row.path, name], keys[*row.path, name] = copy(values[at]), keys[at]
        values[*row.path, name].value = text
    return replace(row, value={**row.value, **texts})


def with_text(node: YamlNode, text: str) -> YamlNode:
    """A value as this text."""
    node.document.values[node.path] = copy(node.document.values[node.path])
    node.document.values[node.path].value = text
    return replace(node, value=text)


def own_keys(row: YamlNode, known: Collection[str]) -> list[str]:
    """The keys of a row that are settings of the asker's own: not of the form, and no near misses of it."""
    if not row.is_map:
        return []
    # A key without a value is the rest of a text with a comma that lacks quotes: `note: one, two words`.
    return [key for key, node in row.members().items() if key not in known and node.given and not near_miss(key, known)]


def own_settings(row: YamlNode, keys: Iterable[str]) -> tuple[dict[str, int], str]:
    """Those of them that are whole numbers, and the others as text: 'xpmem=off algorithm=tree'."""
    numbers: dict[str, int] = {}
    texts = []
    for key in keys:
        value, node = row[key].value, row[key]
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST
        if whole and _NAME.fullmatch(key) and key not in _TAKEN and not VARIABLE.fullmatch(key):
            numbers[key] = value
        else:
            texts.append(f"{key}={' '.join(node.as_written().split())}")
    return numbers, " ".join(texts)
