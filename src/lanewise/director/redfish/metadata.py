"""$metadata: which schema document defines each type, and our own documents for what stands under Oem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from lanewise.director.redfish.resource import ResourceType
from lanewise.director.redfish.uris import ROOT

PUBLISHED = "http://redfish.dmtf.org/schemas/v1"
OEM_NAMESPACE = "LanewiseOem"
_EDM = "http://docs.oasis-open.org/odata/ns/edm"
# Types that stand inside other resources, and what every Redfish document refers to.
_INSIDE = {
    "Resource": ("Resource.v1_0_0",),
    "RedfishExtensions": ("RedfishExtensions.v1_0_0",),
    "CollectionCapabilities": ("CollectionCapabilities", "CollectionCapabilities.v1_4_0"),
    "Manifest": ("Manifest", "Manifest.v1_1_0"),
    "Message": ("Message", "Message.v1_3_0"),
    "Event": ("Event", "Event.v1_13_0"),
}


_TEXT, _NUMBER, _COUNT, _NAMES = "Edm.String", "Edm.Decimal", "Edm.Int64", "Collection(Edm.String)"
_OWN = f"{OEM_NAMESPACE}.v1_0_0"
_RATE = {
    "Device": (_TEXT, "The device at the far end of the path."),
    "DeviceType": (_TEXT, "GPU, SSD or NIC."),
    "Path": (_NAMES, "The devices passed, in the direction of the data."),
    "PredictedGBps": (_NUMBER, "Predicted rate in GB/s with every composition active."),
    "LowGBps": (_NUMBER, "The least rate that the model allows, in GB/s."),
    "HighGBps": (_NUMBER, "The largest rate that the model allows, in GB/s."),
    "AloneGBps": (_NUMBER, "Predicted rate in GB/s with only this composition active."),
    "RequiredGBps": (_NUMBER, "The least rate that was requested, in GB/s."),
    "Limit": (_TEXT, "What holds the rate."),
    "Basis": (_TEXT, "What the prediction is based on."),
    "Sources": (_NAMES, "Where its figures are from."),
    "Doubt": (_TEXT, "What is not known about it."),
}
# Our complex types: each property with its type and what it says.
_TYPES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "PathRate": _RATE,
    "RateNote": _RATE,
    "TenantLoss": {
        "Composition": (_TEXT, "The other composition."),
        "Device": (_TEXT, "Its device that gets less."),
        "BeforeGBps": (_NUMBER, "Predicted rate before, in GB/s."),
        "AfterGBps": (_NUMBER, "Predicted rate after, in GB/s."),
        "RequiredGBps": (_NUMBER, "The least rate that its composition requested, in GB/s."),
    },
    "Offer": {
        "Server": (_TEXT, "The server."),
        "Blocks": (_NAMES, "The resource blocks."),
        "TotalGBps": (_NUMBER, "The sum of the predicted rates in GB/s."),
        "LostGBps": (_NUMBER, "What other compositions lose, in GB/s."),
        "Paths": (f"Collection({_OWN}.PathRate)", "The rate of each path."),
        "Losses": (f"Collection({_OWN}.TenantLoss)", "Who loses what."),
        "Notes": (_NAMES, "Which devices do not reach each other directly."),
        "OtherServers": (_NAMES, "Servers that would do as well."),
    },
    "PathRequirement": {
        "DeviceType": (_TEXT, "GPU, SSD or NIC."),
        "Count": (_COUNT, "How many devices."),
        "MinimumGBps": (_NUMBER, "The least rate of each in GB/s, all active at once."),
        "Model": (_TEXT, "The only catalogue part that will do."),
        "NetworkCards": (_COUNT, "Network cards that come along."),
    },
    "Note": {
        "Server": (_TEXT, "The server that has it now."),
        "Part": (_TEXT, "The catalogue part that it is."),
        "Composition": (_TEXT, "The composition that claims it."),
        "Reservation": (_TEXT, "The reservation that keeps it."),
        "State": (_TEXT, "The director's own word for its state."),
        "Notes": (_NAMES, "What is wrong with it."),
        "Paths": (f"Collection({_OWN}.PathRequirement)", "What was requested."),
        "Expires": ("Edm.DateTimeOffset", "When it ends by itself."),
        "PeerToPeer": ("Edm.Boolean", "Whether its devices may reach each other without the CPU."),
        "Offers": (f"Collection({_OWN}.Offer)", "Placements, best first."),
    },
    "MessageNote": {
        "Limit": (_TEXT, "The link or device that is too narrow."),
        "PredictedGBps": (_NUMBER, "What it would give, in GB/s."),
        "Nearest": (f"{_OWN}.Offer", "The nearest placement that can be had."),
        "Alternatives": (f"Collection({_OWN}.Offer)", "Other placements that can be had."),
        "Task": (_TEXT, "The task that failed or runs."),
        "Device": (_TEXT, "The device concerned."),
        "Holder": (_TEXT, "The composition or reservation that has it."),
        "Holders": (_TEXT, "What uses the device on its server."),
    },
    "MeasuredRate": {
        "Device": (_TEXT, "The device at the far end of the path."),
        "RateGBps": (_NUMBER, "The measured rate in GB/s."),
    },
}
_OUTER = {"RateNote", "Note", "MessageNote"}  # right under Oem, where they say their type


def reference_list(types: Iterable[ResourceType]) -> list[tuple[str, tuple[str, ...]]]:
    """The schema documents that $metadata refers to, each with the namespaces it includes."""
    table: dict[str, tuple[str, ...]] = {
        f"{PUBLISHED}/{name}_v1.xml": (name, *spaces) if name not in spaces else spaces
        for name, spaces in _INSIDE.items()
    }
    for kind in types:
        if not kind.schema:
            continue
        name, _, version = kind.schema.partition(".")
        uri = f"{ROOT}/Schemas/{name}_v1.xml" if name in oem_schemas() else f"{PUBLISHED}/{name}_v1.xml"
        table[uri] = (name, kind.schema) if version else (name,)
    # The container of the service root is in its oldest version.
    root = f"{PUBLISHED}/ServiceRoot_v1.xml"
    if root in table:
        table[root] = (*table[root], "ServiceRoot.v1_0_0")
    table.setdefault(f"{ROOT}/Schemas/{OEM_NAMESPACE}_v1.xml", (OEM_NAMESPACE, f"{OEM_NAMESPACE}.v1_0_0"))
    return sorted(table.items())


def _complex(name: str, properties: Mapping[str, tuple[str, str]]) -> str:
    """The markup of a complex type."""
    base = ' BaseType="Resource.OemObject"' if name in _OUTER else ""
    rows = "".join(
        f'<Property Name="{one}" Type="{kind}"><Annotation Term="OData.Permissions" '
        f'EnumMember="OData.Permission/Read"/><Annotation Term="OData.Description" String="{text}"/></Property>'
        for one, (kind, text) in properties.items()
    )
    return f'<ComplexType Name="{name}"{base}>{rows}</ComplexType>'


def _document(space: str, types: str, actions: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        '<edmx:Reference Uri="http://docs.oasis-open.org/odata/odata/v4.0/errata03/csd01/complete/vocabularies/'
        'Org.OData.Core.V1.xml"><edmx:Include Namespace="Org.OData.Core.V1" Alias="OData"/></edmx:Reference>'
        f'<edmx:Reference Uri="{PUBLISHED}/Resource_v1.xml"><edmx:Include Namespace="Resource"/>'
        '<edmx:Include Namespace="Resource.v1_0_0"/></edmx:Reference>'
        f'<edmx:Reference Uri="{PUBLISHED}/TelemetryService_v1.xml">'
        '<edmx:Include Namespace="TelemetryService.v1_0_0"/></edmx:Reference>'
        f'<edmx:Reference Uri="{PUBLISHED}/ResourceBlock_v1.xml">'
        '<edmx:Include Namespace="ResourceBlock.v1_0_0"/></edmx:Reference>'
        f'<edmx:DataServices><Schema xmlns="{_EDM}" Namespace="{space}">{actions}</Schema>'
        f'<Schema xmlns="{_EDM}" Namespace="{space}.v1_0_0">{types}</Schema></edmx:DataServices></edmx:Edmx>'
    )


@cache
def oem_schemas() -> dict[str, str]:
    """Our own schema documents (CSDL) by name."""
    types = "".join(_complex(name, properties) for name, properties in _TYPES.items())
    return {OEM_NAMESPACE: _document(OEM_NAMESPACE, types, _actions())}


def _actions() -> str:
    """The actions under Oem: measured rates, and a block that is observed again."""
    submit = {
        "TelemetryService": "TelemetryService.v1_0_0.OemActions",
        "ComputerSystem": "Resource.Item",
        "Rates": f"Collection({_OWN}.MeasuredRate)",
    }
    return _action("SubmitMeasuredRates", submit) + _action(
        "RepairResourceBlock", {"ResourceBlock": "ResourceBlock.v1_0_0.OemActions"}
    )


def _action(name: str, parameters: Mapping[str, str]) -> str:
    rows = "".join(f'<Parameter Name="{one}" Type="{kind}" Nullable="false"/>' for one, kind in parameters.items())
    return f'<Action Name="{name}" IsBound="true">{rows}</Action>'
