"""Who a request is from: tokens, cookies and basic credentials; failed logins are counted and slowed down."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256

from lanewise.director.redfish.messages import RedfishError, RedfishMessage, refusal
from lanewise.director.redfish.passwords import LONGEST, SHORTEST, PasswordVerifier
from lanewise.director.redfish.roles import ADMINISTRATOR, ROLES, Principal
from lanewise.director.redfish.settings import ServiceSettings
from lanewise.director.store.accounts import AccountRecord, SessionRecord
from lanewise.director.store.database import Store
from lanewise.director.store.subscriptions import AuditRecord
from lanewise.errors import printable, shorten

COOKIE = "lanewise-session"
USER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FAILURES, _WINDOW = 20, 60.0  # failed logins of one client address in so many seconds
_ADDRESSES = 10_000


class AddressLimiter:
    """Counts failed logins by client address within a window; the memory for addresses is bounded."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """RedfishError 429 with Retry-After if the address has failed too often."""
        with self._lock:
            times = self._recent(address)
            if len(times) < _FAILURES:
                return
            wait = max(1, round(times[0] + _WINDOW - self._clock()))
        message = RedfishMessage("Base.AccessDenied", ("login",), text="Too many failed logins from this address.")
        raise RedfishError(429, message, headers={"Retry-After": str(wait)})

    def failed(self, address: str) -> None:
        """Count one more failed login."""
        with self._lock:
            times = self._recent(address)
            times.append(self._clock())
            self._failures[address] = times
            self._failures.move_to_end(address)
            while len(self._failures) > _ADDRESSES:
                self._failures.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        oldest = self._clock() - _WINDOW
        return [moment for moment in self._failures.get(address, []) if moment > oldest][-_FAILURES:]


class Login:
    """Accounts and sessions of the service, over the store, with copies in memory for reading."""

    def __init__(self, store: Store, settings: ServiceSettings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.verifier = PasswordVerifier()
        self.generation = 0  # rises with every change
        self._store, self._clock = store, clock
        self._limiter = AddressLimiter(clock)
        self._lock = threading.RLock()
        self._accounts = {account.name: account for account in store.accounts()}
        self._sessions = {session.token_hash: session for session in store.sessions()}
        self._used: set[str] = set()
        self._failed: dict[str, float] = {}  # when an account that exists was last tried in vain

    # --- accounts ---

    @property
    def accounts(self) -> dict[str, AccountRecord]:
        """Every account by name, a copy."""
        with self._lock:
            return dict(self._accounts)

    def account(self, name: str) -> AccountRecord:
        """The account of that name; RedfishError 404 otherwise."""
        with self._lock:
            account = self._accounts.get(name)
        if account is None:
            raise refusal(404, "Base.ResourceNotFound", "account", shorten(printable(name)))
        return account

    def first_password(self) -> str | None:
        """The password of a new account 'admin' if there is no account at all, else None."""
        if self.accounts:
            return None
        password = secrets.token_urlsafe(15)
        self.add("admin", password, ADMINISTRATOR)
        return password

    def add(self, name: str, password: str, role: str, enabled: bool = True) -> AccountRecord:
        """A new account; RedfishError if the name is taken or not plain, the role unknown, the password too simple."""
        if not USER_NAME.fullmatch(name):
            raise refusal(400, "Base.PropertyValueFormatError", shorten(printable(name)), "UserName", prop="UserName")
        check_role(role)
        check_password(password, name)
        kept = self.verifier.hash(password)
        with self._lock:
            if name in self._accounts:
                raise refusal(409, "Base.ResourceAlreadyExists", "ManagerAccount", "UserName", name)
            return self._keep(AccountRecord(name, kept, role, enabled), 0)

    def change(self, account: AccountRecord, session: str = "", **values: object) -> AccountRecord:
        """The account with other values, kept; its sessions but this one end if password, role or Enabled changed."""
        with self._lock:
            new = replace(self.account(account.name), **values)  # type: ignore[arg-type]
            if not self._administrators_but(account.name) and (new.role != ADMINISTRATOR or not new.enabled):
                raise refusal(409, "Base.RestrictedRole", new.role, text="The last administrator must stay one.")
            kept = self._keep(new, account.version)
            if {"password_hash", "role", "enabled"} & values.keys():
                self._end_sessions_of(account.name, session)
            return kept

    def remove(self, account: AccountRecord) -> None:
        """Remove an account and its sessions; RedfishError 409 for the last administrator."""
        with self._lock:
            if not self._administrators_but(account.name):
                raise refusal(409, "Base.ResourceCannotBeDeleted", text="The last administrator cannot be deleted.")
            self._store.drop_account(account.name, account.version)
            self._end_sessions_of(account.name)
            self._accounts.pop(account.name, None)
            self.generation += 1

    def locked(self, account: AccountRecord) -> bool:
        """Whether failed logins have locked the account for now."""
        return account.locked_until > self._clock()

    def _administrators_but(self, name: str) -> list[AccountRecord]:
        others = [one for one in self._accounts.values() if one.name != name]
        return [one for one in others if one.role == ADMINISTRATOR and one.enabled]

    def _keep(self, account: AccountRecord, version: int | None) -> AccountRecord:
        kept = self._store.put_account(account, version)
        self._accounts[kept.name] = kept
        self.generation += 1
        return kept

    # --- sessions ---

    @property
    def sessions(self) -> dict[str, SessionRecord]:
        """Every live session by name, a copy."""
        self._expire()
        with self._lock:
            return {session.name: session for session in self._sessions.values()}

    def open(self, name: str, password: str, address: str) -> tuple[SessionRecord, str]:
        """A new session and its token; RedfishError as `authenticate`, 503 if all sessions are in use."""
        account = self.authenticate(name, password, address)
        token = secrets.token_urlsafe(32)
        self._expire()
        now = self._clock()
        session = SessionRecord(secrets.token_hex(6), account.name, _digest(token), now, now, address)
        with self._lock:
            if len(self._sessions) >= self.settings.most_sessions:
                raise refusal(503, "Base.SessionLimitExceeded")
            self._store.add_session(session)
            self._sessions[session.token_hash] = session
            self.generation += 1
        return session, token

    def close(self, name: str) -> None:
        """End a session; its token is worth nothing from now on."""
        with self._lock:
            self._store.drop_sessions(name)
            self._sessions = {key: one for key, one in self._sessions.items() if one.name != name}
            self.generation += 1

    def _end_sessions_of(self, account: str, but: str = "") -> None:
        ended = [one for one in self._sessions.values() if one.account == account and one.name != but]
        if ended:
            self._store.drop_sessions(*(one.name for one in ended))
            for one in ended:
                del self._sessions[one.token_hash]

    def _expire(self) -> None:
        oldest = self._clock() - self.settings.session_seconds
        with self._lock:
            if any(one.used < oldest for one in self._sessions.values()):
                self._sessions = {key: one for key, one in self._sessions.items() if one.used >= oldest}
                self._store.drop_sessions(unused_since=oldest)
                self.generation += 1

    def of_token(self, token: str, *, cookie: bool = False) -> Principal | None:
        """Who a token stands for, None if for nobody; notes that the session is used."""
        now = self._clock()
        with self._lock:
            session = self._sessions.get(_digest(token))
            account = self._accounts.get(session.account) if session else None
            if session is None or account is None or not account.enabled:
                return None
            if session.used < now - self.settings.session_seconds:
                return None
            self._sessions[session.token_hash] = replace(session, used=now)
            self._used.add(session.name)
        return Principal(account.name, account.role, session.name, cookie)

    def valid(self, principal: Principal) -> bool:
        """Whether the account, and the session if it came by one, still are what they were."""
        with self._lock:
            account = self._accounts.get(principal.account)
            if account is None or not account.enabled or account.role != principal.role:
                return False
            return not principal.session or any(one.name == principal.session for one in self._sessions.values())

    def note_use(self) -> None:
        """Write to the store when sessions were last used; for a task that runs every half minute or so."""
        with self._lock:
            used, self._used = self._used, set()
            times = [(one.name, one.used) for one in self._sessions.values() if one.name in used]
        for name, moment in times:
            self._store.use_session(name, moment)

    # --- credentials ---

    def remembered(self, name: str, password: str) -> Principal | None:
        """The account, if exactly these credentials were verified before; costs no hash."""
        account = self._accounts.get(name)
        if account is None or not account.enabled or self.locked(account):
            return None
        return Principal(name, account.role) if self.verifier.remembers(name, password, account.password_hash) else None

    def authenticate(self, name: str, password: str, address: str) -> AccountRecord:
        """The account of these credentials; RedfishError 401 if they are wrong, 429 after too many of those.

        A wrong name, a wrong password, a disabled and a locked account look alike.
        """
        self._limiter.check(address)
        with self._lock:
            account = self._accounts.get(name)
        usable = account is not None and account.enabled and not self.locked(account)
        right = self.verifier.verify(name, password, account.password_hash if account and usable else None)
        if account is None or not right:
            self._limiter.failed(address)
            self._store.audit(AuditRecord(self._clock(), shorten(printable(name)), address, "LOGIN", "", 401, "failed"))
            if account is not None and usable:
                self._count(account, failed=True)
            raise unauthorized()
        if account.failed_logins:
            account = self._count(account, failed=False)
        return account

    def _count(self, account: AccountRecord, *, failed: bool) -> AccountRecord:
        with self._lock:
            now = self._clock()
            if failed and now - self._failed.get(account.name, now) > self.settings.lockout_seconds:
                self._accounts[account.name] = self._store.count_login(account.name, False)
            self._failed[account.name] = now
            failures = self._accounts[account.name].failed_logins + 1 if failed else 0
            lock = failed and failures >= self.settings.lockout_threshold
            until = now + self.settings.lockout_seconds if lock else 0.0
            kept = self._store.count_login(account.name, failed, until)
            self._accounts[account.name] = kept
            self.generation += 1
            return kept


def credentials(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and password of an Authorization header, None if it has none; RedfishError 401 if it is malformed."""
    text = headers.get("authorization")
    if text is None:
        return None
    scheme, _, value = text.partition(" ")
    if scheme.lower() != "basic" or len(value) > 1000:
        raise unauthorized()
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise unauthorized() from None
    if not colon:
        raise unauthorized()
    return name, password


def cookie_token(headers: Mapping[str, str]) -> str | None:
    """The token in the session cookie, None without one."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and value:
            return value
    return None


def unauthorized() -> RedfishError:
    """The answer to a request whose credentials are missing or wrong."""
    return RedfishError(401, RedfishMessage("Base.AccessUnauthorized"))


def check_role(role: str) -> None:
    """RedfishError unless there is such a role."""
    if role not in ROLES:
        raise refusal(400, "Base.PropertyValueNotInList", shorten(printable(role)), "RoleId", prop="RoleId")


def check_password(password: str, name: str) -> None:
    """RedfishError unless the password is long enough, not all one letter, and without the user's name."""
    if not SHORTEST <= len(password) <= LONGEST:
        text = f"A password has {SHORTEST} to {LONGEST} characters."
        raise refusal(400, "Base.PasswordIncorrectLength", prop="Password", text=text)
    if len(set(password)) < 4 or name.lower() in password.lower():
        text = "A password has at least 4 different characters, and not the user's name in it."
        raise refusal(400, "Base.PasswordComplexityNotMet", prop="Password", text=text)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()
