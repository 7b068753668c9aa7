"""The director's events as Redfish writes them, and who wants which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.director.records import Event, EventKind
from lanewise.director.redfish import uris
from lanewise.director.redfish.filter import Predicate
from lanewise.director.redfish.moments import moment

EVENT_TYPE = "#Event.v1_13_0.Event"
_RESOURCE, _COMPOSITION = "ResourceEvent.1.4", "Composition.1.1"
REGISTRY_PREFIXES = ("Composition", "ResourceEvent")
RESOURCE_TYPES = ("CompositionReservation", "CompositionService", "ComputerSystem", "ResourceBlock")

_KINDS: Mapping[EventKind, tuple[str, str]] = {
    EventKind.COMPOSITION_CREATED: ("ResourceAdded", f"{_RESOURCE}.ResourceCreated"),
    EventKind.COMPOSITION_CHANGED: ("ResourceUpdated", f"{_RESOURCE}.ResourceChanged"),
    EventKind.COMPOSITION_RELEASED: ("ResourceRemoved", f"{_RESOURCE}.ResourceRemoved"),
    EventKind.BLOCK_CHANGED: ("StatusChange", f"{_COMPOSITION}.ResourceBlockCompositionStateChanged"),
    EventKind.LINK_TRAINED_DOWN: ("Alert", f"{_COMPOSITION}.ResourceBlockStateChanged"),
    EventKind.RESERVATION_CREATED: ("ResourceAdded", f"{_RESOURCE}.ResourceCreated"),
    EventKind.RESERVATION_ENDED: ("ResourceRemoved", f"{_RESOURCE}.ResourceRemoved"),
    EventKind.POOL_CHANGED: ("ResourceUpdated", f"{_RESOURCE}.ResourceChanged"),
}
_PER_BLOCK = (EventKind.BLOCK_CHANGED, EventKind.LINK_TRAINED_DOWN)


@dataclass(frozen=True, slots=True)
class EventSelection:
    """Which records a subscriber wants; empty means all."""

    prefixes: tuple[str, ...] = ()
    excluded_prefixes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    excluded_messages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    below: bool = False
    predicate: Predicate | None = None

    @staticmethod
    def of_settings(settings: Mapping[str, Any]) -> EventSelection:
        """The selection that a subscription's properties describe."""
        origins = tuple(str(one["@odata.id"]) for one in settings.get("OriginResources") or ())
        return EventSelection(
            tuple(settings.get("RegistryPrefixes") or ()),
            tuple(settings.get("ExcludeRegistryPrefixes") or ()),
            tuple(settings.get("MessageIds") or ()),
            tuple(settings.get("ExcludeMessageIds") or ()),
            tuple(settings.get("ResourceTypes") or ()),
            origins,
            bool(settings.get("SubordinateResources")),
        )

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Whether the subscriber wants this record."""
        message = str(record["MessageId"])
        prefix, key = message.partition(".")[0], message.rpartition(".")[2]
        short = f"{prefix}.{key}"
        origin = record["OriginOfCondition"]["@odata.id"]
        kind = resource_type(origin)
        if self.predicate is not None:
            facts = {"RegistryPrefix": prefix, "MessageId": message, "ResourceType": kind, "OriginResource": origin}
            if not self.predicate({**facts, "EventFormatType": "Event"}):
                return False
        at = origin in self.origins or (self.below and any(origin.startswith(f"{one}/") for one in self.origins))
        return (
            (not self.prefixes or prefix in self.prefixes)
            and prefix not in self.excluded_prefixes
            and (not self.messages or message in self.messages or short in self.messages)
            and message not in self.excluded_messages
            and short not in self.excluded_messages
            and (not self.types or kind in self.types)
            and (not self.origins or at)
        )


def resource_type(origin: str) -> str:
    """The type of the resource at an address that events come from."""
    if origin.startswith(uris.BLOCKS):
        return "ResourceBlock"
    if origin.startswith(uris.RESERVATIONS):
        return "CompositionReservation"
    return "ComputerSystem" if origin.startswith(f"{uris.ROOT}/Systems/") else "CompositionService"


def event_records(event: Event) -> list[dict[str, Any]]:
    """The event records of one event of the director: one a block where blocks changed."""
    kind, message = _KINDS[event.kind]
    if event.kind in _PER_BLOCK:
        origins = [(uris.block(name), [name]) for name in event.blocks]
    elif event.reservation:
        origins = [(f"{uris.RESERVATIONS}/{event.reservation}", [])]
    elif event.composition:
        origins = [(uris.system(event.composition), [])]
    else:
        origins = [(uris.COMPOSITION, [])]
    return [
        {
            "MemberId": str(number),
            "EventType": kind,
            "EventId": f"{event.id}.{number}",
            "EventTimestamp": moment(event.time),
            "Message": event.text,
            "MessageId": message,
            "MessageArgs": arguments,
            "MessageSeverity": str(event.severity),
            "OriginOfCondition": {"@odata.id": origin},
        }
        for number, (origin, arguments) in enumerate(origins)
    ]


def event_document(identifier: str, records: list[dict[str, Any]], context: str = "") -> dict[str, Any]:
    """An Event resource with these records."""
    document: dict[str, Any] = {"@odata.type": EVENT_TYPE, "Id": identifier, "Name": "Events of the director"}
    return {**document, **({"Context": context} if context else {}), "Events": records}
