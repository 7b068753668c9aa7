"""Accounts, roles and sessions of a director's users, as its database keeps them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """A user: the hash of the password, the role, failed logins since the last success, and until when it is locked.

    Times in s since 1970.
    """

    name: str
    password_hash: str
    role: str
    enabled: bool = True
    failed_logins: int = 0
    locked_until: float = 0.0
    version: int = 1


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """A role and its Redfish privileges; a predefined one cannot be changed."""

    name: str
    privileges: tuple[str, ...]
    predefined: bool = False


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A login: the SHA-256 of its token, never the token; times in s since 1970."""

    name: str
    account: str
    token_hash: str
    created: float
    used: float
    address: str = ""
