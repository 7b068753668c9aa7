"""Resources of composition services as our types, and requests as bodies; rates are GB/s outside, B/s inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lanewise.director.client.session import RedfishResource
from lanewise.pool.listing import ListedBlock, ListedSystem, ServiceEvent
from lanewise.pool.model import CompositionRequest, Offer, PathRate, PathRequirement, TenantLoss
from lanewise.topology.model import Kind
from lanewise.units import in_unit, to_si

_DEVICE_TYPES = {Kind.GPU: "GPU", Kind.SSD: "SSD", Kind.NIC: "NIC"}
_KINDS = {word: kind for kind, word in _DEVICE_TYPES.items()}
# Where a constrained composition asks for devices of a kind.
_CONSTRAINED = {Kind.GPU: "Processors", Kind.SSD: "Storage", Kind.NIC: "NetworkInterfaces"}
SERVER_TYPES = {"ComputerSystem", "Compute"}


def listed_block(resource: RedfishResource) -> ListedBlock:
    """A ResourceBlock."""
    body, note = resource.body, oem(resource.body)
    status = body.get("CompositionStatus", {})
    return ListedBlock(
        resource.name,
        " ".join(body.get("ResourceBlockType", [])),
        str(note.get("State") or status.get("CompositionState", "")),
        next(iter(names(body.get("Links", {}).get("ComputerSystems", []))), ""),
        str(note.get("Server") or ""),
        bool(status.get("Reserved")),
        str(body.get("Status", {}).get("Health") or ""),
        tuple(map(str, note.get("Notes", []))),
        str(note.get("Part") or ""),
    )


def is_server(resource: RedfishResource) -> bool:
    """Whether a block is a whole server, to which other blocks are given."""
    return bool(SERVER_TYPES & set(resource.body.get("ResourceBlockType", [])))


def listed_system(resource: RedfishResource, servers: Iterable[str], rates: tuple[PathRate, ...] = ()) -> ListedSystem:
    """A composed ComputerSystem; `servers` are the names of the blocks that are servers."""
    known, note = set(servers), oem(resource.body)
    blocks = names(resource.body.get("Links", {}).get("ResourceBlocks", []))
    server = next((name for name in blocks if name in known), str(note.get("Server") or ""))
    status = resource.body.get("Status", {})
    return ListedSystem(
        resource.name,
        server,
        tuple(sorted((name for name in blocks if name not in known), key=by_number)),
        str(note.get("State") or status.get("State", "")),
        str(status.get("Health") or ""),
        tuple(sorted(rates, key=lambda rate: by_number(rate.device))),
        tuple(map(str, note.get("Notes", []))),
    )


def by_number(name: str) -> list[str | int]:
    """A key that sorts gpu2 before gpu10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", name)]


def system_body(request: CompositionRequest, blocks: Mapping[str, str], predicts: bool) -> dict[str, Any]:
    """The body that asks for a new system; `blocks` are the addresses of blocks by name.

    `predicts`: the service is a director of ours, which takes least rates of paths under Oem.
    """
    named = [*([request.server] if request.server else []), *request.blocks]
    body: dict[str, Any] = {"Links": {"ResourceBlocks": [{"@odata.id": blocks[name]} for name in named]}}
    if request.name:
        body["Name"] = request.name
    if predicts:
        needs = [_need(requirement) for requirement in request.requirements]
        body["Oem"] = {"Lanewise": {"Paths": needs}}
        return body
    for requirement in request.requirements:
        wanted: dict[str, Any] = {"@Redfish.RequestedCount": requirement.count}
        wanted |= {"Model": requirement.part} if requirement.part else {}
        body.setdefault(_CONSTRAINED[requirement.kind], {"Members": []})["Members"].append(wanted)
    return body


def _need(requirement: PathRequirement) -> dict[str, Any]:
    need: dict[str, Any] = {"DeviceType": _DEVICE_TYPES[requirement.kind], "Count": requirement.count}
    if requirement.rate is not None:
        need["MinimumGBps"] = in_unit(requirement.rate, "GB/s")
    if requirement.part is not None:
        need["Model"] = requirement.part
    return need | ({"NetworkCards": requirement.nics} if requirement.nics else {})


def offer_of(form: Mapping[str, Any]) -> Offer:
    """An offer as a director of ours writes it under Oem."""
    losses = [
        TenantLoss(row["Composition"], row["Device"], _rate(row["BeforeGBps"]), _rate(row["AfterGBps"]))
        for row in form["Losses"]
    ]
    rates = tuple(map(rate_of, form["Paths"]))
    return Offer(form["Server"], tuple(form["Blocks"]), rates, tuple(losses), _rate(form["TotalGBps"]))


def plain_offer(system: Mapping[str, Any], servers: Iterable[str]) -> Offer:
    """What a service that predicts nothing would compose."""
    known = set(servers)
    blocks = names(system.get("Links", {}).get("ResourceBlocks", []))
    server = next((name for name in blocks if name in known), "")
    return Offer(server, tuple(name for name in blocks if name not in known), (), (), 0.0)


def rate_of(form: Mapping[str, Any]) -> PathRate:
    """A predicted rate as a director of ours writes it under Oem."""
    required = form.get("RequiredGBps")
    return PathRate(
        device=form["Device"],
        kind=_KINDS[form["DeviceType"]],
        path=tuple(form["Path"]),
        rate=_rate(form["PredictedGBps"]),
        low=_rate(form["LowGBps"]),
        high=_rate(form["HighGBps"]),
        alone=_rate(form["AloneGBps"]),
        limit=form["Limit"],
        basis=form["Basis"],
        sources=tuple(form["Sources"]),
        required=None if required is None else _rate(required),
        doubt=form.get("Doubt", ""),
    )


def event_of(name: str, row: Mapping[str, Any]) -> ServiceEvent:
    """One record of an Event."""
    origin = row.get("OriginOfCondition") or {}
    severity = row.get("MessageSeverity") or row.get("Severity") or ""
    text = row.get("Message") or row.get("MessageId") or ""
    time = str(row.get("EventTimestamp") or "")
    return ServiceEvent(name, time, str(severity), str(text), str(origin.get("@odata.id", "")))


def names(links: Iterable[Mapping[str, Any]]) -> list[str]:
    """The last parts of the addresses that links lead to."""
    return [str(link.get("@odata.id", "")).rstrip("/").rpartition("/")[2] for link in links]


def oem(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a director of ours says of a resource; empty for other services."""
    note = (body.get("Oem") or {}).get("Lanewise")
    return note if isinstance(note, dict) else {}


def _rate(gigabytes: float) -> float:
    return to_si(gigabytes, "GB/s")
