"""The composition service: Compose (Preview, PreviewReserve, Apply) and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise.director.redfish import uris
from lanewise.director.redfish.composition_forms import (
    ComposeForm,
    DecomposeForm,
    ManifestForm,
    NewSystemForm,
    StanzaForm,
    composition_request,
)
from lanewise.director.redfish.json_body import checked
from lanewise.director.redfish.messages import RedfishError, RedfishMessage, refusal
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.offers import offer_json, requirement_json
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import collection, idempotency_key, status
from lanewise.director.redfish.resources.devices import NOTE_TYPE
from lanewise.director.redfish.resources.systems import composed_reply
from lanewise.director.redfish.resources.tasks import task_reply
from lanewise.director.redfish.roles import Privilege
from lanewise.director.redfish.translation import translated
from lanewise.director.redfish.uris import COMPOSITION, RESERVATIONS, ROOT, link, links, not_there
from lanewise.errors import LanewiseError
from lanewise.pool.model import CompositionRequest, Offer, Reservation, ReservationState
from lanewise.pool.offers import preview

_COMPOSE = "CompositionService.Compose"
_MOST_OFFERS = 5
MANIFEST_TYPE = "#Manifest.v1_1_0.Manifest"


def _service(call: Call) -> Json:
    target = f"{COMPOSITION}/Actions/{_COMPOSE}"
    return {
        "Id": "CompositionService",
        "Name": "Composition",
        "Status": status(),
        "ServiceEnabled": True,
        "AllowOverprovisioning": False,
        "AllowZoneAffinity": True,
        "ReservationDuration": f"PT{call.service.settings.reservation_seconds}S",
        "ResourceBlocks": link(uris.BLOCKS),
        "ResourceZones": link(uris.ZONES),
        "ActivePool": link(f"{COMPOSITION}/ActivePool"),
        "FreePool": link(f"{COMPOSITION}/FreePool"),
        "CompositionReservations": link(RESERVATIONS),
        "Actions": {
            f"#{_COMPOSE}": {
                "target": target,
                "RequestFormat@Redfish.AllowableValues": ["Manifest"],
                "RequestType@Redfish.AllowableValues": ["Preview", "PreviewReserve", "Apply"],
            }
        },
    }


# --- Compose ---


def _compose(call: Call) -> Reply:
    body: ComposeForm = call.body
    if body.RequestType == "Apply" and body.ReservationId is not None:
        if body.Manifest is not None and body.Manifest.Stanzas:
            raise refusal(400, "Base.ActionParameterValueError", "Manifest", _COMPOSE)
        return _apply(call, body.ReservationId)
    if body.ReservationId is not None:
        raise refusal(400, "Base.ActionParameterValueError", "ReservationId", _COMPOSE)
    if body.Manifest is None:
        raise refusal(400, "Base.ActionParameterMissing", _COMPOSE, "Manifest")
    stanzas = body.Manifest.Stanzas
    if not stanzas:
        raise refusal(400, "Composition.EmptyManifest")
    if len(stanzas) > 1:
        text = "A manifest has one stanza: several could not be done all or not at all."
        raise refusal(400, "Base.ActionParameterValueError", "Manifest", _COMPOSE, text=text)
    stanza = stanzas[0]
    try:
        if stanza.StanzaType == "DecomposeSystem":
            return _decompose(call, stanza)
        request = composition_request(checked(NewSystemForm, stanza.Request), call.inventory)
        return _STANZAS[body.RequestType](call, body.Manifest, stanza, request)
    except Exception as error:
        answer = translated(error)
        if answer is None:
            raise
        key = ("Composition.UnableToProcessStanzaRequest", (stanza.StanzaId, stanza.StanzaType))
        raise RedfishError(answer.status, *answer.messages, RedfishMessage(*key), headers=answer.headers) from error


def _answer(body: ManifestForm, kind: str, stanza: StanzaForm, response: Json, **extra: Any) -> Reply:
    manifest = {
        **({"Description": body.Description} if body.Description else {}),
        "Expand": body.Expand,
        "Stanzas": [
            {
                "StanzaType": stanza.StanzaType,
                "StanzaId": stanza.StanzaId,
                "Request": stanza.Request,
                "Response": response,
            }
        ],
    }
    return Reply(200, {"RequestFormat": "Manifest", "RequestType": kind, "Manifest": manifest, **extra})


def _offers(call: Call, request: CompositionRequest) -> tuple[Offer, ...]:
    director = call.service.director
    if request.blocks and request.server is not None:
        return (director.preview(request.server, request.blocks, request.requirements),)
    return director.offers(request, _MOST_OFFERS)


def _offered_system(server: str, blocks: Sequence[str], offers: Sequence[Offer]) -> Json:
    return {
        "SystemType": "Composed",
        "Links": {"ResourceBlocks": links([uris.block(name) for name in (server, *blocks)])},
        "Oem": {"Lanewise": {"@odata.type": NOTE_TYPE, "Offers": [offer_json(offer) for offer in offers]}},
    }


def _preview(call: Call, body: ManifestForm, stanza: StanzaForm, request: CompositionRequest) -> Reply:
    offers = _offers(call, request)
    return _answer(body, "Preview", stanza, _offered_system(offers[0].server, offers[0].blocks, offers))


def _reserve(call: Call, body: ManifestForm, stanza: StanzaForm, request: CompositionRequest) -> Reply:
    seconds = float(call.service.settings.reservation_seconds)
    key, client = idempotency_key(call), call.user.account
    kept = call.service.director.reserve(request, seconds, key=key, client=client)
    try:  # as it was predicted before these blocks were taken
        offers: tuple[Offer, ...] = (preview(call.view.pool, kept.server, kept.blocks, kept.requirements),)
    except LanewiseError:
        offers = ()
    response = _offered_system(kept.server, kept.blocks, offers)
    reply = _answer(body, "PreviewReserve", stanza, response, ReservationId=kept.name)
    return Reply(reply.status, reply.body, {"Location": f"{RESERVATIONS}/{kept.name}"})


def _make(call: Call, body: ManifestForm, stanza: StanzaForm, request: CompositionRequest) -> Reply:
    director = call.service.director
    task = director.compose(request, key=idempotency_key(call), client=call.user.account, wait=False)

    def finished() -> Reply:
        composed = composed_reply(call, task.composition, 201)
        reply = _answer(body, "Apply", stanza, composed.body or {})
        return Reply(200, reply.body, {"Location": composed.headers["Location"]})

    return task_reply(call, task, finished)


_STANZAS = {"Preview": _preview, "PreviewReserve": _reserve, "Apply": _make}


def _apply(call: Call, name: str) -> Reply:
    reservation = call.inventory.pool.reservations.get(name)
    if reservation is None:
        raise refusal(404, "Base.ResourceNotFound", "CompositionReservation", name[:80])
    _may_use(call, reservation)
    director = call.service.director
    task = director.apply(name, key=idempotency_key(call), client=call.user.account, wait=False)

    def finished() -> Reply:
        composed = composed_reply(call, task.composition, 201)
        stanza = StanzaForm(StanzaType="ComposeSystem", StanzaId="1", Request={})
        reply = _answer(ManifestForm(), "Apply", stanza, composed.body or {}, ReservationId=name)
        return Reply(200, reply.body, {"Location": composed.headers["Location"]})

    return task_reply(call, task, finished)


def _decompose(call: Call, stanza: StanzaForm) -> Reply:
    body: ComposeForm = call.body
    form = checked(DecomposeForm, stanza.Request)
    name = uris.name_below(form.Links.ComputerSystems[0].uri, f"{ROOT}/Systems", "Links/ComputerSystems")
    composition = call.inventory.composed.get(name)
    if composition is None:
        raise refusal(400, "Base.ResourceNotFound", "composed system", name)
    manifest = body.Manifest or ManifestForm()
    freed: Json = {"Links": {"ResourceBlocks": links([uris.block(one) for one in composition.blocks])}}
    if body.RequestType == "Preview":
        return _answer(manifest, "Preview", stanza, freed)
    if body.RequestType == "PreviewReserve":
        raise refusal(400, "Base.ActionParameterValueError", "RequestType", _COMPOSE)
    task = call.service.director.release(name, key=idempotency_key(call), client=call.user.account, wait=False)
    return task_reply(call, task, lambda: _answer(manifest, "Apply", stanza, freed))


# --- reservations ---


def _active(call: Call) -> dict[str, Reservation]:
    now = call.service.clock()
    table = call.inventory.pool.reservations
    return {name: one for name, one in table.items() if one.state is ReservationState.ACTIVE and one.expires > now}


def _may_use(call: Call, reservation: Reservation) -> None:
    if reservation.client != call.user.account and not call.user.may(Privilege.MANAGER):
        raise refusal(403, "Base.InsufficientPrivilege")


def _find(call: Call) -> Reservation:
    reservation = _active(call).get(call.names["reservation"])
    if reservation is None:
        raise not_there(call.path)
    return reservation


def _reservation(call: Call) -> Json:
    one = _find(call)
    begun = one.expires - call.service.settings.reservation_seconds
    return {
        "Id": one.name,
        "Name": f"Reservation {one.name}",
        "Client": one.client,
        "ReservationTime": moment(begun),
        "ReservedResourceBlocks": links([uris.block(name) for name in (one.server, *one.blocks)]),
        "Oem": {
            "Lanewise": {
                "@odata.type": NOTE_TYPE,
                "Server": one.server,
                "Expires": moment(one.expires),
                "State": str(one.state),
                "Paths": [requirement_json(need) for need in one.requirements],
            }
        },
    }


def _cancel(call: Call) -> Reply:
    one = _find(call)
    _may_use(call, one)
    call.service.director.cancel(one.name)
    return Reply(204)


TYPES = (
    ResourceType(COMPOSITION, "CompositionService.v1_2_3", _service),
    ResourceType(
        f"{COMPOSITION}/Actions/{_COMPOSE}",
        writes={"POST": WriteMethod(_compose, ComposeForm, action=_COMPOSE, alone=False)},
    ),
    collection(
        RESERVATIONS,
        "CompositionReservationCollection",
        "Reservations",
        lambda call: [f"{RESERVATIONS}/{name}" for name in _active(call)],
        live=True,
    ),
    ResourceType(
        f"{RESERVATIONS}/{{reservation}}",
        "CompositionReservation.v1_0_2",
        _reservation,
        live=True,
        writes={"DELETE": WriteMethod(_cancel, alone=False)},
    ),
)
