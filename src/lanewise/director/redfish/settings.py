"""Settings of the Redfish service: address, TLS, limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where the service listens and what it bears; times in s, sizes in bytes.

    `directory` holds the TLS key and certificate made at the first start, and the first password. Without `tls` only
    loopback addresses are served. `push_networks` are the only networks that events may be pushed to
    ('10.0.0.0/8'); without them all but local addresses. Events, ended tasks and the audit log stay for
    `kept_seconds`. `static` is the folder of the web page at /, None for no page.
    """

    directory: Path
    host: str = "127.0.0.1"
    port: int = 8443
    tls: bool = True
    certificate: Path | None = None
    key: Path | None = None
    static: Path | None = None
    name: str = "Lanewise director"
    most_body: int = 256 * 1024
    most_header: int = 16 * 1024
    request_seconds: float = 10.0
    answer_seconds: float = 20.0
    read_seconds: float = 30.0
    most_connections: int = 512
    most_sessions: int = 64
    most_subscriptions: int = 32
    most_streams: int = 32
    session_seconds: int = 1800
    reservation_seconds: int = 300
    most_reservation_seconds: int = 3600
    lockout_threshold: int = 5
    lockout_seconds: int = 30
    heartbeat_seconds: float = 2.0
    poll_seconds: float = 5.0
    kept_seconds: float = 30 * 86_400.0
    push_attempts: int = 3
    push_retry_seconds: float = 10.0
    push_networks: tuple[str, ...] = ()
