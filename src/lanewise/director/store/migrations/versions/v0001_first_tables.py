"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

LIVE = "state IN ('Composing', 'Composed', 'Removing', 'Reserved')"
_TYPES = {"text": sa.Text, "int": sa.Integer, "float": sa.Float, "bool": sa.Boolean, "json": sa.JSON}

# Columns by type; a trailing '?' allows NULL, a leading '*' makes the primary key.
TABLES = {
    "counters": "*name:text value:int",
    "blocks": "*name:text kind:text part:text? condition:text note:text version:int",
    "compositions": "*name:text *since:int server:text state:text requirements:json client:text p2p:bool "
    "created:float changed:float version:int",
    "claims": "*kind:text *name:text *since:int composition:text? reservation:text? state:text note:text version:int",
    "tasks": "*name:text action:text composition:text blocks:json state:text percent:int messages:json problem:json? "
    "client:text created:float changed:float",
    "intents": "*task:text action:text composition:text state:text steps:json",
    "events": "*id:int kind:text time:float text:text severity:text composition:text? blocks:json reservation:text? "
    "task:text?",
    "idempotency_keys": "*client:text *key:text fingerprint:text result:text created:float",
    "reservations": "*name:text server:text blocks:json requirements:json client:text state:text expires:float",
    "accounts": "*name:text password_hash:text role:text enabled:bool failed_logins:int locked_until:float version:int",
    "roles": "*name:text privileges:json predefined:bool",
    "sessions": "*name:text account:text token_hash:text created:float used:float address:text",
    "subscriptions": "*name:text account:text destination:text settings:json delivered:int failures:int version:int",
    "audit": "*id:int time:float account:text address:text method:text path:text status:int text:text",
}


def upgrade() -> None:
    """Make every table and index."""
    for table, columns in TABLES.items():
        op.create_table(table, *map(_column, columns.split()))
    op.create_index("sessions_by_token", "sessions", ["token_hash"], unique=True)
    _partial("live_composition_names", "compositions", "name", where="state <> 'Released'")
    _partial("live_claims", "claims", "kind", "name", where=LIVE)
    _partial("live_claims_of_compositions", "claims", "composition", where=LIVE, unique=False)
    _partial("open_intents", "intents", "composition", where="state = 'Open'")
    _partial("active_reservations", "reservations", "expires", where="state = 'Active'", unique=False)


def _column(words: str) -> sa.Column[object]:
    name, kind = words.lstrip("*").split(":")
    key = words.startswith("*")
    return sa.Column(
        name, _TYPES[kind.rstrip("?")](), primary_key=key, nullable=kind.endswith("?"), autoincrement=False
    )


def _partial(name: str, table: str, *columns: str, where: str, unique: bool = True) -> None:
    clause = sa.text(where)
    op.create_index(name, table, list(columns), unique=unique, sqlite_where=clause, postgresql_where=clause)
