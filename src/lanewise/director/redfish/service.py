"""What the resources of the service share: the director, its users, its events, and what was read last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanewise.director.engine import Director
from lanewise.director.records import PoolView
from lanewise.director.redfish.etags import Representation, matches, represent
from lanewise.director.redfish.inventory import Inventory
from lanewise.director.redfish.login import Login
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.resource import Call, ResourceType
from lanewise.director.redfish.roles import Principal
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.store.database import Store
from lanewise.director.store.subscriptions import AuditRecord
from lanewise.errors import LanewiseError, printable
from lanewise.perf.flow import Flow
from lanewise.pool.model import PathRate
from lanewise.pool.offers import preview
from lanewise.pool.what_if import active_flows
from lanewise.topology.model import System

if TYPE_CHECKING:
    from lanewise.director.redfish.event_hub import EventHub

_MOST_KEPT = 20_000
Draw = Callable[[System, Sequence[Flow]], str]  # a system with its flows as the text of an SVG


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """A measured rate of a device's path in B/s, and when it was measured (s since 1970)."""

    device: str
    rate: float
    time: float


class RedfishService:
    """The state behind the resources; its methods may be called from any thread."""

    def __init__(
        self,
        director: Director,
        store: Store,
        settings: ServiceSettings,
        clock: Callable[[], float] = time.time,
        draw: Draw | None = None,
    ) -> None:
        from lanewise.director.redfish.event_hub import EventHub

        self.director: Director = director
        self.store, self.settings, self.clock, self.draw = store, settings, clock, draw
        self._drawn: tuple[PoolView | None, str] = (None, "")
        self.started = clock()
        self.login: Login = Login(store, settings, clock)
        self.events: EventHub = EventHub(self)
        self._changing = threading.RLock()
        self._kept: dict[tuple[str, str], Representation] = {}
        self._stamp: tuple[PoolView | None, int, int] = (None, -1, -1)
        self._inventory: Inventory | None = None
        self._measured: dict[str, dict[str, MeasuredRate]] = {}
        self._predicting = threading.Lock()
        self._rates: dict[str, tuple[PathRate, ...]] = {}
        self._rates_view: PoolView | None = None

    @property
    def view(self) -> PoolView:
        """The pool as of the last commit."""
        return self.director.view()

    def inventory(self, view: PoolView) -> Inventory:
        """The index of a version of the pool, made once."""
        kept = self._inventory
        if kept is None or kept.view is not view:
            kept = self._inventory = Inventory(view)
        return kept

    def represent(self, kind: ResourceType, call: Call) -> Representation:
        """A resource as it is sent, kept in memory until something changes; RedfishError 404 if it is not there."""
        assert kind.read is not None
        stamp = (call.view, self.login.generation, self.events.generation)
        key = (kind.path, call.path)
        if not kind.live and _same(stamp, self._stamp) and (kept := self._kept.get(key)) is not None:
            return kept
        data = {"@odata.id": call.path, "@odata.type": kind.odata_type, **kind.read(call)}
        if kind.path.rstrip("/") == "/redfish/v1":
            data["@odata.id"] = "/redfish/v1/"
        representation = represent(data, volatile=kind.volatile)
        if not kind.live:
            self._keep(stamp, key, representation)
        return representation

    def _keep(self, stamp: tuple[PoolView, int, int], key: tuple[str, str], representation: Representation) -> None:
        if not _same(stamp, self._stamp):
            if stamp[0] is not self.view:
                return  # read before a change: worth nothing to others
            self._kept, self._stamp = {}, stamp
        if len(self._kept) < _MOST_KEPT:
            self._kept[key] = representation

    @contextmanager
    def precondition(self, kind: ResourceType, call: Call, alone: bool) -> Iterator[None]:
        """Hold until the change is made that the resource is what If-Match says; RedfishError 412 if it is not.

        Changes of the pool are not `alone`: the director compares the version that the call has read.
        """
        with self._changing if alone else _nothing():
            header = call.headers.get("if-match")
            compared = header is not None and kind.read is not None and call.method != "POST"
            if compared and not matches(header or "", self.represent(kind, call).etag):
                raise refusal(412, "Base.PreconditionFailed")
            yield

    def rates(self, view: PoolView, composition: str) -> tuple[PathRate, ...]:
        """The predicted rates of a composition's paths, kept until the pool changes; none where it cannot be said."""
        with self._predicting:
            if self._rates_view is not view:
                self._rates, self._rates_view = {}, view
            if composition not in self._rates:
                self._rates[composition] = self._predict(view, composition)
            return self._rates[composition]

    def _predict(self, view: PoolView, composition: str) -> tuple[PathRate, ...]:
        try:
            return preview(view.pool, view.pool.compositions[composition].server, (), extends=composition).rates
        except LanewiseError:
            return ()

    def measured(self, view: PoolView, composition: str) -> tuple[MeasuredRate, ...]:
        """The newest measured rate of each device of a composition that somebody reported, while it has the device."""
        record = view.compositions.get(composition)
        if record is None:
            return ()
        rates = self._measured.get(composition, {})
        blocks = record.composition.blocks
        return tuple(one for one in rates.values() if one.device in blocks and one.time >= record.created)

    def add_measured(self, view: PoolView, composition: str, rates: Mapping[str, float]) -> None:
        """Note rates of devices in B/s as measured now; they are kept until the service ends."""
        now = self.clock()
        with self._changing:
            kept = {name: rates for name, rates in self._measured.items() if name in view.compositions}
            new = {device: MeasuredRate(device, rate, now) for device, rate in rates.items()}
            self._measured = {**kept, composition: {**kept.get(composition, {}), **new}}

    def drawn(self, view: PoolView) -> str:
        """The drawing of the pool with the loads of all compositions, made once a version; RedfishError 404 if none."""
        if self.draw is None:
            raise refusal(404, "Base.ResourceMissingAtURI", "a drawing")
        kept, text = self._drawn
        if kept is not view:
            text = self.draw(view.pool.system, active_flows(view.pool))
            self._drawn = view, text
        return text

    def forget(self) -> int:
        """Remove events, ended tasks and audit records older than the settings keep them; how many rows."""
        return self.store.prune(self.clock() - self.settings.kept_seconds)

    def audit(self, who: Principal | None, address: str, method: str, path: str, status: int, text: str) -> None:
        """Note in the audit log a request that changed, or tried to change, something."""
        account = who.account if who else ""
        self.store.audit(AuditRecord(self.clock(), account, address, method, printable(path), status, text))


def _same(a: tuple[PoolView | None, int, int], b: tuple[PoolView | None, int, int]) -> bool:
    return a[0] is b[0] and a[1:] == b[1:]


@contextmanager
def _nothing() -> Iterator[None]:
    yield
