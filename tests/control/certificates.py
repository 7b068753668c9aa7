"""Certificates for tests, made when they are asked for."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed, which makes the certificates")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key as PEM files, and in memory for those that it signs."""

    file: Path
    key_file: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make(
    folder: Path, name: str, issuer: Certificate | None = None, address: str = "127.0.0.1", begins: int = -1,
    ends: int = 1, password: bytes = b"",
) -> Certificate:  # fmt: skip
    """A certificate for an address, valid from so many days before or after today; signed by itself or an issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins * DAY)
        .not_valid_after(now + ends * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .sign(issuer.key if issuer else key, hashes.SHA256())
    )
    file, key_file = folder / f"{name}.pem", folder / f"{name}.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    key_file.touch(mode=0o600)
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    return Certificate(file, key_file, certificate, key)
