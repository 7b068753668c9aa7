"""The secret that both sides share, how each proves to the other that it knows it, and the tokens of data connections.

    client                                          listener
    {"lanewise": 3, "nonce": C, "service": S}  ->
                                               <-   {"lanewise": 3, "nonce": L, "service": S}
    {"proof": HMAC(secret, client, S, C, L)}   ->
                                               <-   {"proof": HMAC(secret, listener, S, C, L)}

HMAC is that of RFC 2104 with SHA-256. S is the name of the service, so that a proof for one service opens no other. The
client goes first, so a stranger gets nothing from a listener that he could try secrets on. Both nonces are new each
time, so nothing that was overheard opens another session. What follows is neither encrypted nor signed, unless
TLS is around it (lanewise.control.tls): who can change packets on the way can still disturb a session.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import InputError

VARIABLE = "LANEWISE_SECRET"
SECRET_HINT = f"give both sides the same secret: --secret-file FILE, or {VARIABLE}"
SHORTEST, LONGEST = 16, 1024  # characters of a secret
_NONCE_BYTES = 32


def new_secret() -> str:
    """A secret that nobody can guess (128 bits)."""
    return secrets.token_hex(16)


def new_nonce() -> str:
    """A number used once, 64 hexadecimal digits."""
    return secrets.token_hex(_NONCE_BYTES)


def read_secret(file: Path | None) -> str:
    """The secret in the file, if one is named, else of the environment, else ''; InputError if it is not safe."""
    if file is not None:
        return _checked(_text(file), str(file))
    given = os.environ.get(VARIABLE, "")
    return _checked(given, VARIABLE) if given else ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & stat.S_IROTH:
                raise InputError(f"every user of this machine can read the secret in {path}", hint=f"chmod 600 {path}")
            return file.read(LONGEST + 2).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text", hint="write the secret into it") from None
    except OSError as error:
        raise InputError(f"cannot read the secret in {path}: {error.strerror}", hint="check --secret-file") from None


def _checked(text: str, source: str) -> str:
    secret = text.strip()
    if not SHORTEST <= len(secret) <= LONGEST:
        raise InputError(
            f"the secret of {source} has {len(secret)} characters",
            hint=f"use {SHORTEST} to {LONGEST} that nobody can guess: openssl rand -hex 16",
        )
    return secret


@dataclass(frozen=True, slots=True)
class Handshake:
    """One greeting between a client and a listener: the secret, the name of the service and both nonces."""

    secret: str
    service: str
    client_nonce: str
    listener_nonce: str

    @property
    def client_proof(self) -> str:
        """What only a client that knows the secret can say to these nonces."""
        return self._digest("client").hex()

    @property
    def listener_proof(self) -> str:
        """What only a listener that knows the secret can say to these nonces."""
        return self._digest("listener").hex()

    def data_token(self, nonce: str, index: int) -> str:
        """What the `index`-th data connection to this `nonce` says to show that it belongs to this session."""
        text = f"data {nonce} {index}"
        return hmac.digest(self._digest("session"), text.encode(), "sha256").hex()

    def _digest(self, role: str) -> bytes:
        text = f"lanewise {role} {self.service} {self.client_nonce} {self.listener_nonce}"
        return hmac.digest(self.secret.encode(), text.encode(), "sha256")


def same(a: str, b: str) -> bool:
    """Whether two proofs or tokens are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(a.encode(), b.encode())
