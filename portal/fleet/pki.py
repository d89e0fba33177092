"""The portal's own certificate authority and the TLS between portal and node agents.

Peers are named by a URI in their certificate. Keys are ECDSA P-256 in ``<data>/pki``, mode 0600, in
a folder of mode 0700.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent.wire import NODE_URI_PREFIX, PORTAL_URI
from portal.config import config
from portal.core.clock import utc_now
from portal.core.errors import Rejected

CA_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=397)
RENEW_BEFORE = timedelta(days=30)
_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class Authority:
    """The portal's certificate authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return _pem(self.certificate)


def ensure_ca(now: datetime) -> Authority:
    """Read the authority, made on first use; processes that race for it agree on one."""
    with _folder_locked():
        if not _path("ca.pem").exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = _name("GPU Commons CA")
            identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
            certificate = (
                _certificate(name, name, key.public_key(), CA_LIFE, now)
                .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(_key_usage(authority=True), critical=True)
                .add_extension(identifier, critical=False)
                .sign(key, hashes.SHA256())
            )
            _write("ca.key", _key_pem(key))
            _write("ca.pem", _pem(certificate))
    return Authority(
        x509.load_pem_x509_certificate(_path("ca.pem").read_bytes()), _read_key("ca.key")
    )


def public_key_of(csr_pem: str) -> ec.EllipticCurvePublicKey:
    """Check a signing request and give its key. Raises ``fleet.csr_invalid``."""
    try:
        request = x509.load_pem_x509_csr(csr_pem.encode())
        key = request.public_key()
        sound = request.is_signature_valid
    except (ValueError, TypeError, InvalidSignature) as error:
        raise _csr_invalid("it is not a PEM signing request") from error
    if not sound:
        raise _csr_invalid("its signature does not prove the key")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _csr_invalid("its key is not ECDSA P-256")
    return key


def sign_node(csr_pem: str, *, node_id: str, host: str, now: datetime) -> str:
    """Give a node its certificate (PEM), for 397 days: its URI and the host of its address.

    Nothing but the key is taken from the request. Raises ``fleet.csr_invalid``.
    """
    uri = NODE_URI_PREFIX + node_id
    certificate = _leaf(ensure_ca(now), public_key_of(csr_pem), uri, host=host, now=now)
    return _pem(certificate)


def ensure_portal_certificate(now: datetime) -> tuple[Path, Path]:
    """Give the files of the portal's client certificate and key, renewed a month before the end."""
    authority = ensure_ca(now)
    with _folder_locked():
        if not _path("portal.pem").exists() or _ends_soon("portal.pem", now):
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = _leaf(authority, key.public_key(), PORTAL_URI, host=None, now=now)
            # One file: certificate and key are replaced together.
            _write("portal.pem", _pem(certificate) + _key_pem(key))
    return _path("portal.pem"), _path("ca.pem")


def client_ssl_context(node_id: str) -> ssl.SSLContext:
    """Make the TLS context for calls to one node.

    The handshake fails, with `ssl.SSLCertVerificationError`, unless the peer shows a certificate of
    our authority for the host called and with the URI of this node.
    """
    portal_pem, ca_pem = ensure_portal_certificate(utc_now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(ca_pem)
    context.load_cert_chain(portal_pem)
    uri = NODE_URI_PREFIX + node_id
    context.sslsocket_class = type("NodeSocket", (_NamedSocket,), {"wanted_uri": uri})
    context.sslobject_class = type("NodeObject", (_NamedObject,), {"wanted_uri": uri})
    return context


class _NamedSocket(ssl.SSLSocket):
    wanted_uri: ClassVar[str]

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _check_uri(self.getpeercert(), self.wanted_uri)


class _NamedObject(ssl.SSLObject):
    wanted_uri: ClassVar[str]

    def do_handshake(self) -> None:
        super().do_handshake()
        _check_uri(self.getpeercert(), self.wanted_uri)


def _check_uri(certificate: Any, wanted_uri: str) -> None:
    names = (certificate or {}).get("subjectAltName", ())
    uris = [value for kind, value in names if kind == "URI"]
    if uris != [wanted_uri]:
        raise ssl.SSLCertVerificationError(f"the peer is {uris}, not {wanted_uri}")


def _leaf(
    authority: Authority,
    key: ec.EllipticCurvePublicKey,
    uri: str,
    *,
    host: str | None,
    now: datetime,
) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)]
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    if host is not None:
        names.append(_host_name(host))
        usage = ExtendedKeyUsageOID.SERVER_AUTH
    issuer = x509.SubjectKeyIdentifier.from_public_key(authority.key.public_key())
    return (
        _certificate(_name("GPU Commons"), authority.certificate.subject, key, LEAF_LIFE, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    life: timedelta,
    now: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def _read_key(name: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(_path(name).read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{name} holds another kind of key")
    return key


def _ends_soon(name: str, now: datetime) -> bool:
    certificate = x509.load_pem_x509_certificate(_path(name).read_bytes())
    return certificate.not_valid_after_utc < now + RENEW_BEFORE


def _path(name: str) -> Path:
    return config.data / "pki" / name


@contextmanager
def _folder_locked() -> Iterator[None]:
    folder = config.data / "pki"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(name: str, text: str) -> None:
    """Replace a file as a whole, never readable by others."""
    partial = _path(f"{name}.new")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(_path(name))


def _csr_invalid(why: str) -> Rejected:
    return Rejected(
        "fleet.csr_invalid",
        f"The signing request cannot be used: {why}.",
        hint="Make a new ECDSA P-256 key and a PEM signing request for it.",
        field="csr_pem",
    )
