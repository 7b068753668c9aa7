"""How far a GPU is from its network card, as people state it: a class of `nvidia-smi topo -m`, or the node of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise.results.posted import GPU_TO_CARD, Statement
from lanewise.routes.classify import SYS

_OF_GPU = r"\bgpus?\b"
_OF_CARD = r"\b(?:nics?|hcas?|rdma|(?:network |the |infiniband )cards?|mlx5_\d+|efa)\b"
_GPU, _CARD = re.compile(_OF_GPU, re.IGNORECASE), re.compile(_OF_CARD, re.IGNORECASE)
_TO_CARD = re.compile(
    rf"{_OF_GPU}\W{{0,3}}(?:(?:to|and|from|vs|is|are|the|of|its|a)\W{{1,3}}){{0,4}}{_OF_CARD}\W{{0,3}}", re.IGNORECASE
)
_CLASS = re.compile(r"\W{0,3}(?:is |are |= ?)?\(?(PIX|PXB|PHB|NODE|SYS)\b")
_NODE = re.compile(r"\b(?:numa(?: ?node)?|socket)s?(?:(?!gpu ?\d)\D){0,25}?(\d{1,2})\b", re.IGNORECASE)


def gpu_to_card(unused: Sequence[Statement]) -> Statement | None:
    """The class of a GPU and its network card by words that nothing else uses; SYS for two nodes; None if unsaid."""
    nodes: dict[str, set[str]] = {"gpu": set(), "card": set()}
    sources = []
    for statement in unused:
        if named := _class_of(statement):
            return replace(statement, key=GPU_TO_CARD, value=named)
        if end := _lone_end(statement):
            nodes[end] |= set(_NODE.findall(_text(statement)))
            sources.append(statement.source)
    if all(len(each) == 1 for each in nodes.values()) and nodes["gpu"] != nodes["card"]:
        return Statement(GPU_TO_CARD, SYS, sources[-1])
    return None


def says_where(statement: Statement) -> bool:
    """Whether a statement says how far a GPU is from its card, or at which node one of both is."""
    return bool(_class_of(statement) or (_lone_end(statement) and _NODE.search(_text(statement))))


def _class_of(statement: Statement) -> str:
    """The class that a statement gives a GPU and its card; empty if none."""
    text = _text(statement)
    pair = _TO_CARD.search(text)
    named = _CLASS.match(text, pair.end()) if pair else None
    return named[1] if named else ""


def _lone_end(statement: Statement) -> str:
    """Which of both ends a statement speaks of; empty if of both or none."""
    ends = [end for end, words in (("gpu", _GPU), ("card", _CARD)) if words.search(_text(statement))]
    return ends[0] if len(ends) == 1 else ""


def _text(statement: Statement) -> str:
    return f"{statement.key}: {statement.value}"
