"""The three predefined roles of Redfish and what each may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Privilege(StrEnum):
    """The standard privileges of Redfish."""

    LOGIN = "Login"
    MANAGER = "ConfigureManager"
    USERS = "ConfigureUsers"
    SELF = "ConfigureSelf"
    COMPONENTS = "ConfigureComponents"


ADMINISTRATOR, OPERATOR, READ_ONLY = "Administrator", "Operator", "ReadOnly"
ROLES: Mapping[str, frozenset[Privilege]] = {
    ADMINISTRATOR: frozenset(Privilege),
    OPERATOR: frozenset({Privilege.LOGIN, Privilege.COMPONENTS, Privilege.SELF}),
    READ_ONLY: frozenset({Privilege.LOGIN, Privilege.SELF}),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request: an account, its role, and its session, if any; `cookie`: sent by a browser by itself."""

    account: str
    role: str
    session: str = ""
    cookie: bool = False

    def may(self, privilege: Privilege) -> bool:
        """Whether the role includes the privilege."""
        return privilege in ROLES.get(self.role, frozenset())
