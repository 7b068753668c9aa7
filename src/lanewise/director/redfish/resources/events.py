"""The event service: subscriptions and the stream."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from lanewise.director.redfish.composition_forms import ReferenceForm
from lanewise.director.redfish.event_records import REGISTRY_PREFIXES, RESOURCE_TYPES
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.push_targets import parse_target, resolve
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import changed, collection, status
from lanewise.director.redfish.roles import Privilege
from lanewise.director.redfish.uris import ROOT, link, not_there
from lanewise.director.store.subscriptions import SubscriptionRecord

_SERVICE = f"{ROOT}/EventService"
_SUBSCRIPTIONS = f"{_SERVICE}/Subscriptions"
Short = Annotated[str, Field(max_length=200)]
ShortList = Annotated[list[Short], Field(max_length=32)]
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_RESERVED = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
Policy = Literal["TerminateAfterRetries", "SuspendRetries", "RetryForever"]


class SubscriptionForm(RequestForm):
    """A new push subscription."""

    Destination: Annotated[str, Field(max_length=1000)]
    Protocol: Literal["Redfish"]
    Context: Short | None = None
    SubscriptionType: Literal["RedfishEvent"] = "RedfishEvent"
    EventFormatType: Literal["Event"] = "Event"
    DeliveryRetryPolicy: Policy = "RetryForever"
    RegistryPrefixes: ShortList = Field(default=[])
    ExcludeRegistryPrefixes: ShortList = Field(default=[])
    MessageIds: ShortList = Field(default=[])
    ExcludeMessageIds: ShortList = Field(default=[])
    ResourceTypes: ShortList = Field(default=[])
    OriginResources: Annotated[list[ReferenceForm], Field(max_length=32)] = Field(default=[])
    SubordinateResources: bool = False
    VerifyCertificate: bool = True
    HttpHeaders: Annotated[list[dict[Short, Short]], Field(max_length=16)] = Field(default=[])

    @field_validator("HttpHeaders")
    @classmethod
    def _plain_headers(cls, value: list[dict[str, str]]) -> list[dict[str, str]]:
        for name, text in ((name, text) for one in value for name, text in one.items()):
            if not _HEADER.fullmatch(name) or name.lower() in _RESERVED or not text.isprintable() or not text.isascii():
                raise ValueError(
                    "a header has a plain name that the service does not set itself, and one line of ASCII"
                )
        return value


class SubscriptionPatch(RequestForm):
    """What may be changed of a subscription."""

    Context: Short | None = None
    DeliveryRetryPolicy: Policy | None = None
    VerifyCertificate: bool | None = None


class ResumeForm(RequestForm):
    """EventDestination.ResumeSubscription."""


def _event_service(call: Call) -> Json:
    return {
        "Id": "EventService",
        "Name": "Events",
        "Status": status(),
        "ServiceEnabled": True,
        "DeliveryRetryAttempts": call.service.settings.push_attempts,
        "DeliveryRetryIntervalSeconds": max(1, round(call.service.settings.push_retry_seconds)),
        "EventFormatTypes": ["Event"],
        "RegistryPrefixes": list(REGISTRY_PREFIXES),
        "ResourceTypes": list(RESOURCE_TYPES),
        "SubordinateResourcesSupported": True,
        "ExcludeMessageId": True,
        "ExcludeRegistryPrefix": True,
        "IncludeOriginOfConditionSupported": False,
        "ServerSentEventUri": f"{_SERVICE}/SSE",
        "SSEFilterPropertiesSupported": {
            "EventFormatType": True,
            "MessageId": True,
            "MetricReportDefinition": False,
            "OriginResource": True,
            "RegistryPrefix": True,
            "ResourceType": True,
            "SubordinateResources": False,
        },
        "Subscriptions": link(_SUBSCRIPTIONS),
    }


def _members(call: Call) -> list[str]:
    hub = call.service.events
    return [f"{_SUBSCRIPTIONS}/{name}" for name in (*hub.subscriptions(), *hub.streams)]


def _subscription(call: Call) -> Json:
    hub, name = call.service.events, call.names["subscription"]
    stream = hub.streams.get(name)
    if stream is not None:
        return {
            "Id": name,
            "Name": f"Stream to {stream.address}",
            "Protocol": "Redfish",
            "SubscriptionType": "SSE",
            "EventFormatType": "Event",
            "Context": None,
            "Status": status(),
        }
    record = hub.subscriptions().get(name)
    if record is None:
        raise not_there(call.path)
    kept: dict[str, Any] = dict(record.settings)
    # Headers may hold secrets of the receiver: never shown again.
    kept.pop("HttpHeaders", None)
    target = f"{_SUBSCRIPTIONS}/{name}/Actions/EventDestination.ResumeSubscription"
    return {
        "Id": name,
        "Name": f"Subscription {name}",
        "Destination": record.destination,
        "Protocol": "Redfish",
        "Context": None,
        **kept,
        "HttpHeaders": [],
        "Status": status(state="Disabled" if hub.suspended(name) else "Enabled"),
        "Actions": {"#EventDestination.ResumeSubscription": {"target": target}},
    }


def _known(prop: str, values: list[str], known: tuple[str, ...]) -> None:
    for value in values:
        if value not in known:
            raise refusal(400, "Base.PropertyValueNotInList", value, prop, prop=prop)


def _subscribe(call: Call) -> Reply:
    body: SubscriptionForm = call.body
    target = parse_target(body.Destination)
    resolve(target, call.service.settings.push_networks)
    _known("RegistryPrefixes", body.RegistryPrefixes, REGISTRY_PREFIXES)
    _known("ResourceTypes", body.ResourceTypes, RESOURCE_TYPES)
    settings = body.model_dump(by_alias=True, exclude={"Destination", "Protocol"})
    record = call.service.events.add(call.user.account, body.Destination, settings)
    from dataclasses import replace

    uri = f"{_SUBSCRIPTIONS}/{record.name}"
    representation = call.service.represent(SUBSCRIPTION, replace(call, path=uri, names={"subscription": record.name}))
    return Reply(201, representation.data, {"Location": uri, "ETag": representation.etag})


def _own_subscription(call: Call) -> SubscriptionRecord:
    """The subscription, if the caller may change it: its own, or anyone's for who configures the manager."""
    record = call.service.events.subscriptions().get(call.names["subscription"])
    if record is None:
        raise not_there(call.path)
    if record.account != call.user.account and not call.user.may(Privilege.MANAGER):
        raise refusal(403, "Base.InsufficientPrivilege")
    return record


