"""Keys, certificates and tokens that tests make for themselves."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="pip install cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """A server's certificate that it has signed itself.

    Attributes:
        path: The certificate alone, as a client needs it.
        chain: The key, then the certificate.
        keystore: Both, as Java wants them; the password is ``secret``.
    """

    path: Path
    chain: Path
    keystore: Path


def certificate(work: Path, host: str = "127.0.0.1", days: int = 1) -> Certificate:
    """Make one.

    Args:
        work: An empty directory.
        host: The name or address that it is for.
        days: When it expires; a negative number is in the past.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    is_address = host[0].isdigit()
    alias = x509.IPAddress(ipaddress.ip_address(host)) if is_address else x509.DNSName(host)
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - 10 * DAY)
        .not_valid_after(now + days * DAY)
        .add_extension(x509.SubjectAlternativeName([alias]), critical=False)
        .sign(key, hashes.SHA256())
    )
    found = Certificate(work / "ca.pem", work / "server.pem", work / "keys.p12")
    found.path.write_bytes(made.public_bytes(forms.Encoding.PEM))
    private = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )  # fmt: skip
    found.chain.write_bytes(private + found.path.read_bytes())
    secret = forms.BestAvailableEncryption(b"secret")
    found.keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(b"hms", key, made, None, secret)
    )
    return found


class Issuer:
    """Signs tokens (JWT, RS256)."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def keys(self) -> str:
        """The set of public keys (JWKS) by which a server checks tokens."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
            "n": _text(numbers.n.to_bytes(256, "big")), "e": _text(numbers.e.to_bytes(3, "big")),
        }  # fmt: skip
        return json.dumps({"keys": [key]})

    def token(self, user: str, days: int = 1) -> str:
        """A token for a user; a negative number of days: it has expired."""
        end = dt.datetime.now(dt.UTC) + days * DAY
        claims = {"sub": user, "exp": int(end.timestamp())}
        parts = ({"alg": "RS256", "kid": "1"}, claims)
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
