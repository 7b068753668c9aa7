"""What a Redfish service, or the way to it, answers instead of data.

LanewiseError
├── ServiceUnreachable   nothing answers at the address, or what answers cannot be trusted
└── RefusedByService     the service answered with an error: status and the identifiers of its messages
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.errors import LanewiseError, shorten

_UNAUTHORIZED, _MOST = 401, 600


class ServiceUnreachable(LanewiseError):
    """No Redfish service answers at an address, or its certificate is not trusted; `sent`: a request may be there."""

    def __init__(self, cause: str, *, sent: bool = False, hint: str = "") -> None:
        super().__init__(cause, hint=hint)
        self.sent = sent


class RefusedByService(LanewiseError):
    """A Redfish service refused a request: HTTP `status`, `keys` of its messages, `details` of the first one (Oem)."""

    def __init__(
        self,
        cause: str,
        status: int,
        keys: tuple[str, ...] = (),
        details: Mapping[str, Any] | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(cause, hint=hint)
        self.status = status
        self.keys = keys
        self.details = dict(details or {})


def refused(status: int, reason: str, body: Any) -> RefusedByService:
    """The error in an answer, from its extended information as far as there is any."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    rows = error.get("@Message.ExtendedInfo")
    messages = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return of_messages(status, messages, str(error.get("message") or reason))


def of_messages(status: int, messages: list[dict[str, Any]], otherwise: str) -> RefusedByService:
    """The error that messages of an answer or of a task tell; the last one that is no success comes first."""
    bad = [row for row in messages if row.get("MessageSeverity", row.get("Severity")) != "OK"] or messages
    first = bad[0] if bad else {}
    cause = shorten(str(first.get("Message") or otherwise).rstrip("."), _MOST)
    resolution = str(first.get("Resolution") or "")
    hint = "" if resolution.rstrip(".").lower() in ("", "none") else shorten(resolution.rstrip("."), _MOST)
    if status == _UNAUTHORIZED:
        hint = "name the account with --user, its password in LANEWISE_DIRECTOR_PASSWORD or --password-file"
    keys = tuple(str(row.get("MessageId", "")).rpartition(".")[2] for row in bad)
    oem = first.get("Oem")
    details = oem.get("Lanewise") if isinstance(oem, dict) else None
    return RefusedByService(cause, status, keys, details if isinstance(details, dict) else None, hint)
