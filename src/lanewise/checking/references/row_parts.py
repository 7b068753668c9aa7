"""What the GPU, drive and slot of a row can do where a text names them, and the references by that alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lanewise.catalog import Catalog
from lanewise.checking.cause import speed
from lanewise.checking.flow_rates import WIRE_SHARE
from lanewise.checking.named.abilities import GpuAbility, ability, link_rate, raw_rate
from lanewise.checking.named.hosts import HOST_GENERATION, host_generation
from lanewise.checking.named.links import by_named_link, tunnel_of
from lanewise.checking.references.cards import card_copy, of_card
from lanewise.checking.references.drives import SATA_WIRES, DriveAbility, drive_ability, drive_of, keeps_busy
from lanewise.checking.references.gpu_memory import measured_memory
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.meshes import collective_over_mesh, copy_over_mesh
from lanewise.checking.references.nvlink_counts import of_counted_links
from lanewise.checking.references.nvlink_domains import are_hosts_joined
from lanewise.checking.references.parts import (
    TUNNEL_RATE,
    Reference,
    any_copy,
    collective,
    host_copy,
    least_of_any_collective,
    peer_copy,
    rack_collective,
    tunnel_copy,
)
from lanewise.checking.references.siblings import flows_of
from lanewise.checking.symptom import is_bridged, is_without_bridge
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts, SlotLink, slot_link
from lanewise.topology.model import System

# How near a rate must be to that of a link.
_NEAR = 0.12
# A GPU that drives read or write at this share of its link's wires is the limit itself (MI300X 53.8 of 63 GB/s).
_FILLED = 0.8


@dataclass(frozen=True, slots=True)
class RowParts:
    """The parts of rows by what was posted of the machine, its system if one is described, and rows of GPU memory."""

    posted: PostedFacts
    catalog: Catalog
    system: System | None
    memory: Sequence[Observation]

    def gpu(self, row: Observation) -> GpuAbility | None:
        """What the GPU of a row can do: of several the least; None unless all of them are named."""
        gpus = dict.fromkeys(re.findall(r"\bgpu\d*\b", row.how.get("flows", row.flow)))
        abilities = [ability(self.posted.title(gpu), self.catalog) for gpu in gpus]
        slots = self._slots(row)
        whole = [link.whole for link in slots if link.whole]
        measured_link = slot_link(row.how.get("link under load", ""))
        whole = whole or ([measured_link.whole] if measured_link is not None and measured_link.whole else [])
        if gpus and whole and not any(abilities):
            gen, lanes = whole[0]
            return GpuAbility(f"the slot of {next(iter(gpus))}", gen, lanes)
        if not abilities or None in abilities:
            return None
        best = min((each for each in abilities if each is not None), key=lambda each: each.host_rate(True))
        hosts = list(self._host_generations()) or [HOST_GENERATION]
        gens = [best.gen, *hosts, *(link.gen for link in slots if link.gen)]
        best = replace(best, gen=min(gens), lanes=min([best.lanes, *(link.lanes for link in slots if link.lanes)]))
        return by_named_link(best, row)

    def gpu_of_all_ranks(self, row: Observation) -> GpuAbility | None:
        """What the GPUs of ranks on several hosts can do, whose flow names none, where a text gives all one name."""
        titles = {title for name, title in self.posted.devices.items() if re.fullmatch(r"gpu\d*", name)}
        return ability(titles.pop(), self.catalog) if "gpu" not in row.flow and len(titles) == 1 else None

    def drive(self, row: Observation) -> DriveAbility | None:
        """What the drive of a row can do by its model and its slot; None if neither is known."""
        return drive_ability(row, self.posted, self._slots(row), self.catalog)

    def tunnel_of_drive(self, row: Observation) -> tuple[str, str] | None:
        """The tunnel, with its source, through which a row reads an NVMe drive with enough in flight; None for others.

        What reads more than SATA carries is such a drive, whatever its name.
        """
        reads = row.path == "storage" and row.metric == "goodput" and row.flow.startswith(drive_of(row) or ">")
        nvme = (row.value or 0.0) > SATA_WIRES and row.how.get("mode") != "cached"
        return tunnel_of(row, self.posted) if reads and nvme and keeps_busy(row, TUNNEL_RATE) else None

    def older_host(self, row: Observation) -> str:
        """What to say of a copy that has the rate of all lanes at the generation before the GPU's, of an unnamed host.

        Cards of Gen5 are put into hosts of Gen4, where they are as they should be; boards with NVLinks are not.
        """
        part, value = self.gpu(row), row.value or 0.0
        lone = row.path in HOST_COPIES and row.metric == "goodput" and len(flows_of(row)) == 1
        if part is None or part.gen < HOST_GENERATION or part.all_linked or not lone:
            return ""
        if self.posted.stated("cpu") or any(link.gen for link in self._slots(row)):
            return ""
        rate = link_rate(part.gen - 1, part.lanes, row.path == "host to device")
        if not (1 - _NEAR) * rate < value < max((1 + _NEAR) * rate, WIRE_SHARE * raw_rate(part.gen - 1, part.lanes)):
            return ""
        older = speed(part.gen - 1, part.lanes)
        return f"the rate of {older}: fine if the host has no more, slow if it has; name its CPU (stated: cpu)"

    def _slots(self, row: Observation) -> list[SlotLink]:
        """What the row, else the text, states of the slot: 'gen3 x8', or one of the two."""
        if "slot" in row.how:
            link = slot_link(row.how["slot"])
            return [] if link is None else [link]
        return self.posted.slot_links()

    def _host_generations(self) -> Iterator[int]:
        """PCIe generations of the CPUs that the text names: a card is no faster than its host."""
        for statement in self.posted.stated("cpu"):
            if (gen := host_generation(statement.value, self.catalog)) is not None:
                yield gen

    def references(self, row: Observation) -> Iterator[Reference]:
        """What a copy reaches over the links of the parts that its text names."""
        part, flows = self.gpu(row), flows_of(row)
        if not flows:
            return
        tunnel = tunnel_of(row, self.posted) if row.path in HOST_COPIES else self.tunnel_of_drive(row)
        if tunnel is not None:
            yield from tunnel_copy(*tunnel)
        elif of_card(row):
            yield from card_copy(row, [link.whole for link in self._slots(row) if link.whole])
        elif part is None:
            gpu = re.search(r"\bgpu\d*\b", row.flow)
            name = gpu[0] if gpu else ""
            title, memory = self.posted.title(name), measured_memory(name, self.memory)
            yield from of_counted_links(row, self.system, self.posted) if not title else ()
            yield from any_copy(row, title, self.catalog, memory) if len(flows) == 1 else ()
        elif set(row.path.split(", ")) <= set(HOST_COPIES):
            yield from host_copy(part, flows, row)
        elif row.path == "storage" and len(flows) == 1 and (wires := part.wires_to_host) is not None:
            # More than the GPU's link carries is counted wrongly; how much less is fine, the drive says.
            limit = f"Gen{part.gen} x{part.lanes} of {part.title}"
            filled = (row.value or 0.0) >= _FILLED * wires
            yield Reference("parts", wires, _FILLED * wires, 0.0, wires, limit, part.source, own=filled)
        elif row.path.startswith("peer") and len({frozenset((flow.src, flow.dst)) for flow in flows}) == 1:
            bridged = is_bridged(row, self.posted)
            yield from list(copy_over_mesh(row, part, self.catalog)) or peer_copy(part, row, bridged=bridged)

    def bounds(self, row: Observation) -> Iterator[Reference]:
        """What is impossible for a collective within one host, and what no healthy machine of such GPUs is below."""
        part = self.gpu(row)
        flows = flows_of(row)
        # More ranks than the flows lead around are on other hosts.
        hosts = row.settings.get("hosts", 1)
        if not flows and row.path == "collective" and (whole := ability(self.posted.title("gpu"), self.catalog)):
            # Of which hosts the ranks are is not known: only what no network gives says something.
            yield from (replace(each, slow_below=0.0) for each in collective(row, whole) if whole.all_linked)
        if not flows or row.settings.get("ranks", 0) > hosts * len(flows) > 1 or row.path == "network":
            return
        if hosts == 1:
            yield from least_of_any_collective(row)
        if part is None:
            gpu = re.search(r"\bgpu\d*\b", row.flow)
            title, joined = self.posted.title(gpu[0]) if gpu else "", are_hosts_joined(row, self.posted)
            yield from rack_collective(row, title, self.catalog, joined=joined)
        elif hosts == 1 or part.all_linked:
            yield from collective(row, part, pcie_alone=is_without_bridge(self.posted))
            if hosts == 1:
                yield from collective_over_mesh(row, part, self.catalog, len(flows))
