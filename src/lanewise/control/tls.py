"""TLS 1.3 around a control channel: a listener's certificate, what a client trusts, and the socket of either side.

It is optional, and the greeting of lanewise.control.handshake stays inside it. Data connections have none: their tokens
are worth nothing to who has not greeted, and what they carry is measured.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lanewise.control.stream import ANSWER_S, PEER_LOST_HINT, PeerReset
from lanewise.errors import CannotMeasure, InputError

RECORD = b"\x16"  # how a TLS connection begins, and no line of the protocol
LISTENER_HINT = "the listener takes --tls-certificate FILE and --tls-key FILE, the client --tls-ca FILE"
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64  # OpenSSL's X509_V_ERR_*
_Value = TypeVar("_Value")


class TlsSocket(ssl.SSLSocket):
    """A TLS connection as the control protocol uses sockets: one may look ahead, and read while another thread sends.

    A time-out is that of each call, and 0 never waits. OpenSSL reads no further than a record, which is a message of
    the other side; so what poll() does not see is no message, unless the other side put two into a record.
    """

    _patience: float | None
    _ahead: bytes  # read, and not taken yet
    _turn: threading.Lock  # OpenSSL knows no two threads in one connection

    def __new__(cls, *arguments: Any, **options: Any) -> TlsSocket:
        self = super().__new__(cls, *arguments, **options)
        self._patience, self._ahead, self._turn = None, b"", threading.Lock()
        return self

    def settimeout(self, value: float | None, /) -> None:
        """As of a socket; underneath nothing waits."""
        self._patience = value
        super().settimeout(0.0)

    def gettimeout(self) -> float | None:
        """As of a socket."""
        return self._patience

    def setblocking(self, flag: bool, /) -> None:
        """As of a socket."""
        self.settimeout(None if flag else 0.0)

    def do_handshake(self, block: bool = False) -> None:
        """As of a TLS socket; BlockingIOError where the time-out is 0 and its next step must wait."""
        self._when_ready(super().do_handshake)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """As of a socket; of the flags MSG_PEEK alone."""
        if not self._ahead:
            self._ahead = self._when_ready(lambda: self.read(buflen))
        piece = self._ahead[:buflen]
        if not flags & socket.MSG_PEEK:
            self._ahead = self._ahead[buflen:]
        return piece

    def send(self, data: Any, flags: int = 0) -> int:
        """As of a socket, without flags."""
        return self._when_ready(lambda: super(TlsSocket, self).send(data))

    def shutdown(self, how: int, /) -> None:
        """As of a socket, from any thread: what another one reads goes on being TLS."""
        socket.socket.shutdown(self, how)

    def _when_ready(self, action: Callable[[], _Value]) -> _Value:
        end = None if self._patience is None else time.monotonic() + self._patience
        while True:
            try:
                with self._turn:
                    return action()
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except ssl.SSLError:  # one of them is a ValueError too
                raise
            except (ValueError, AttributeError):  # another thread closed it, or it was never connected
                raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from None
            self._await(event, end)

    def _await(self, event: int, end: float | None) -> None:
        if self._patience == 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        remaining = None if end is None else end - time.monotonic()
        poll = select.poll()
        try:
            poll.register(self, event)
        except ValueError:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from None
        if (remaining is not None and remaining <= 0) or not poll.poll(remaining and 1e3 * remaining):
            raise TimeoutError("timed out")


def listener_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """TLS of a listener with the certificate, in a PEM file that may hold the `key` too; None without a certificate.

    InputError for a file that cannot be read or holds something else, and for a key that other users can read.
    """
    if certificate is None:
        if key is not None:
            raise InputError("--tls-key is given without --tls-certificate", hint=LISTENER_HINT)
        return None
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # a session is resumed by nobody, and a ticket would wake who waits for a message
    _check_file(certificate, "certificate", "--tls-certificate")
    _check_file(key or certificate, "key", "--tls-key" if key else "--tls-certificate", private=True)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")  # else OpenSSL asks the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InputError(f"the key in {key or certificate} is not that of the certificate in {certificate}",
                             hint="check --tls-certificate and --tls-key") from None  # fmt: skip
        raise InputError(
            f"{certificate}{f' and {key}' if key else ''} are no certificate and key in PEM",
            hint="the certificate comes first in its file; the key has no password: openssl pkey -in KEY -out FILE",
        ) from None
    return context


def client_tls(ca: Path | None) -> ssl.SSLContext | None:
    """TLS of a client that trusts the certificates in a PEM file, and what they signed; None without a file.

    InputError for a file that cannot be read or holds no certificate.
    """
    if ca is None:
        return None
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the listener's own certificate will do
    _check_file(ca, "certificates", "--tls-ca")
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError:
        raise InputError(f"{ca} holds no certificate in PEM", hint="check --tls-ca") from None
    return context


def secured(connection: socket.socket, context: ssl.SSLContext, host: str, name: str) -> TlsSocket:
    """The connection with TLS, once the listener at `host` has shown a certificate that the client trusts.

    CannotMeasure says what is wrong, PeerReset if it hung up; the connection is closed then.
    """
    connection.settimeout(ANSWER_S)
    try:
        wrapped = context.wrap_socket(connection, server_hostname=host, do_handshake_on_connect=False)
    except (OSError, ValueError) as error:
        connection.close()
        raise PeerReset(f"{name} has left ({error})", hint=PEER_LOST_HINT) from None
    assert isinstance(wrapped, TlsSocket)
    try:
        wrapped.do_handshake()
    except OSError as error:
        wrapped.close()
        raise _handshake_failure(error, name) from None
    return wrapped


def _handshake_failure(error: OSError, name: str) -> CannotMeasure:
    if isinstance(error, ssl.SSLCertVerificationError):
        hints = {
            _EXPIRED: "renew it, and start the listener again", _NOT_YET_VALID: "check the clocks of both hosts",
            **dict.fromkeys((_OTHER_NAME, _OTHER_ADDRESS), "name the host as its certificate does (subjectAltName)"),
        }  # fmt: skip
        return CannotMeasure(
            f"the TLS certificate of {name} is not to be trusted: {error.verify_message.rstrip('.')}",
            hint=hints.get(error.verify_code, "--tls-ca must name its certificate, or that of who signed it"),
        )
    if isinstance(error, TimeoutError):
        hint = f"it may be crowded, lost, or speak no TLS: {LISTENER_HINT}"
        return CannotMeasure(f"no answer from {name} to TLS in {ANSWER_S:g} s", hint=hint)
    if isinstance(error, (ConnectionError, ssl.SSLEOFError)):
        return PeerReset(f"{name} closed the connection within the TLS handshake", hint=LISTENER_HINT)
    reason = getattr(error, "reason", None) or error.strerror
    if "ALERT" in str(reason):
        return CannotMeasure(f"TLS with {name} failed: {reason}", hint=LISTENER_HINT)
    return CannotMeasure(f"{name} speaks no TLS", hint=f"leave out --tls-ca, or start it with TLS: {LISTENER_HINT}")


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.sslsocket_class = TlsSocket
    return context


def _check_file(path: Path, what: str, flag: str, private: bool = False) -> None:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise InputError(f"cannot read the {what} in {path}: {error.strerror}", hint=f"check {flag}") from None
    if private and stat.S_ISREG(mode) and mode & stat.S_IROTH:
        raise InputError(f"every user of this machine can read the key in {path}", hint=f"chmod 600 {path}")
