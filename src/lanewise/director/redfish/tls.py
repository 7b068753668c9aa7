"""The TLS key and certificate that a director makes at its first start."""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lanewise.director.redfish.settings import ServiceSettings
from lanewise.errors import InputError

CERTIFICATE, KEY = "certificate.pem", "key.pem"
_DAYS = 825  # the longest that browsers accept


def certificate_files(settings: ServiceSettings) -> tuple[Path, Path]:
    """The certificate and key to serve with; made in the settings' directory if none are named and none are there.

    InputError if only one of the two is named.
    """
    if settings.certificate is not None and settings.key is not None:
        return settings.certificate, settings.key
    if settings.certificate is not None or settings.key is not None:
        raise InputError("a certificate needs its key, and a key its certificate", hint="name both, or neither")
    certificate, key = settings.directory / CERTIFICATE, settings.directory / KEY
    if not (certificate.exists() and key.exists()):
        _make(certificate, key, settings.host)
    return certificate, key


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The server's TLS context: TLS 1.2 and later; InputError if the files do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cannot serve with the certificate {certificate} and the key {key}: {error}") from None
    return context


def fingerprint(certificate: Path) -> str:
    """The SHA-256 fingerprint of a certificate, in pairs, for a user to compare."""
    digest = x509.load_pem_x509_certificate(certificate.read_bytes()).fingerprint(hashes.SHA256())
    return digest.hex(":").upper()


def _make(certificate: Path, key: Path, host: str) -> None:
    certificate.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Lanewise director")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(secret.public_key()), critical=False)
        .sign(secret, hashes.SHA256())
    )
    plain = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(key, plain, 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _names(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    try:
        address = ipaddress.ip_address(host)
        if not (address.is_loopback or address.is_unspecified):
            names.append(x509.IPAddress(address))
    except ValueError:
        if host != "localhost":
            names.append(x509.DNSName(host))
    own = os.uname().nodename
    return names if own in ("localhost", host) else [*names, x509.DNSName(own)]


def _write(path: Path, data: bytes, mode: int) -> None:
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
