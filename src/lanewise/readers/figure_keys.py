"""Keys of figures typed in that the form does not have: near misses of its own are refused, others are kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

from lanewise.yaml_positions import YamlNode

# How alike two words are of which one is the other, mistyped: one letter more, less or other of five and more.
_ALIKE = 0.75
# "Few errors are made in the first character of a word" (Yannakoudakis and Fawthrop, The rules of spelling errors,
# Information Processing & Management 19, 1983): `vcpus` is not meant for `cpu`.
_FIRST = 1
# Words that are like a key, and mean something else.
_OTHER_WORDS = ("model",)
# A setting by number has such a name, which is a label of Prometheus, and none that a row has already.
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TAKEN = ("machine", "flow", "scenario", "verdict", "repeat", "metric", "engine", "mode", "p2p", "path")
_MOST = 2**53


def near_miss(word: str, known: Iterable[str]) -> bool:
    """Whether a word is one of the known ones, mistyped: letters swapped, or one too many, missing or another."""
    word = word.lower()
    return word not in _OTHER_WORDS and any(_mistyped(word, each.lower()) for each in known)


def _mistyped(word: str, known: str) -> bool:
    if word[:_FIRST] != known[:_FIRST]:
        return False
    return sorted(word) == sorted(known) or SequenceMatcher(None, word, known).ratio() > _ALIKE


def own_keys(row: YamlNode, known: Collection[str]) -> list[str]:
    """The keys of a row that are settings of the asker's own: not of the form, and no near misses of it."""
    if not row.is_map:
        return []
    return [key for key, node in row.members().items() if key not in known and node.given and not near_miss(key, known)]


def own_settings(row: YamlNode, keys: Iterable[str]) -> tuple[dict[str, int], str]:
    """Those of them that are whole numbers, and the others as text: 'xpmem=off algorithm=tree'."""
    numbers: dict[str, int] = {}
    texts = []
    for key in keys:
        value, node = row[key].value, row[key]
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST
        if whole and _NAME.fullmatch(key) and key not in _TAKEN:
            numbers[key] = value
        else:
            texts.append(f"{key}={' '.join(node.as_written().split())}")
    return numbers, " ".join(texts)
