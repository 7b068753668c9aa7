"""`nvidia-smi nvlink -s` and `ibstat`: which NVLinks and RDMA ports are up, and how fast."""

from __future__ import annotations

import re

from lanewise.discovery.facts import DumpFacts

NVLINKS, IBSTAT = "nvidia-smi nvlink -s", "ibstat"
_GPU = re.compile(r"^GPU (\d+): (.*?)(?: \(UUID: [^)]*\))?\s*$", re.MULTILINE)
_LINK = re.compile(r"^\s+Link (\d+): (<inactive>|[\d.]+ GB/s)", re.MULTILINE)
_NONE = re.compile(r"all links are inactive", re.IGNORECASE)
_CARD = re.compile(r"^\s*CA '([^']+)'", re.MULTILINE)
_PORT = re.compile(r"^\s*(State|Rate|Link layer): (.+?)\s*$", re.MULTILINE)


def is_nvlinks(text: str) -> bool:
    """Whether the text holds NVLinks by GPU."""
    return bool(_GPU.search(text) and (_LINK.search(text) or _NONE.search(text)))


def read_nvlinks(text: str, file: str) -> DumpFacts:
    """How many NVLinks of each GPU are up and down, and the rate of one; to whom they lead is not in it."""
    facts = DumpFacts(file, NVLINKS)
    heads = list(_GPU.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        name, line = f"GPU{head[1]}", text.count("\n", 0, head.start()) + 1
        states = [match[2] for match in _LINK.finditer(text, head.end(), end)]
        rates = [state for state in states if state != "<inactive>"]
        facts.add(name, "row", True, "GPU", line)
        facts.add(name, "name", head[2], "GPU", line)
        facts.add(name, "nvlinks", len(rates), "Link", line)
        facts.add(name, "nvlinks_off", len(states) - len(rates) or None, "Link", line)
        facts.add(name, "nvlink_rate", rates[0] if rates else None, "Link", line)
    return facts


def is_ibstat(text: str) -> bool:
    """Whether the text holds RDMA devices of ibstat."""
    return bool(_CARD.search(text) and _PORT.search(text))


def read_ibstat(text: str, file: str) -> DumpFacts:
    """State, rate and link layer of each device's first port; GUIDs are not read."""
    facts = DumpFacts(file, IBSTAT)
    heads = list(_CARD.finditer(text))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=True):
        for match in _PORT.finditer(text, head.end(), end):
            line = text.count("\n", 0, match.start(1)) + 1
            key = match[1].lower().replace(" ", "_")
            if not any(fact.about == head[1] and fact.key == key for fact in facts.facts):
                facts.add(head[1], key, f"{match[2]} Gb/s" if key == "rate" else match[2], match[1], line)
    return facts
