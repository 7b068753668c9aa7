"""Bodies that ask for a composition, and what they mean: exact blocks, counts of devices, least rates of paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from lanewise.director.redfish import uris
from lanewise.director.redfish.inventory import Inventory
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.offers import DEVICE_TYPES
from lanewise.errors import printable, shorten
from lanewise.pool.model import CompositionRequest, PathRequirement
from lanewise.topology.model import Kind
from lanewise.units import to_si

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_RESERVED = {"Capabilities"}
_MOST = 1024
Short = Annotated[str, Field(max_length=200)]
Count = Annotated[int, Field(ge=1, le=_MOST)]


class ReferenceForm(RequestForm):
    """A reference to a resource."""

    uri: Annotated[str, Field(alias="@odata.id", max_length=500)]


class PathNeed(RequestForm):
    """So many devices of a kind, each with at least a rate while everything is active."""

    DeviceType: Literal["GPU", "SSD", "NIC"]
    Count: Annotated[int, Field(ge=1, le=_MOST)] | None = None
    MinimumGBps: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, strict=False)] | None = None
    Model: Short | None = None
    NetworkCards: Annotated[int, Field(ge=0, le=64)] = 0


class LanewiseNeeds(RequestForm):
    """Oem.Lanewise of a request."""

    Paths: Annotated[list[PathNeed], Field(max_length=16)] = Field(default=[])
    Server: Short | None = None


class OemForm(RequestForm):
    """Oem of a request."""

    Lanewise: LanewiseNeeds = LanewiseNeeds()


class SystemLinksForm(RequestForm):
    """Links of a new system."""

    ResourceBlocks: Annotated[list[ReferenceForm], Field(max_length=_MOST)] = Field(default=[])


class RequestedProcessor(RequestForm):
    """So many processors."""

    count: Annotated[Count, Field(alias="@Redfish.RequestedCount")]
    overprovision: Annotated[Literal[False], Field(alias="@Redfish.AllowOverprovisioning")] = False
    ProcessorType: Literal["GPU"] = "GPU"
    Model: Short | None = None


class RequestedDevice(RequestForm):
    """So many drives or network cards."""

    count: Annotated[Count, Field(alias="@Redfish.RequestedCount")]
    overprovision: Annotated[Literal[False], Field(alias="@Redfish.AllowOverprovisioning")] = False
    Model: Short | None = None


class ProcessorsForm(RequestForm):
    """Processors of a constrained composition."""

    Members: Annotated[list[RequestedProcessor], Field(max_length=16)]


class DevicesForm(RequestForm):
    """Drives or network cards of a constrained composition."""

    Members: Annotated[list[RequestedDevice], Field(max_length=16)]


class NewSystemForm(RequestForm):
    """POST /redfish/v1/Systems, or the request of a ComposeSystem stanza."""

    Name: Short = ""
    Description: Annotated[str, Field(max_length=1000)] | None = None
    Links: SystemLinksForm = SystemLinksForm()
    Processors: ProcessorsForm | None = None
    Storage: DevicesForm | None = None
    NetworkInterfaces: DevicesForm | None = None
    zone_affinity: Annotated[Short | None, Field(alias="@Redfish.ZoneAffinity")] = None
    Oem: OemForm = OemForm()


class StanzaForm(RequestForm):
    """One stanza of a manifest."""

    StanzaType: Literal["ComposeSystem", "DecomposeSystem"]
    StanzaId: Short
    Request: Annotated[dict[str, Any], Field(max_length=64)] = Field(default={})
    OEMStanzaType: Short | None = None


class ManifestForm(RequestForm):
    """The manifest of CompositionService.Compose."""

    Description: Annotated[str, Field(max_length=1000)] | None = None
    Timestamp: Short | None = None
    Expand: Literal["None", "All", "Relevant"] = "None"
    Stanzas: Annotated[list[StanzaForm], Field(max_length=16)] = Field(default=[])


class ComposeForm(RequestForm):
    """CompositionService.Compose."""

    RequestFormat: Literal["Manifest"]
    RequestType: Literal["Preview", "PreviewReserve", "Apply"]
    Manifest: ManifestForm | None = None
    ReservationId: Short | None = None


class DecomposeForm(RequestForm):
    """The request of a DecomposeSystem stanza."""

    Links: DecomposeLinks


class DecomposeLinks(RequestForm):
    """Links of a DecomposeSystem stanza."""

    ComputerSystems: Annotated[list[ReferenceForm], Field(min_length=1, max_length=1)]


class BlockForm(RequestForm):
    """ComputerSystem.AddResourceBlock and RemoveResourceBlock."""

    ResourceBlock: ReferenceForm
    ResourceBlockETag: Short | None = None
    ComputerSystemETag: Short | None = None


def composition_request(body: NewSystemForm, inventory: Inventory) -> CompositionRequest:
    """What the body asks for; RedfishError 400 where it contradicts itself or names what is not there."""
    name = body.Name
    if name:
        plain = _NAME.fullmatch(name) and name not in _RESERVED
        if not plain or name in inventory.own:
            text = "A name has letters, digits and . _ - only, and is not that of a server."
            raise refusal(
                400, "Base.PropertyValueFormatError", shorten(printable(name)), "Name", prop="Name", text=text
            )
    named = [uris.name_below(one.uri, uris.BLOCKS, "Links/ResourceBlocks") for one in body.Links.ResourceBlocks]
    if len(set(named)) != len(named):
        raise refusal(400, "Base.PropertyValueError", "Links/ResourceBlocks", prop="Links/ResourceBlocks")
    servers = [one for one in named if one in inventory.own]
    blocks = [one for one in named if one not in inventory.own]
    for block in blocks:
        if block not in inventory.pool.blocks:
            raise refusal(
                400, "Composition.ResourceBlockNotFound", shorten(printable(block)), prop="Links/ResourceBlocks"
            )
    wanted = body.Oem.Lanewise.Server
    if wanted is not None and wanted not in inventory.own:
        raise refusal(400, "Base.PropertyValueNotInList", shorten(printable(wanted)), "Oem/Lanewise/Server")
    if wanted is not None:
        servers = [*servers, wanted] if wanted not in servers else servers
    if len(servers) > 1:
        text = f"A composed system has one server, not {len(servers)}."
        raise refusal(400, "Base.PropertyValueError", "Links/ResourceBlocks", prop="Links/ResourceBlocks", text=text)
    needs = _requirements(body, inventory, blocks)
    if not needs and not blocks:
        raise refusal(400, "Base.CreateFailedMissingReqProperties", "Links/ResourceBlocks")
    return CompositionRequest(tuple(needs), servers[0] if servers else None, tuple(blocks), name)


def _requirements(body: NewSystemForm, inventory: Inventory, blocks: Sequence[str]) -> list[PathRequirement]:
    counted: dict[Kind, tuple[int, str | None]] = {}
    for kind, part in ((Kind.GPU, body.Processors), (Kind.SSD, body.Storage), (Kind.NIC, body.NetworkInterfaces)):
        for one in part.Members if part else ():
            if kind in counted:
                raise refusal(400, "Base.PropertyValueError", "Members", text="One entry of each kind, please.")
            counted[kind] = (one.count, one.Model)
    needs: list[PathRequirement] = []
    stated: set[Kind] = set()
    for index, need in enumerate(body.Oem.Lanewise.Paths):
        kind = DEVICE_TYPES[need.DeviceType]
        place = f"Oem/Lanewise/Paths/{index}"
        given = sum(inventory.pool.blocks[name].kind is kind for name in blocks)
        count = need.Count or counted.get(kind, (0, None))[0] or given
        if not count:
            raise refusal(400, "Base.PropertyMissing", f"{place}/Count", prop=f"{place}/Count")
        if kind in counted and counted[kind][0] != count:
            raise refusal(400, "Base.PropertyValueConflict", f"{place}/Count", "@Redfish.RequestedCount", prop=place)
        model = need.Model or counted.get(kind, (0, None))[1]
        rate = None if need.MinimumGBps is None else to_si(need.MinimumGBps, "GB/s")
        needs.append(PathRequirement(kind, count, rate, _part(model, inventory, place), need.NetworkCards))
        stated.add(kind)
    for kind, (count, model) in counted.items():
        if kind not in stated:
            needs.append(PathRequirement(kind, count, None, _part(model, inventory, "Model")))
    return needs


def _part(model: str | None, inventory: Inventory, place: str) -> str | None:
    """The catalogue's name of a part, given by name, alias or title."""
    if model is None:
        return None
    catalog = inventory.system.catalog
    if model in catalog:
        return catalog.get(model).name
    by_title = [part.name for part in catalog.parts.values() if part.title == model]
    if len(by_title) == 1:
        return by_title[0]
    raise refusal(400, "Base.PropertyValueNotInList", shorten(printable(model)), f"{place}/Model", prop=place)


DecomposeForm.model_rebuild()
