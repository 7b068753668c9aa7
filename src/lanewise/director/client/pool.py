"""The pool of a Redfish composition service: what it has, what it offers, and changes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lanewise.director.client.documents import (
    by_number,
    event_of,
    is_server,
    listed_block,
    listed_system,
    names,
    oem,
    offer_of,
    plain_offer,
    rate_of,
    system_body,
)
from lanewise.director.client.errors import RefusedByService
from lanewise.director.client.session import RedfishClient, RedfishResource, new_key
from lanewise.errors import InputError, unknown_name
from lanewise.pool.listing import ListedSystem, PoolListing, ServiceEvent
from lanewise.pool.model import CompositionRequest, NoOffer, Offer, PathRate
from lanewise.units import to_si

_COMPOSE = "CompositionService.Compose"
_NO_MATCH = "NoResourceMatch"
_NO_SERVICE = "the service composes nothing"


class RemotePool:
    """The pool behind a client; services other than a director of ours predict no rates."""

    def __init__(self, client: RedfishClient) -> None:
        """RefusedByService if the service has no composition service."""
        self._client = client
        place = client.root.link("CompositionService")
        if place is None:
            raise RefusedByService(_NO_SERVICE, 404, hint="name a service that has a CompositionService")
        self._service = client.get(place)
        self._predicts = client.root.body.get("Vendor") == "Lanewise"

    def listing(self, rates: bool = True) -> PoolListing:
        """Servers, blocks and composed systems, with predicted rates if requested and if the service has them."""
        blocks = sorted(self._blocks(), key=lambda block: by_number(block.name))
        servers = [block for block in blocks if is_server(block)]
        known = [block.name for block in servers]
        systems = [listed_system(one, known, self._rates(one.name) if rates else ()) for one in self._systems()]
        return PoolListing(
            str(self._client.root.body.get("Name", "")),
            tuple(map(listed_block, servers)),
            tuple(listed_block(block) for block in blocks if not is_server(block)),
            tuple(systems),
        )

    def offers(self, request: CompositionRequest) -> tuple[Offer, ...]:
        """What the service would compose, best first; nothing is changed. NoOffer if nothing fits.

        A service that is no director of ours gives one offer, without rates.
        """
        stanza = {"StanzaType": "ComposeSystem", "StanzaId": "1", "Request": self._body(request)}
        body = {"RequestFormat": "Manifest", "RequestType": "Preview", "Manifest": {"Stanzas": [stanza]}}
        answer = self._refusing(lambda: self._client.act(self._service, _COMPOSE, body)).body
        stanzas = (answer.get("Manifest") or {}).get("Stanzas") or [{}]
        system = stanzas[0].get("Response") or {}
        if forms := oem(system).get("Offers"):
            return tuple(map(offer_of, forms))
        return (plain_offer(system, [block.name for block in self._blocks() if is_server(block)]),)

    def compose(self, request: CompositionRequest) -> ListedSystem:
        """The new system, once the service says that it is composed; NoOffer if nothing fits."""
        systems, body, key = self._place("Systems"), self._body(request), new_key()
        made = self._refusing(lambda: self._client.post(systems, body, key=key))
        return self._listed(self._client.get(made.uri))

    def attach(self, system: str, block: str) -> ListedSystem:
        """The composed system after a block was added to it while it runs."""
        return self._change(system, block, "AddResourceBlock")

    def detach(self, system: str, block: str) -> ListedSystem:
        """The composed system after a block was taken from it while it runs."""
        return self._change(system, block, "RemoveResourceBlock")

    def release(self, system: str) -> None:
        """Give all blocks of a composed system back."""
        resource = self._system(system)
        self._client.delete(resource.uri, resource.etag)

    def events(self, last: str = "", ended: Callable[[], bool] = lambda: False) -> Iterator[ServiceEvent]:
        """The events of the service as they come, those after the event `last` first."""
        for name, document in self._client.events(last, ended):
            for row in document.get("Events", []):
                yield event_of(name, row)

    def _change(self, system: str, block: str, action: str) -> ListedSystem:
        resource, target = self._system(system), self._block(block)
        body: dict[str, Any] = {"ResourceBlock": {"@odata.id": target.uri}}
        body |= {"ResourceBlockETag": target.etag} if target.etag else {}
        body |= {"ComputerSystemETag": resource.etag} if resource.etag else {}
        self._refusing(lambda: self._client.act(resource, f"ComputerSystem.{action}", body, key=new_key()))
        return self._listed(self._client.get(resource.uri))

    def _body(self, request: CompositionRequest) -> Mapping[str, Any]:
        predicts = self._predicts
        if not predicts and any(need.rate is not None or need.nics for need in request.requirements):
            cause = f"the service at {self._client.address.url} predicts no rates and would not heed them"
            raise InputError(cause, hint="leave out rates, or ask a Lanewise director")
        blocks = self._blocks() if request.blocks or request.server else []
        places = {block.name: block.uri for block in blocks}
        if request.server and request.server not in places:
            raise unknown_name("server", request.server, [block.name for block in blocks if is_server(block)])
        for name in request.blocks:
            if name not in places:
                raise unknown_name("block of the service", name, places)
        return system_body(request, places, predicts)

    def _refusing(self, action: Callable[[], RedfishResource]) -> RedfishResource:
        """What an action returns; NoOffer where the service says that nothing fits."""
        try:
            return action()
        except RefusedByService as refusal:
            if _NO_MATCH not in refusal.keys:
                raise
            rate, nearest = refusal.details.get("PredictedGBps"), refusal.details.get("Nearest")
            raise NoOffer(
                refusal.cause,
                limit=str(refusal.details.get("Limit", "")),
                rate=None if rate is None else to_si(float(rate), "GB/s"),
                nearest=offer_of(nearest) if nearest else None,
                hint=refusal.hint,
            ) from None

    def _rates(self, system: str) -> tuple[PathRate, ...]:
        """The predicted rates of a composed system's paths; none if the service predicts none."""
        telemetry = self._client.root.link("TelemetryService")
        if telemetry is None or not self._predicts:
            return ()
        reports = self._client.get(telemetry).link("MetricReports")
        try:
            report = self._client.get(f"{reports}/Predicted-{system}")
        except RefusedByService:
            return ()
        return tuple(rate_of(form) for row in report.body.get("MetricValues", []) if (form := oem(row)))

    def _listed(self, resource: RedfishResource) -> ListedSystem:
        return listed_system(
            resource, [one.name for one in self._blocks() if is_server(one)], self._rates(resource.name)
        )

    def _blocks(self) -> list[RedfishResource]:
        place = self._service.link("ResourceBlocks")
        return self._client.members(place) if place else []

    def _systems(self) -> list[RedfishResource]:
        systems = self._client.members(self._place("Systems"))
        return [one for one in systems if one.body.get("SystemType") == "Composed"]

    def _system(self, name: str) -> RedfishResource:
        """A composed system as it is now, with its ETag."""
        systems = {one.name: one for one in self._systems()}
        if name not in systems:
            raise unknown_name("composed system", name, systems)
        return self._client.get(systems[name].uri)

    def _block(self, name: str) -> RedfishResource:
        """A block as it is now, with its ETag."""
        place = self._service.link("ResourceBlocks")
        known = names(self._client.get(place).body.get("Members", [])) if place else []
        if place is None or name not in known:
            raise unknown_name("block of the service", name, known)
        return self._client.get(f"{place.rstrip('/')}/{name}")

    def _place(self, collection: str) -> str:
        place = self._client.root.link(collection)
        if place is None:
            raise RefusedByService(f"the service has no {collection}", 404)
        return place
