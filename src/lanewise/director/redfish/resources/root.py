"""Service root, its OData documents, registries and schemas."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import quoteattr

from lanewise.director.redfish.metadata import oem_schemas, reference_list
from lanewise.director.redfish.query import MOST_LEVELS
from lanewise.director.redfish.resource import Call, Json, ResourceType, TextDocument
from lanewise.director.redfish.resources.common import collection, named
from lanewise.director.redfish.uris import MANAGER, ROOT, link

_XML = "application/xml;charset=utf-8"
REDFISH_VERSION = "1.22.0"
_REGISTRIES = {
    "Base": "1.22.1",
    "Composition": "1.1.3",
    "Fabric": "1.0.3",
    "ResourceEvent": "1.4.3",
    "TaskEvent": "1.0.5",
}
_SERVICES = {
    "Systems": "Systems",
    "Chassis": "Chassis",
    "Managers": "Managers",
    "Tasks": "TaskService",
    "SessionService": "SessionService",
    "AccountService": "AccountService",
    "EventService": "EventService",
    "Registries": "Registries",
    "JsonSchemas": "JsonSchemas",
    "Fabrics": "Fabrics",
    "CompositionService": "CompositionService",
    "TelemetryService": "TelemetryService",
}


def service_uuid(call: Call) -> str:
    """The identity of this service, the same after every start."""
    return str(uuid5(NAMESPACE_URL, f"lanewise:{call.service.settings.directory.absolute()}"))


def _root(call: Call) -> Json:
    return {
        "Id": "RootService",
        "Name": call.service.settings.name,
        "RedfishVersion": REDFISH_VERSION,
        "UUID": service_uuid(call),
        "Vendor": "Lanewise",
        "Product": f"Lanewise director {version('lanewise')}",
        "ProtocolFeaturesSupported": {
            "ExcerptQuery": False,
            "ExpandQuery": {
                "ExpandAll": True,
                "Levels": True,
                "Links": True,
                "NoLinks": True,
                "MaxLevels": MOST_LEVELS,
            },
            "FilterQuery": True,
            "FilterQueryComparisonOperations": True,
            "FilterQueryCompoundOperations": True,
            "IncludeOriginOfConditionQuery": False,
            "MultipleHTTPRequests": True,
            "OnlyMemberQuery": True,
            "SelectQuery": True,
            "TopSkipQuery": True,
            "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
        },
        **{name: link(f"{ROOT}/{folder}") for name, folder in _SERVICES.items()},
        "Links": {
            "Sessions": link(f"{ROOT}/SessionService/Sessions"),
            "ManagerProvidingService": link(MANAGER),
        },
    }


def _odata(call: Call) -> Json:
    entries = [("Service", f"{ROOT}/"), *((name, f"{ROOT}/{folder}") for name, folder in _SERVICES.items())]
    entries.append(("Sessions", f"{ROOT}/SessionService/Sessions"))
    return {
        "@odata.context": f"{ROOT}/$metadata",
        "value": [{"name": name, "kind": "Singleton", "url": url} for name, url in entries],
    }


def _registry(call: Call) -> Json:
    published = named(call, _REGISTRIES, "registry")
    name = call.names["registry"]
    return {
        "Id": name,
        "Name": f"{name} message registry",
        "Registry": f"{name}.{published.rpartition('.')[0]}",
        "Languages": ["en"],
        "Location": [
            {"Language": "en", "PublicationUri": f"https://redfish.dmtf.org/registries/{name}.{published}.json"}
        ],
    }


@cache
def _schemas() -> dict[str, ResourceType]:
    """A resource type of each schema, by the schema's name without its version."""
    from lanewise.director.redfish.routes import route_table

    kinds = {kind.schema.partition(".")[0]: kind for kind in route_table().types if kind.schema}
    return dict(sorted(kinds.items()))


def _schema(call: Call) -> Json:
    kind = named(call, _schemas(), "schema")
    name = call.names["schema"]
    if name in oem_schemas():
        location = {"Language": "en", "Uri": f"{ROOT}/Schemas/{name}_v1.xml"}
    else:
        location = {"Language": "en", "PublicationUri": f"http://redfish.dmtf.org/schemas/v1/{kind.schema}.json"}
    return {
        "Id": name,
        "Name": f"{name} schema",
        "Schema": kind.odata_type,
        "Languages": ["en"],
        "Location": [location],
    }


def _metadata(call: Call) -> TextDocument:
    from lanewise.director.redfish.routes import route_table

    parts = []
    for uri, namespaces in reference_list(route_table().types):
        includes = "".join(f"<edmx:Include Namespace={quoteattr(name)}/>" for name in namespaces)
        parts.append(f"<edmx:Reference Uri={quoteattr(uri)}>{includes}</edmx:Reference>")
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        + "".join(parts)
        + '<edmx:DataServices><Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">'
        '<EntityContainer Name="Service" Extends="ServiceRoot.v1_0_0.ServiceContainer"/>'
        "</Schema></edmx:DataServices></edmx:Edmx>"
    )
    return TextDocument(text.encode(), _XML)


def _oem_schema(call: Call) -> TextDocument:
    text = named(call, {f"{name}_v1.xml": text for name, text in oem_schemas().items()}, "file")
    return TextDocument(str(text).encode(), _XML)


def _versions(call: Call) -> TextDocument:
    return TextDocument(b'{"v1":"/redfish/v1/"}')


def _odata_document(call: Call) -> TextDocument:
    from lanewise.director.redfish.etags import json_text

    return TextDocument(json_text(_odata(call)))


TYPES = (
    ResourceType("/redfish", document=_versions, privilege=None),
    ResourceType(ROOT, "ServiceRoot.v1_20_0", _root, privilege=None),
    ResourceType(f"{ROOT}/odata", document=_odata_document, privilege=None),
    ResourceType(f"{ROOT}/$metadata", document=_metadata, privilege=None),
    ResourceType(f"{ROOT}/Schemas/{{file}}", document=_oem_schema, privilege=None),
    collection(
        f"{ROOT}/Registries",
        "MessageRegistryFileCollection",
        "Message registries",
        lambda call: [f"{ROOT}/Registries/{name}" for name in _REGISTRIES],
    ),
    ResourceType(f"{ROOT}/Registries/{{registry}}", "MessageRegistryFile.v1_1_5", _registry),
    collection(
        f"{ROOT}/JsonSchemas",
        "JsonSchemaFileCollection",
        "Schemas",
        lambda call: [f"{ROOT}/JsonSchemas/{name}" for name in _schemas()],
    ),
    ResourceType(f"{ROOT}/JsonSchemas/{{schema}}", "JsonSchemaFile.v1_1_5", _schema),
)
