"""What rows typed in say of the machine in place of the head of the file: names of GPUs, and facts that all share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise.readers.typed import values
from lanewise.readers.words.counted_gpus import gpu_name
from lanewise.readers.words.machines import NamedMachine, only_machine
from lanewise.results.posted import STATEMENTS
from lanewise.yaml_positions import YamlNode

GPU = "gpu"
# A row has a setting of that name.
_SETTINGS = ("mtu",)
# What a `device` is that is no GPU; a row of GPUs alone may say which of these lies on its way.
_OTHER_DEVICE = re.compile(
    r"connect-?x|mlx\d|bluefield|\bnics?\b|\befa\b|\be810|broadcom|mellanox|infiniband|\bhca|ssd|nvme|switch|"
    r"thunderbolt|dock|adapter|riser|retimer|^[\d:. ]+$", re.IGNORECASE,
)  # fmt: skip
_OF_A_MACHINE = re.compile(
    r"machines?|servers?|systems?|hosts?|nodes?|instance(?: type)?|cloud|vm|shape|platform|hardware",
    re.IGNORECASE,
)
# A machine of which the text counts the GPUs or network cards itself: DGX H100 with 2 NICs, 4 of 8 GPUs.
_IN_PART = re.compile(r"\b(?:nics?|hcas?|rails?|cards?|\d+ (?:out )?of (?:the )?\d+|only|half|slice)\b", re.IGNORECASE)
_HOST = re.compile(r"(?:host|cpu)\d*(?::\d+)?$")


def gpu_names(rows: Sequence[YamlNode]) -> dict[str, str]:
    """The names of GPUs by device that rows give, `gpu` for all where they give one name; none where they disagree."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if name := _gpu_of(row):
            for gpu in re.findall(r"\bgpu\d*", " ".join(_ends(row))) or [GPU]:
                found.setdefault(gpu, set()).add(name)
    every = set().union(*found.values()) if found else set()
    if len(every) == 1:
        return {GPU: every.pop()}
    return {gpu: names.pop() for gpu, names in found.items() if len(names) == 1}


def named(stated: Iterable[YamlNode], gpus: YamlNode) -> NamedMachine | None:
    """The server or cloud instance that one of the asker's own words or the name of the GPUs says, if it is known."""
    words = [node.as_written() for node in stated if node.given and _OF_A_MACHINE.fullmatch(str(node.key))]
    words += [gpus.value] if isinstance(gpus.value, str) else []
    machine = only_machine(text := " ; ".join(words))
    return replace(machine, cards="") if machine and _IN_PART.search(text) else machine


def _gpu_of(row: YamlNode) -> str:
    """The name that a row gives its GPUs by `gpu`, or by `device` where it has no other; empty if none."""
    if row[GPU].given:
        return gpu_name(row[GPU].as_written())
    device = row["device"].as_written() if row["device"].given else ""
    others = [end for end in _ends(row) if not re.match("gpu", end) and not _HOST.match(end)]
    of_gpus = any(end.startswith(GPU) for end in _ends(row)) and not others
    return gpu_name(device) if of_gpus and not _OTHER_DEVICE.search(device) else ""


def _ends(row: YamlNode) -> list[str]:
    flows = values.ends(row["flows"].as_written()) if row["flows"].given else ""
    return re.findall(r"[A-Za-z][\w:.]*", flows)


def shared_facts(rows: Sequence[YamlNode], fields: Collection[str]) -> Iterator[YamlNode]:
    """The words of STATEMENTS that are no `fields` of a row and that all rows give with one value."""
    for key in rows[0].value if rows else ():
        if key in STATEMENTS and key not in fields and key not in _SETTINGS:
            nodes = [row[key] for row in rows]
            if all(node.given for node in nodes) and len({node.as_written() for node in nodes}) == 1:
                yield nodes[0]


def with_peers(row: YamlNode, stated: YamlNode) -> YamlNode:
    """A row of GPUs with what the whole file says of peer copies (`stated: {p2p: off}`), if it says nothing itself."""
    if not stated.given or not row.is_map or row["p2p"].given or not all(end.startswith(GPU) for end in _ends(row)):
        return row
    for positions in (row.document.values, row.document.keys):
        positions[*row.path, "p2p"] = positions[stated.path]
    return replace(row, value={**row.value, "p2p": stated.value})


def without(row: YamlNode, keys: Collection[str]) -> YamlNode:
    """The row without those keys."""
    return replace(row, value={key: value for key, value in row.value.items() if key not in keys})
