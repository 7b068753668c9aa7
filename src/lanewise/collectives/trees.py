"""NCCL's double binary tree between nodes: how often the data cross the busiest card (NCCL, src/graph/trees.cc)."""

from __future__ import annotations

from functools import cache


@cache
def busiest_node(nodes: int) -> float:
    """Bytes that the busiest node sends, or receives, for a byte of an all_reduce over both trees, half a byte each."""
    sent = [0.0] * nodes
    received = [0.0] * nodes
    for tree in range(2):
        for node in range(nodes):
            parent = _parent(node, nodes, tree)
            if parent is not None:
                # Half a byte up to the parent, and half a byte of the result down.
                for start, end in ((node, parent), (parent, node)):
                    sent[start] += 0.5
                    received[end] += 0.5
    return max(*sent, *received)


def _parent(node: int, nodes: int, tree: int) -> int | None:
    """The parent in one of the two trees: of the second all nodes are mirrored (even) or shifted by one (odd)."""
    if tree == 0:
        return _binary_parent(node, nodes)
    if nodes % 2 == 0:
        parent = _binary_parent(nodes - 1 - node, nodes)
        return None if parent is None else nodes - 1 - parent
    parent = _binary_parent((node - 1) % nodes, nodes)
    return None if parent is None else (parent + 1) % nodes


def _binary_parent(node: int, nodes: int) -> int | None:
    """The parent in the tree whose leaves are the odd nodes and whose root is 0."""
    bit = 1
    while bit < nodes and not bit & node:
        bit <<= 1
    if node == 0:
        return None
    up = (node ^ bit) | (bit << 1)
    return up if up < nodes else node ^ bit
