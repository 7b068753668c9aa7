"""Errors of the director and the pool as Redfish answers."""

from __future__ import annotations

from lanewise.director.drivers.base import Busy, DriverError
from lanewise.director.errors import (
    BlockInUse,
    DeviceInUse,
    Expired,
    KeyReused,
    NoSpace,
    OperationRunning,
    Refused,
    StaleVersion,
)
from lanewise.director.redfish import uris
from lanewise.director.redfish.messages import RedfishError, RedfishMessage
from lanewise.director.redfish.offers import offer_json
from lanewise.errors import Contradiction, InputError, LanewiseError, UnknownName, Unreachable
from lanewise.pool.model import NoOffer
from lanewise.units import in_unit


def translated(error: Exception) -> RedfishError | None:
    """The answer for an error of the director, the pool or a driver; None for a fault of the program."""
    if isinstance(error, RedfishError):
        return error
    if isinstance(error, NoOffer):
        return _no_offer(error)
    if not isinstance(error, LanewiseError):
        return None
    status, key, arguments = _plain(error)
    oem: dict[str, object] = {}
    headers = {}
    if isinstance(error, OperationRunning) and error.task:
        oem["Task"] = uris.task(error.task)
        headers["Retry-After"] = "1"
    if isinstance(error, (DeviceInUse, Busy)):
        oem["Holders"] = "; ".join(map(str, error.holders))
    if isinstance(error, BlockInUse):
        oem["Holder"] = error.holder
    message = RedfishMessage(key, arguments, text=f"{error.cause}.", resolution=error.hint, oem=oem)
    return RedfishError(status, message, headers=headers)


def _plain(error: LanewiseError) -> tuple[int, str, tuple[str, ...]]:
    match error:
        case BlockInUse():
            return 409, "Composition.ResourceBlockInUse", (error.name,)
        case DeviceInUse() | Busy() | OperationRunning():
            return 409, "Base.ResourceInUse", ()
        case StaleVersion():
            return 412, "Base.PreconditionFailed", ()
        case KeyReused():
            return 409, "Base.HeaderInvalid", ("Idempotency-Key",)
        case Expired():
            return 410, "Base.OperationFailed", ()
        case NoSpace():
            return 409, "Base.ResourceExhaustion", ("devices",)
        case Unreachable():
            return 409, "Composition.IncompatibleZone", ()
        case UnknownName():
            return 404, "Base.OperationFailed", ()
        case Contradiction() | Refused():
            return 409, "Base.OperationFailed", ()
        case DriverError():
            return 503, "Base.ServiceTemporarilyUnavailable", ("5",)
        case InputError():
            return 400, "Base.OperationFailed", ()
    return 500, "Base.OperationFailed", ()


def _no_offer(error: NoOffer) -> RedfishError:
    oem: dict[str, object] = {}
    if error.limit:
        oem["Limit"] = error.limit
    if error.rate is not None:
        oem["PredictedGBps"] = in_unit(error.rate, "GB/s")
    if error.nearest is not None:
        oem["Nearest"] = offer_json(error.nearest)
    if error.alternatives:
        oem["Alternatives"] = [offer_json(offer) for offer in error.alternatives]
    message = RedfishMessage(
        "Composition.NoResourceMatch", ("request",), text=f"{error.cause}.", resolution=error.hint, oem=oem
    )
    return RedfishError(409, message)
