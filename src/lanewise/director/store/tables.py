"""The tables of a director's database, as they are after the newest migration; times are s since 1970."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, MetaData, Table, Text, text

metadata = MetaData()

# What makes a claim live: one such claim a block or server, whatever the director believes.
LIVE_CLAIM = text("state IN ('Composing', 'Composed', 'Removing', 'Reserved')")
LIVE_COMPOSITION = text("state <> 'Released'")
OPEN_INTENT = text("state = 'Open'")
ACTIVE_RESERVATION = text("state = 'Active'")


def _partial(name: str, *columns: str, where: object, unique: bool = True) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


# The row 'version' holds the pool's version; every change of the pool takes the next one first, so that commits are
# in the order of their versions on every database.
counters = Table(
    "counters", metadata,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)  # fmt: skip

blocks = Table(
    "blocks", metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("part", Text),
    Column("condition", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("version", Integer, nullable=False),
)  # fmt: skip

compositions = Table(
    "compositions", metadata,
    Column("name", Text, primary_key=True),
    Column("since", Integer, primary_key=True),  # the version that made it: a name may come back
    Column("server", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("requirements", JSON, nullable=False),
    Column("client", Text, nullable=False),
    Column("p2p", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False),
    Column("version", Integer, nullable=False),
    _partial("live_composition_names", "name", where=LIVE_COMPOSITION),
)  # fmt: skip

claims = Table(
    "claims", metadata,
    Column("kind", Text, primary_key=True),  # block or server
    Column("name", Text, primary_key=True),
    Column("since", Integer, primary_key=True),
    Column("composition", Text),
    Column("reservation", Text),
    Column("state", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("version", Integer, nullable=False),
    _partial("live_claims", "kind", "name", where=LIVE_CLAIM),
    _partial("live_claims_of_compositions", "composition", where=LIVE_CLAIM, unique=False),
)  # fmt: skip

tasks = Table(
    "tasks", metadata,
    Column("name", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("composition", Text, nullable=False),
    Column("blocks", JSON, nullable=False),
    Column("state", Text, nullable=False),
    Column("percent", Integer, nullable=False),
    Column("messages", JSON, nullable=False),
    Column("problem", JSON(none_as_null=True)),
    Column("client", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False),
)  # fmt: skip

# What a task has begun and must finish or undo: written with the claims, before the first step.
intents = Table(
    "intents", metadata,
    Column("task", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("composition", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("steps", JSON, nullable=False),
    _partial("open_intents", "composition", where=OPEN_INTENT),
)  # fmt: skip

events = Table(
    "events", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("time", Float, nullable=False),
    Column("text", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("composition", Text),
    Column("blocks", JSON, nullable=False),
    Column("reservation", Text),
    Column("task", Text),
)  # fmt: skip

idempotency_keys = Table(
    "idempotency_keys", metadata,
    Column("client", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("result", Text, nullable=False),  # the task, or the reservation
    Column("created", Float, nullable=False),
)  # fmt: skip

reservations = Table(
    "reservations", metadata,
    Column("name", Text, primary_key=True),
    Column("server", Text, nullable=False),
    Column("blocks", JSON, nullable=False),
    Column("requirements", JSON, nullable=False),
    Column("client", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("expires", Float, nullable=False),
    _partial("active_reservations", "expires", where=ACTIVE_RESERVATION, unique=False),
)  # fmt: skip

accounts = Table(
    "accounts", metadata,
    Column("name", Text, primary_key=True),
    Column("password_hash", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("failed_logins", Integer, nullable=False),
    Column("locked_until", Float, nullable=False),
    Column("version", Integer, nullable=False),
)  # fmt: skip

roles = Table(
    "roles", metadata,
    Column("name", Text, primary_key=True),
    Column("privileges", JSON, nullable=False),
    Column("predefined", Boolean, nullable=False),
)  # fmt: skip

sessions = Table(
    "sessions", metadata,
    Column("name", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("token_hash", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("used", Float, nullable=False),
    Column("address", Text, nullable=False),
    Index("sessions_by_token", "token_hash", unique=True),
)  # fmt: skip

subscriptions = Table(
    "subscriptions", metadata,
    Column("name", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("delivered", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("version", Integer, nullable=False),
)  # fmt: skip

audit = Table(
    "audit", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("time", Float, nullable=False),
    Column("account", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("text", Text, nullable=False),
)  # fmt: skip