def _change(call: Call) -> Reply:
    record, body = _own_subscription(call), call.body
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    if not sent:
        raise refusal(400, "Base.EmptyJSON")
    missing = [name for name, value in sent.items() if value is None and name != "Context"]
    if missing:
        raise refusal(400, "Base.PropertyValueTypeError", "null", missing[0], prop=missing[0])
    call.service.events.change(record, {**record.settings, **sent})
    return changed(call, SUBSCRIPTION)


def _remove(call: Call) -> Reply:
    name = call.names["subscription"]
    stream = call.service.events.streams.get(name)
    if stream is None:
        _own_subscription(call)
    elif stream.account != call.user.account and not call.user.may(Privilege.MANAGER):
        raise refusal(403, "Base.InsufficientPrivilege")
    call.service.events.remove(name)
    return Reply(204)


def _resume(call: Call) -> Reply:
    record = _own_subscription(call)
    call.service.events.change(record, dict(record.settings))
    return Reply(204)


SUBSCRIPTION = ResourceType(
    f"{_SUBSCRIPTIONS}/{{subscription}}",
    "EventDestination.v1_16_0",
    _subscription,
    live=True,
    writes={
        "PATCH": WriteMethod(_change, SubscriptionPatch, Privilege.SELF),
        "DELETE": WriteMethod(_remove, privilege=Privilege.SELF),
    },
)
TYPES = (
    ResourceType(_SERVICE, "EventService.v1_12_0", _event_service),
    ResourceType(f"{_SERVICE}/SSE", stream=True),
    collection(
        _SUBSCRIPTIONS,
        "EventDestinationCollection",
        "Subscriptions",
        _members,
        live=True,
        writes={"POST": WriteMethod(_subscribe, SubscriptionForm, alone=False)},
    ),
    SUBSCRIPTION,
    ResourceType(
        f"{_SUBSCRIPTIONS}/{{subscription}}/Actions/EventDestination.ResumeSubscription",
        writes={"POST": WriteMethod(_resume, ResumeForm, Privilege.SELF, "EventDestination.ResumeSubscription")},
    ),
)
