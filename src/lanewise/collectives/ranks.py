"""The ranks of a collective: GPUs by NVLink domain or host, and what NCCL reads of the machine to choose by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.catalog import Part
from lanewise.collectives.constants import Library, compute_capability, generation_of, library_named
from lanewise.errors import Contradiction, InputError
from lanewise.perf.flow import names_of
from lanewise.perf.known_parts import part_of
from lanewise.routes.paths import NVLINKS, shortest
from lanewise.topology.model import Kind, System
from lanewise.topology.ranges import fold

_VENDORS = {"qpi": "intel", "upi": "intel", "xgmi": "amd"}
MOST_RANKS = 1024


@dataclass(frozen=True, slots=True)
class RankSet:
    """The GPUs of a collective in the order of their ranks, by node: a host, or hosts that one NVLink domain joins.

    `capability` is the least compute capability x 10, `vendor` the CPUs' ("intel", "amd", "other").
    """

    ranks: tuple[str, ...]
    nodes: tuple[tuple[str, ...], ...]
    maker: str
    capability: int
    vendor: str

    @property
    def generation(self) -> str:
        """What learned figures are kept by: the column of NCCL's tables, or "cdna" for AMD's GPUs."""
        return "cdna" if self.maker == "AMD" else generation_of(self.capability)

    @property
    def least(self) -> int:
        """The ranks of the smallest node."""
        return min(len(node) for node in self.nodes)

    @property
    def most(self) -> int:
        """The ranks of the largest node."""
        return max(len(node) for node in self.nodes)

    @property
    def column(self) -> int:
        """The column by nodes of NCCL's tables: one, two, more."""
        return min(len(self.nodes), 3) - 1

    def library(self, version: str) -> Library:
        """The constants that choose for these GPUs."""
        return library_named("RCCL" if self.maker == "AMD" else "NCCL", "" if self.maker == "AMD" else version)


def rank_set(system: System, ranks: str | Sequence[str]) -> RankSet:
    """The GPUs that a text ('gpu[0-7]') or list names; UnknownName, Contradiction or InputError for others."""
    names = tuple(names_of(ranks) if isinstance(ranks, str) else ranks)
    gpus = system.of_kind(Kind.GPU)
    if len(gpus) < 2:
        described = f"describes one, {gpus[0]}" if gpus else "describes none"
        cause = f"a collective has 2 to {MOST_RANKS} ranks, each a GPU, and {system.name} {described}"
        raise InputError(cause, hint="describe the GPUs, or name another system (lanewise system list)")
    hint = f"name GPUs: --ranks '{','.join(fold(gpus))}'"
    for name in names:
        if system.device(name).kind is not Kind.GPU:
            raise Contradiction(f"{name} is no GPU, and a rank is", hint=hint)
    if not 2 <= len(names) <= MOST_RANKS:
        raise InputError(f"a collective has 2 to {MOST_RANKS} ranks, not {len(names)}", hint=hint)
    parts = [part_of(system, name) for name in names]
    capabilities = [
        compute_capability(part.text("nvlink.part"), part.name) if part is not None else 0 for part in parts
    ]
    for name, part in zip(names, parts, strict=True):
        _refuse_other_libraries(system, name, part)
    amd = [part is not None and part.title.startswith("AMD") for part in parts]
    if any(amd) and not all(amd):
        raise Contradiction("ranks are GPUs of two makers, which no library joins", hint="name GPUs of one maker")
    return RankSet(
        ranks=names, nodes=_nodes(system, names), maker="AMD" if all(amd) else "NVIDIA",
        capability=min(capabilities), vendor=_vendor(system, names),
    )  # fmt: skip


def _refuse_other_libraries(system: System, name: str, part: Part | None) -> None:
    """Contradiction for a card that neither NCCL nor RCCL drives: of Intel, or with links of a kind of its own."""
    if part is None or part.title.startswith(("NVIDIA", "AMD")):
        return
    links = part.text("nvlink.part")
    own = links is not None and not system.catalog.get(links).title.startswith(("NVLink", "AMD"))
    if own or part.title.startswith("Intel"):
        raise Contradiction(
            f"{name} is {part.title}, which runs neither NCCL nor RCCL, and only those are modelled",
            hint="--flows 'gpu0->gpu1' predicts what a link carries",
        )


def _nodes(system: System, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The ranks by host; hosts whose GPUs NVLink joins are one node."""
    nodes: list[list[str]] = []
    for name in names:
        node = next((node for node in nodes if _same_node(system, node[0], name)), None)
        if node is None:
            nodes.append([name])
        else:
            node.append(name)
    return tuple(map(tuple, nodes))


def _same_node(system: System, a: str, b: str) -> bool:
    return system.device(a).host == system.device(b).host or shortest(system, a, b, NVLINKS) is not None


def _vendor(system: System, names: Sequence[str]) -> str:
    hosts = {system.device(name).host for name in names}
    for cpu in system.of_kind(Kind.CPU):
        part = system.part(cpu)
        if part is not None and system.device(cpu).host in hosts:
            title = part.title
            return "amd" if title.startswith("AMD") else "intel" if title.startswith("Intel") else "other"
    return "intel"
