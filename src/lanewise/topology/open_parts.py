"""Devices whose name several parts have: what the links tell of which it is, and what it was read as."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lanewise.catalog.model import OR
from lanewise.errors import LanewiseError
from lanewise.topology import speeds
from lanewise.topology.expand_links import ends_of
from lanewise.topology.model import Device, Kind
from lanewise.topology.words import MEDIA, WORDS

if TYPE_CHECKING:
    from lanewise.catalog import Part
    from lanewise.topology.form import LinkForm, SystemForm
    from lanewise.topology.scope import Scope

_AS_PRINTED = 1.03  # makers round the data rate of a port by up to 3 %
_OF_TWO = "one of its two GPUs"  # in the title of a superchip with two GPUs at a Grace
_IN_A_SLOT = re.compile(r"\b(?:PCIe|NVL)\b")  # in the title of a card, which has bridges and no NVSwitches
# The Grace of a module, whose memory is soldered (NVIDIA: data sheets of GH200, GB200 NVL72, DGX Station).
_GRACE = {
    "gh200": "grace", "gh200-480gb": "grace-480gb", "gb200": "grace-480gb", "gb300": "grace-480gb",
    "gb300-desktop": "grace-496gb",
}  # fmt: skip


@dataclass(slots=True)
class _DeviceLinks:
    """What the links of a device say of its part: how they are stated, and the kinds of their far ends."""

    gen: int = 0
    lanes: int = 0
    rate: float = 0.0  # B/s
    nvlinks: Counter[Kind] = field(default_factory=Counter)
    at_its_cpu: int = 0  # GPUs that NVLink-C2C joins to the same CPU
    gpus: set[str] = field(default_factory=set)  # of a CPU, those that NVLink-C2C joins to it

    def allows(self, part: Part) -> bool:
        """Whether a part can have these links."""
        links = part.figure("c2c.links" if self.nvlinks[Kind.CPU] else "nvlink.links") if part.kind == "gpu" else None
        return (
            self.gen <= (part.number("pcie.gen") or self.gen)
            and self.lanes <= (part.number("pcie.lanes") or self.lanes)
            and (not self.nvlinks or links is None or links.known)
            and (not self.nvlinks[Kind.NVSWITCH] or not _IN_A_SLOT.search(part.title))
            and (not self.at_its_cpu or (_OF_TWO in part.title) == (self.at_its_cpu > 1))
            and (part.kind != "nic" or not self.rate or self._has_port(part))
        )

    def _has_port(self, part: Part) -> bool:
        rate = part.number("net.rate")
        return rate is None or rate / _AS_PRINTED <= self.rate <= rate * _AS_PRINTED


def settle_open_parts(
    form: SystemForm, devices: Mapping[str, Device], scope: Scope
) -> tuple[dict[str, Device], tuple[str, ...]]:
    """The devices with the part that their links allow where a name fits several, and a sentence on each such name."""
    links_of = (
        _links_by_device(form, devices, scope) if any(OR in (device.part or "") for device in devices.values()) else {}
    )
    settled, names = dict(devices), defaultdict(list)
    # CPUs last: which Grace it is, the GPU of its module says.
    for pattern, stated in sorted(_stated(form, scope), key=lambda entry: form.devices[entry[0]].cpu is not None):
        for name in scope.names(pattern):
            device = devices[name]
            if OR in (device.part or ""):
                could = (device.part or "").split(OR)
                allowed = _allowed(could, links_of[name], settled, scope)
                # Of CPUs of two makers little is alike: what stands for one that nobody named spans both.
                one_maker = (
                    device.kind is not Kind.CPU or len({_maker(scope.catalog.get(part)) for part in allowed}) == 1
                )
                settled[name] = replace(device, part=OR.join(allowed) if one_maker else None)
                names[stated, tuple(could), tuple(allowed)].append(name)
    return settled, tuple(_sentence(*key, where) for key, where in names.items())


def _allowed(could: list[str], links: _DeviceLinks, devices: Mapping[str, Device], scope: Scope) -> list[str]:
    graces = {_GRACE.get(part, "") for gpu in links.gpus for part in (devices[gpu].part or "").split(OR)}
    fitting = [part for part in could if links.allows(scope.catalog.get(part))] or could
    return [part for part in fitting if part in graces] or fitting


def _maker(part: Part) -> str:
    return part.title.partition(" ")[0]


def _stated(form: SystemForm, scope: Scope) -> Iterator[tuple[str, str]]:
    """Each entry of devices, and its part as written."""
    for pattern, entry in form.devices.items():
        words = [word for word in WORDS if getattr(entry, word) is not None]
        if words and scope.included(entry.when):
            yield pattern, scope.text(getattr(entry, words[0]))


def _sentence(stated: str, could: tuple[str, ...], allowed: tuple[str, ...], names: list[str]) -> str:
    where = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    if len(allowed) == 1:
        return f"{where}: '{stated}' is taken as {allowed[0]}, whose links these are; {', '.join(could)} have the name"
    name = "" if OR in stated else f"'{stated}' "
    return f"{where}: {name}may be {', '.join(allowed[:-1])} or {allowed[-1]}; rates span them, name one if you know it"


def _links_by_device(form: SystemForm, devices: Mapping[str, Device], scope: Scope) -> dict[str, _DeviceLinks]:
    links_of: dict[str, _DeviceLinks] = defaultdict(_DeviceLinks)
    for index, entry in enumerate(form.links):
        try:
            ends = ends_of(entry, index, scope) if scope.included(entry.when) else []
            for one, other in [*ends, *((b, a) for a, b in ends)]:
                if one in devices and other in devices:
                    _note(links_of[one], entry, devices[other].kind, scope)
                    if entry.nvlink is not None and devices[other].kind is Kind.CPU:
                        links_of[other].gpus.add(one)
        except LanewiseError:  # it is reported where links are read
            continue
    for gpus in [each.gpus for each in links_of.values()]:
        for gpu in gpus:
            links_of[gpu].at_its_cpu = len(gpus)
    return links_of


def _note(links: _DeviceLinks, entry: LinkForm, far: Kind, scope: Scope) -> None:
    stated = next((scope.text(str(value)) for word in MEDIA if (value := getattr(entry, word)) is not None), "")
    if entry.nvlink is not None:
        links.nvlinks[far] += 1
    elif entry.pcie is not None:
        speed = speeds.read_pcie(stated)
        links.gen, links.lanes = max(links.gen, speed.gen or 0), max(links.lanes, speed.lanes or 0)
    elif entry.network is not None and stated.strip().lower() not in (speeds.AUTO, speeds.UNKNOWN):
        links.rate = max(links.rate, speeds.read_network(stated))
