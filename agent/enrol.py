"""How a node becomes known to a portal: a key made here, a certificate signed there."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from agent.wire import EnrolmentAnswer, EnrolmentRequest

ENROL_PATH = "/api/v1/nodes/enrol"
TIMEOUT_S = 30
_FILE = "identity.json"
_MOST_ANSWER_BYTES = 1024 * 1024


class EnrolmentFailed(Exception):
    """The portal did not take the node; the text says why."""


class NotEnrolled(Exception):
    """The data folder holds no identity."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this node is; PEM texts. The key never leaves the node."""

    node_id: str
    node_name: str
    address: str
    key_pem: str
    certificate_pem: str
    ca_pem: str


def load(data: Path) -> Identity:
    """Reads the identity. Raises `NotEnrolled`."""
    try:
        return Identity(**json.loads((data / _FILE).read_text()))
    except FileNotFoundError:
        raise NotEnrolled(f"{data} belongs to no node: enrol first") from None


def save(data: Path, identity: Identity) -> None:
    """Replaces the identity whole; only this user can read it."""
    new = data / f"{_FILE}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w") as file:
        json.dump(asdict(identity), file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(data / _FILE)


def enrol(data: Path, *, portal: str, code: str, address: str, node_name: str) -> Identity:
    """Enrols this node with a one-time code. Raises `EnrolmentFailed`."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node_name)]))
        .sign(key, hashes.SHA256())
    )
    message = EnrolmentRequest(
        code=code,
        node_name=node_name,
        address=address,
        csr_pem=request.public_bytes(serialization.Encoding.PEM).decode(),
    )
    answer = _post(portal, message)
    identity = Identity(
        node_id=answer.node_id,
        node_name=node_name,
        address=address,
        key_pem=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        certificate_pem=answer.certificate_pem,
        ca_pem=answer.ca_pem,
    )
    save(data, identity)
    return identity


def _post(portal: str, message: EnrolmentRequest) -> EnrolmentAnswer:
    url = urlsplit(portal)
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise EnrolmentFailed(f"{portal} is no http or https address")
    connection = (
        http.client.HTTPSConnection(
            url.hostname,
            url.port,
            timeout=TIMEOUT_S,
            context=ssl.create_default_context(),
        )
        if url.scheme == "https"
        else http.client.HTTPConnection(url.hostname, url.port, timeout=TIMEOUT_S)
    )
    try:
        connection.request(
            "POST",
            url.path.rstrip("/") + ENROL_PATH,
            message.model_dump_json(),
            {"Content-Type": "application/json", "Accept": "application/json"},
        )
        response = connection.getresponse()
        body = response.read(_MOST_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise EnrolmentFailed(f"no answer from {portal}: {error}") from error
    finally:
        connection.close()
    if response.status not in {http.client.OK, http.client.CREATED}:
        raise EnrolmentFailed(f"the portal refused ({response.status}): {_detail(body)}")
    try:
        return EnrolmentAnswer.model_validate_json(body)
    except ValidationError as error:
        raise EnrolmentFailed(f"the portal's answer makes no sense: {error}") from error


def _detail(body: bytes) -> str:
    try:
        problem = json.loads(body)
        return f"{problem['code']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return "no reason given"
