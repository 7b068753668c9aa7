"""Event subscriptions and the audit log, as a director's database keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A target of pushed events: its `settings` as the service defined them, and the last event delivered to it."""

    name: str
    account: str
    destination: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    delivered: int = 0
    failures: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request that changed, or tried to change, something; `time` in s since 1970."""

    time: float
    account: str
    address: str
    method: str
    path: str
    status: int
    text: str = ""
    id: int = 0
