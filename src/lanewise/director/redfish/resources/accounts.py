"""Accounts, roles and sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.login import COOKIE, check_password, check_role
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.passwords import LONGEST, SHORTEST
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import changed, collection, done, named, status
from lanewise.director.redfish.roles import ROLES, Privilege
from lanewise.director.redfish.uris import ROOT, link, not_there
from lanewise.director.store.accounts import AccountRecord

_SERVICE = f"{ROOT}/AccountService"
_SESSIONS = f"{ROOT}/SessionService/Sessions"
Text = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1000)]


class AccountForm(RequestForm):
    """A new account."""

    UserName: Text
    Password: Password
    RoleId: Text
    Enabled: bool = True
    Locked: Literal[False] = False
    AccountTypes: list[Literal["Redfish", "WebUI"]] = Field(default=["Redfish"], max_length=2)


class AccountPatch(RequestForm):
    """What may be changed of an account."""

    UserName: Text | None = None
    Password: Annotated[str, Field(max_length=1000)] | None = None
    RoleId: Text | None = None
    Enabled: bool | None = None
    Locked: bool | None = None


class SessionOem(RequestForm):
    """What a browser asks for: its token as a cookie."""

    Cookie: bool = False


class SessionOemForm(RequestForm):
    """Oem of a login."""

    Lanewise: SessionOem = SessionOem()


class SessionForm(RequestForm):
    """A login."""

    UserName: Text
    Password: Password
    Context: Text | None = None
    SessionType: Literal["Redfish", "WebUI"] = "Redfish"
    Oem: SessionOemForm = SessionOemForm()


class PasswordForm(RequestForm):
    """ManagerAccount.ChangePassword."""

    SessionAccountPassword: Password
    NewPassword: Password


# --- accounts ---


def _account_service(call: Call) -> Json:
    settings = call.service.settings
    return {
        "Id": "AccountService",
        "Name": "Accounts",
        "Status": status(),
        "ServiceEnabled": True,
        "MinPasswordLength": SHORTEST,
        "MaxPasswordLength": LONGEST,
        "AccountLockoutThreshold": settings.lockout_threshold,
        "AccountLockoutDuration": settings.lockout_seconds,
        "AccountLockoutCounterResetAfter": settings.lockout_seconds,
        "HTTPBasicAuth": "Enabled",
        "LocalAccountAuth": "Enabled",
        "SupportedAccountTypes": ["Redfish", "WebUI"],
        "Accounts": link(f"{_SERVICE}/Accounts"),
        "Roles": link(f"{_SERVICE}/Roles"),
    }


def _account(call: Call) -> Json:
    account: AccountRecord = named(call, call.service.login.accounts, "account")
    return {
        "Id": account.name,
        "Name": f"Account {account.name}",
        "UserName": account.name,
        "Password": None,
        "RoleId": account.role,
        "Enabled": account.enabled,
        "Locked": call.service.login.locked(account),
        "AccountTypes": ["Redfish", "WebUI"],
        "Links": {"Role": link(f"{_SERVICE}/Roles/{account.role}")},
        "Actions": {
            "#ManagerAccount.ChangePassword": {
                "target": f"{_SERVICE}/Accounts/{account.name}/Actions/ManagerAccount.ChangePassword"
            }
        },
    }


def _own(call: Call) -> bool:
    return call.principal is not None and call.names.get("account") == call.principal.account


def _own_password(call: Call) -> bool:
    return _own(call) and call.user.may(Privilege.SELF)


def _create_account(call: Call) -> Reply:
    body: AccountForm = call.body
    account = call.service.login.add(body.UserName, body.Password, body.RoleId, body.Enabled)
    uri = f"{_SERVICE}/Accounts/{account.name}"
    representation = call.service.represent(ACCOUNT, _at(call, uri, {"account": account.name}))
    return Reply(201, representation.data, {"Location": uri, "ETag": representation.etag})


def _at(call: Call, uri: str, names: dict[str, str]) -> Call:
    from dataclasses import replace

    return replace(call, path=uri, names=names)


def _change_account(call: Call) -> Reply:
    body: AccountPatch = call.body
    login = call.service.login
    account: AccountRecord = named(call, login.accounts, "account")
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    if not sent:
        raise refusal(400, "Base.EmptyJSON")
    missing = [name for name, value in sent.items() if value is None]
    if missing:
        raise refusal(400, "Base.PropertyValueTypeError", "null", missing[0], prop=missing[0])
    if not call.user.may(Privilege.USERS) and sent.keys() - {"Password"}:
        raise refusal(403, "Base.InsufficientPrivilege")
    if sent.get("UserName", account.name) != account.name:
        raise refusal(400, "Base.PropertyNotWritable", "UserName", prop="UserName")
    if sent.get("Locked"):
        raise refusal(400, "Base.PropertyValueNotInList", "true", "Locked", prop="Locked")
    values: dict[str, object] = {}
    if "RoleId" in sent:
        check_role(sent["RoleId"])
        values["role"] = sent["RoleId"]
    if "Password" in sent:
        check_password(sent["Password"], account.name)
        values["password_hash"] = login.verifier.hash(sent["Password"])
    if "Enabled" in sent:
        values["enabled"] = sent["Enabled"]
    if "Locked" in sent or "Password" in sent:
        values |= {"failed_logins": 0, "locked_until": 0.0}
    login.change(account, call.user.session, **values)
    return changed(call, ACCOUNT)


def _delete_account(call: Call) -> Reply:
    call.service.login.remove(named(call, call.service.login.accounts, "account"))
    return done("Base.AccountRemoved")


def _change_password(call: Call) -> Reply:
    body: PasswordForm = call.body
    login = call.service.login
    account: AccountRecord = named(call, login.accounts, "account")
    login.authenticate(call.user.account, body.SessionAccountPassword, call.client)
    check_password(body.NewPassword, account.name)
    login.change(login.account(account.name), call.user.session, password_hash=login.verifier.hash(body.NewPassword))
    return done()


def _role(call: Call) -> Json:
    privileges = named(call, ROLES, "role")
    name = call.names["role"]
    return {
        "Id": name,
        "Name": f"Role {name}",
        "RoleId": name,
        "IsPredefined": True,
        "AssignedPrivileges": sorted(privileges),
        "OemPrivileges": [],
    }


# --- sessions ---


def _session_service(call: Call) -> Json:
    return {
        "Id": "SessionService",
        "Name": "Sessions",
        "Status": status(),
        "ServiceEnabled": True,
        "SessionTimeout": call.service.settings.session_seconds,
        "Sessions": link(_SESSIONS),
    }


def _visible_sessions(call: Call) -> list[str]:
    sessions = call.service.login.sessions
    every = call.user.may(Privilege.USERS)
    return [f"{_SESSIONS}/{name}" for name, one in sessions.items() if every or one.account == call.user.account]


def _session(call: Call) -> Json:
    session = named(call, call.service.login.sessions, "session")
    if not call.user.may(Privilege.USERS) and session.account != call.user.account:
        raise not_there(call.path)
    return {
        "Id": session.name,
        "Name": f"Session {session.name}",
        "UserName": session.account,
        "Password": None,
        "SessionType": "Redfish",
        "CreatedTime": moment(session.created),
        "ClientOriginIPAddress": session.address,
    }


def _open_session(call: Call) -> Reply:
    body: SessionForm = call.body
    session, token = call.service.login.open(body.UserName, body.Password, call.client)
    uri = f"{_SESSIONS}/{session.name}"
    principal = call.service.login.of_token(token)
    from dataclasses import replace

    owned = replace(_at(call, uri, {"session": session.name}), principal=principal)
    representation = call.service.represent(SESSION, owned)
    headers = {"Location": uri, "X-Auth-Token": token, "ETag": representation.etag}
    if body.Oem.Lanewise.Cookie:
        secure = "; Secure" if call.service.settings.tls else ""
        headers["Set-Cookie"] = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return Reply(201, representation.data, headers)


def _close_session(call: Call) -> Reply:
    _session(call)
    call.service.login.close(call.names["session"])
    return Reply(204, None, {"Set-Cookie": f"{COOKIE}=; Path=/; Max-Age=0"} if call.user.cookie else {})


def _own_session(call: Call) -> bool:
    return call.principal is not None and call.principal.session == call.names.get("session")


ACCOUNT = ResourceType(
    f"{_SERVICE}/Accounts/{{account}}",
    "ManagerAccount.v1_14_1",
    _account,
    privilege=Privilege.USERS,
    own=_own,
    live=True,
    writes={
        "PATCH": WriteMethod(_change_account, AccountPatch, Privilege.USERS, own=_own_password),
        "DELETE": WriteMethod(_delete_account, privilege=Privilege.USERS),
    },
)
SESSION = ResourceType(
    f"{_SESSIONS}/{{session}}",
    "Session.v1_8_0",
    _session,
    live=True,
    writes={"DELETE": WriteMethod(_close_session, privilege=Privilege.SELF, own=_own_session)},
)
_LOGIN = {"POST": WriteMethod(_open_session, SessionForm, None, alone=False)}
_SESSION_COLLECTION = collection(
    _SESSIONS, "SessionCollection", "Sessions", _visible_sessions, live=True, writes=_LOGIN
)
TYPES = (
    ResourceType(_SERVICE, "AccountService.v1_18_1", _account_service),
    collection(
        f"{_SERVICE}/Accounts",
        "ManagerAccountCollection",
        "Accounts",
        lambda call: [
            f"{_SERVICE}/Accounts/{name}"
            for name in call.service.login.accounts
            if call.user.may(Privilege.USERS) or name == call.user.account
        ],
        live=True,
        writes={"POST": WriteMethod(_create_account, AccountForm, Privilege.USERS, alone=False)},
    ),
    ACCOUNT,
    ResourceType(
        f"{_SERVICE}/Accounts/{{account}}/Actions/ManagerAccount.ChangePassword",
        writes={
            "POST": WriteMethod(
                _change_password,
                PasswordForm,
                Privilege.USERS,
                "ManagerAccount.ChangePassword",
                _own_password,
                alone=False,
            )
        },
    ),
    collection(
        f"{_SERVICE}/Roles", "RoleCollection", "Roles", lambda call: [f"{_SERVICE}/Roles/{name}" for name in ROLES]
    ),
    ResourceType(f"{_SERVICE}/Roles/{{role}}", "Role.v1_3_3", _role),
    ResourceType(f"{ROOT}/SessionService", "SessionService.v1_2_0", _session_service),
    _SESSION_COLLECTION,
    ResourceType(f"{_SESSIONS}/Members", writes=_LOGIN, privilege=None),
    SESSION,
)
