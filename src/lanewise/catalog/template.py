"""A part file to fill in: the least that a part of a kind needs, and what else helps, each key with its meaning."""

from __future__ import annotations

from lanewise.catalog.keys import KINDS, check_key
from lanewise.catalog.model import plain_name
from lanewise.errors import FormatError, unknown_name

_PORT = {"pcie.gen": "5", "pcie.lanes": "16"}
# Of each kind what a data sheet says, with an example of how it is written; then what is measured or rarely published.
_STATED: dict[str, dict[str, str]] = {
    "gpu": _PORT,
    "cpu": {"pcie.gen": "5", "pcie.lanes": "128", "memory.rate": "460.8 GB/s"},
    "switch": {"pcie.gen": "5", "pcie.lanes": "144"},
    "nic": {**_PORT, "net.kind": "ethernet", "net.rate": "400 Gb/s", "net.ports": "1"},
    "ssd": {"pcie.gen": "5", "pcie.lanes": "4", "read.rate": "14 GB/s", "write.rate": "10 GB/s"},
    "raid": {**_PORT, "read.rate": "28 GB/s", "write.rate": "13 GB/s"},
    "nvlink": {"nvlink.link_rate": "50 GB/s"},
    "adapter": _PORT,
}
_USEFUL: dict[str, dict[str, str]] = {
    "gpu": {
        "engine.h2d.gen5": "55.6 GB/s", "engine.d2h.gen5": "55.4 GB/s", "engine.p2p_write.gen5": "54 GB/s",
        "peer.access": "no", "nvlink.part": "nvlink4", "nvlink.links": "18",
    },
    "cpu": {
        "intersocket.kind": "xgmi", "intersocket.links": "4", "intersocket.raw": "64 GB/s",
        "cpu.host_bridges": "per-port", "peer.scope": "system", "peer.rate.gen5": "43.3 GB/s",
    },
    "switch": {
        "switch.ports": "72", "switch.cut_through": "115 ns", "switch.uplink_gen": "4", "switch.uplink_lanes": "8",
    },
    "nic": {"net.latency": "1 us"},
    "ssd": {"read.latency": "60 us", "read.iops": "2000000 1/s"},
    "raid": {},
    "nvlink": {"nvlink.practical": "44 GB/s"},
    "adapter": {"switch.cut_through": "105 ns"},
}  # fmt: skip


def part_template(kind: str, name: str = "") -> str:
    """The text of a part file with one part of that kind, to fill in; UnknownName, or FormatError for a blank name.

    It reads back as it is; what is a comment there may be stated or deleted.
    """
    if kind not in KINDS:
        raise unknown_name("kind of part", kind, KINDS)
    name = name or f"my-{kind}"
    if not plain_name(name) or set(name) & set(":#\"'{}[]\n"):
        raise FormatError(
            f"'{name}' cannot be the name of a part", hint=f"write letters, digits and -, such as my-{kind}"
        )
    stated = [_line(kind, key, value) for key, value in _STATED[kind].items()]
    useful = [f"# {_line(kind, key, value)}" for key, value in _USEFUL[kind].items()]
    lines = [
        "# Put your figures in place of these examples. Delete a line that you do not know: unknown stays unknown.",
        "parts:",
        f"  - part: {name}",
        f"    kind: {kind}",
        _title(kind, name),
        "    from:",
        "      - source: data sheet, its title and page",
        "        figures:",
        *(f"          {line}" for line in stated),
    ]
    if useful:
        lines += ["          # If you know them:", *(f"          {line}" for line in useful)]
    return "\n".join([*lines, ""])


def _title(kind: str, name: str) -> str:
    """The title, by whose first word a part gets the typical figures of its maker's other parts."""
    advice = "with the maker first: what you leave out is typical of its other parts"
    return f"    title: {name:<33} # {advice}" if kind in ("gpu", "cpu") else f"    title: {name}"


def _line(kind: str, key: str, value: str) -> str:
    return f"{f'{key}: {value}':<36} # {check_key(kind, key).meaning}"
