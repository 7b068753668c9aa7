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


def _property(name: str, kind: str, text: str) -> str:
    return (
        f'<Property Name="{name}" Type="{kind}"><Annotation Term="OData.Permissions" '
        f'EnumMember="OData.Permission/Read"/><Annotation Term="OData.Description" String="{text}"/></Property>'
    )


def _complex(name: str, *properties: str, outer: bool = False) -> str:
    """A complex type; `outer` ones stand right under Oem and say their type."""
    base = ' BaseType="Resource.OemObject"' if outer else ""
    return f'<ComplexType Name="{name}"{base}>{"".join(properties)}</ComplexType>'


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
    text, number, names = "Edm.String", "Edm.Decimal", "Collection(Edm.String)"
    rate = (
        _property("Device", text, "The device at the far end of the path."),
        _property("DeviceType", text, "GPU, SSD or NIC."),
        _property("Path", names, "The devices passed, in the direction of the data."),
        _property("PredictedGBps", number, "Predicted rate in GB/s with every composition active."),
        _property("LowGBps", number, "The least rate that the model allows, in GB/s."),
        _property("HighGBps", number, "The largest rate that the model allows, in GB/s."),
        _property("AloneGBps", number, "Predicted rate in GB/s with only this composition active."),
        _property("RequiredGBps", number, "The least rate that was asked for, in GB/s."),
        _property("Limit", text, "What holds the rate."),
        _property("Basis", text, "What the prediction is based on."),
        _property("Sources", names, "Where its figures are from."),
        _property("Doubt", text, "What is not known about it."),
    )
    path = _complex("PathRate", *rate) + _complex("RateNote", *rate, outer=True)
    loss = _complex(
        "TenantLoss",
        _property("Composition", text, "The other composition."),
        _property("Device", text, "Its device that gets less."),
        _property("BeforeGBps", number, "Predicted rate before, in GB/s."),
        _property("AfterGBps", number, "Predicted rate after, in GB/s."),
        _property("RequiredGBps", number, "The least rate that its composition asked for, in GB/s."),
    )
    offer = _complex(
        "Offer",
        _property("Server", text, "The server."),
        _property("Blocks", names, "The resource blocks."),
        _property("TotalGBps", number, "The sum of the predicted rates in GB/s."),
        _property("LostGBps", number, "What other compositions lose, in GB/s."),
        _property("Paths", f"Collection({OEM_NAMESPACE}.v1_0_0.PathRate)", "The rate of each path."),
        _property("Losses", f"Collection({OEM_NAMESPACE}.v1_0_0.TenantLoss)", "Who loses what."),
        _property("Notes", names, "Which devices do not reach each other directly."),
        _property("OtherServers", names, "Servers that would do as well."),
    )
    need = _complex(
        "PathRequirement",
        _property("DeviceType", text, "GPU, SSD or NIC."),
        _property("Count", "Edm.Int64", "How many devices."),
        _property("MinimumGBps", number, "The least rate of each in GB/s, all active at once."),
        _property("Model", text, "The only catalogue part that will do."),
        _property("NetworkCards", "Edm.Int64", "Network cards that come along."),
    )
    note = _complex(
        "Note",
        _property("Server", text, "The server that has it now."),
        _property("Composition", text, "The composition that claims it."),
        _property("Reservation", text, "The reservation that keeps it."),
        _property("State", text, "The director's own word for its state."),
        _property("Notes", names, "What is wrong with it."),
        _property("Paths", f"Collection({OEM_NAMESPACE}.v1_0_0.PathRequirement)", "What was asked for."),
        _property("Expires", "Edm.DateTimeOffset", "When it ends by itself."),
        _property("PeerToPeer", "Edm.Boolean", "Whether its devices may reach each other without the CPU."),
        _property("Driver", text, "The driver of the fabric, and where it has run."),
        _property("Offers", f"Collection({OEM_NAMESPACE}.v1_0_0.Offer)", "Placements, best first."),
        outer=True,
    )
    message = _complex(
        "MessageNote",
        _property("Limit", text, "The link or device that is too narrow."),
        _property("PredictedGBps", number, "What it would give, in GB/s."),
        _property("Nearest", f"{OEM_NAMESPACE}.v1_0_0.Offer", "The nearest placement that can be had."),
        _property("Alternatives", f"Collection({OEM_NAMESPACE}.v1_0_0.Offer)", "Other placements that can be had."),
        _property("Task", text, "The task that failed or runs."),
        _property("Device", text, "The device concerned."),
        _property("Holder", text, "The composition or reservation that has it."),
        _property("Holders", text, "What uses the device on its server."),
        outer=True,
    )
    measured = _complex(
        "MeasuredRate",
        _property("Device", text, "The device at the far end of the path."),
        _property("RateGBps", number, "The measured rate in GB/s."),
    )
    types = path + loss + offer + need + note + message + measured
    return {OEM_NAMESPACE: _document(OEM_NAMESPACE, types, _actions())}


def _actions() -> str:
    """The actions under Oem: measured rates, and a block that is observed again."""
    submit = {
        "TelemetryService": "TelemetryService.v1_0_0.OemActions",
        "ComputerSystem": "Resource.Item",
        "Rates": f"Collection({OEM_NAMESPACE}.v1_0_0.MeasuredRate)",
    }
    return _action("SubmitMeasuredRates", submit) + _action(
        "RepairResourceBlock", {"ResourceBlock": "ResourceBlock.v1_0_0.OemActions"}
    )


def _action(name: str, parameters: Mapping[str, str]) -> str:
    rows = "".join(f'<Parameter Name="{one}" Type="{kind}" Nullable="false"/>' for one, kind in parameters.items())
    return f'<Action Name="{name}" IsBound="true">{rows}</Action>'
