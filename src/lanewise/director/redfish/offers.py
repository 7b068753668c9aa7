"""Offers and predicted rates as they stand under Oem.Lanewise; GB/s outside, B/s inside."""

from __future__ import annotations

from typing import Any

from lanewise.pool.model import Offer, PathRate, PathRequirement
from lanewise.topology.model import Kind
from lanewise.units import in_unit

DEVICE_TYPES = {"GPU": Kind.GPU, "SSD": Kind.SSD, "NIC": Kind.NIC}
KIND_WORDS = {kind: word for word, kind in DEVICE_TYPES.items()}


def gigabytes(rate: float) -> float:
    """A rate in GB/s, to a millionth."""
    return round(in_unit(rate, "GB/s"), 6)


def rate_json(rate: PathRate) -> dict[str, Any]:
    """One path's predicted rate."""
    body = {
        "Device": rate.device,
        "DeviceType": KIND_WORDS.get(rate.kind, str(rate.kind).upper()),
        "Path": list(rate.path),
        "PredictedGBps": gigabytes(rate.rate),
        "LowGBps": gigabytes(rate.low),
        "HighGBps": gigabytes(rate.high),
        "AloneGBps": gigabytes(rate.alone),
        "RequiredGBps": None if rate.required is None else gigabytes(rate.required),
        "Limit": rate.limit,
        "Basis": rate.basis,
        "Sources": list(rate.sources),
    }
    return {**body, "Doubt": rate.doubt} if rate.doubt else body


def offer_json(offer: Offer) -> dict[str, Any]:
    """An offer with its rates and what others lose."""
    return {
        "Server": offer.server,
        "Blocks": list(offer.blocks),
        "TotalGBps": gigabytes(offer.total),
        "LostGBps": gigabytes(offer.lost),
        "Paths": [rate_json(rate) for rate in offer.rates],
        "Losses": [
            {
                "Composition": loss.composition,
                "Device": loss.device,
                "BeforeGBps": gigabytes(loss.before),
                "AfterGBps": gigabytes(loss.after),
                **({} if loss.required is None else {"RequiredGBps": gigabytes(loss.required)}),
            }
            for loss in offer.losses
        ],
        "Notes": list(offer.notes),
        "OtherServers": list(offer.alike),
    }


def requirement_json(need: PathRequirement) -> dict[str, Any]:
    """A requirement as it was requested."""
    return {
        "DeviceType": KIND_WORDS.get(need.kind, str(need.kind).upper()),
        "Count": need.count,
        "MinimumGBps": None if need.rate is None else gigabytes(need.rate),
        "Model": need.part,
        "NetworkCards": need.nics,
    }
