"""Passwords: argon2 hashes, and few of them at a time."""

from __future__ import annotations

import hmac
import os
import threading
from collections import OrderedDict
from hashlib import sha256

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from lanewise.director.redfish.messages import refusal

SHORTEST, LONGEST = 10, 128  # characters
MEMORY = 19 * 1024  # KiB for each hash, the least that OWASP advises
_AT_ONCE, _WAITING = 2, 32
_REMEMBERED = 256


class PasswordVerifier:
    """Hashes and verifies passwords (argon2id, 19 MiB), two at a time; more than 32 waiting are refused with 503."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=MEMORY, parallelism=1)
        self._running = threading.BoundedSemaphore(_AT_ONCE)
        self._waiting = threading.BoundedSemaphore(_WAITING)
        self._decoy = self._hasher.hash(os.urandom(16).hex())
        # What was verified before, by a keyed digest that is worth nothing outside this process: a client that sends
        # basic credentials with every request would cost a hash each time.
        self._key = os.urandom(32)
        self._verified: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def hash(self, password: str) -> str:
        """The hash to keep."""
        with self._slot():
            return self._hasher.hash(password)

    def remembers(self, account: str, password: str, kept: str) -> bool:
        """Whether exactly this was verified before against the same hash; costs no time."""
        with self._lock:
            return self._verified.get(self._digest(account, password)) == kept

    def verify(self, account: str, password: str, kept: str | None) -> bool:
        """Whether the password belongs to the hash; as slow for an account that does not exist (None)."""
        if len(password) > LONGEST:
            return False
        with self._slot():
            try:
                right = self._hasher.verify(kept or self._decoy, password) and kept is not None
            except (Argon2Error, InvalidHashError):
                return False
        if right and kept:
            with self._lock:
                self._verified[self._digest(account, password)] = kept
                while len(self._verified) > _REMEMBERED:
                    self._verified.popitem(last=False)
        return right

    def _digest(self, account: str, password: str) -> bytes:
        text = f"{len(account)}:{account}:{password}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, sha256).digest()

    def _slot(self) -> _HashSlot:
        return _HashSlot(self._waiting, self._running)


class _HashSlot:
    """One place among those that hash now."""

    def __init__(self, waiting: threading.BoundedSemaphore, running: threading.BoundedSemaphore) -> None:
        self._waiting, self._running = waiting, running

    def __enter__(self) -> None:
        if not self._waiting.acquire(blocking=False):
            raise refusal(503, "Base.ServiceTemporarilyUnavailable", "2")
        self._running.acquire()

    def __exit__(self, *_: object) -> None:
        self._running.release()
        self._waiting.release()
