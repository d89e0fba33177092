"""Portal and nodes know each other by the URI in their certificates."""

import ssl
import stat
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.wire import NODE_URI_PREFIX, PORTAL_URI
from portal.config import config
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.fleet import pki

NODE = "0190-node"


def signing_request(key, algorithm=hashes.SHA256()):  # noqa: B008  (immutable)
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM).decode()


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An authority of the test's own."""
    monkeypatch.setattr(pki, "config", config.model_copy(update={"data": tmp_path / "data"}))
    return tmp_path / "data" / "pki"


@pytest.fixture
def server_context(tmp_path):
    """The TLS of an agent that enrolled as ``node_id`` at ``host``, with a key of its own."""

    def make(node_id, host="127.0.0.1"):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = pki.sign_node(signing_request(key), node_id=node_id, host=host, now=utc_now())
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file = tmp_path / "node.pem"
        file.write_text(certificate + private.decode())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=pki.ensure_ca(utc_now()).pem)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    return make


def shake_hands(client_context, server_context, host):
    """Carry a handshake through memory until both sides are done; give the server's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    return server


def test_a_node_and_the_portal_accept_each_other(server_context):
    server = shake_hands(pki.client_ssl_context(NODE), server_context(NODE), "127.0.0.1")

    assert ("URI", PORTAL_URI) in server.getpeercert()["subjectAltName"]


def test_another_node_of_the_same_authority_is_refused(server_context):
    with pytest.raises(ssl.SSLCertVerificationError, match="the peer is"):
        shake_hands(pki.client_ssl_context(NODE), server_context("0190-other"), "127.0.0.1")


def test_a_node_at_another_address_is_refused(server_context):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(pki.client_ssl_context(NODE), server_context(NODE, "10.0.0.7"), "127.0.0.1")


@pytest.mark.parametrize(
    ("host", "name"),
    [("gpu7.example.org", x509.DNSName), ("10.0.0.7", x509.IPAddress), ("::1", x509.IPAddress)],
)
def test_a_node_certificate_names_node_and_host_and_ends(host, name):
    now = utc_now()
    key = ec.generate_private_key(ec.SECP256R1())

    pem = pki.sign_node(signing_request(key), node_id=NODE, host=host, now=now)

    certificate = x509.load_pem_x509_certificate(pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [NODE_URI_PREFIX + NODE]
    assert [str(value) for value in names.get_values_for_type(name)] == [host]
    assert certificate.not_valid_after_utc <= now + timedelta(days=397)


def test_keys_are_for_the_portal_alone(own_folder):
    pki.ensure_portal_certificate(utc_now())

    assert stat.S_IMODE(own_folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in own_folder.iterdir()} == {0o600}


def test_the_portal_renews_its_certificate_a_month_before_it_ends():
    now = utc_now()
    file, _ = pki.ensure_portal_certificate(now)
    first = file.read_text()

    pki.ensure_portal_certificate(now + timedelta(days=366))
    kept = file.read_text()
    pki.ensure_portal_certificate(now + timedelta(days=368))

    assert kept == first
    assert file.read_text() != first


@pytest.mark.parametrize(
    "request_pem",
    [
        "no request at all",
        signing_request(rsa.generate_private_key(65537, 2048)),
        signing_request(ec.generate_private_key(ec.SECP384R1())),
    ],
    ids=["text", "rsa", "other curve"],
)
def test_other_signing_requests_are_refused(request_pem):
    with pytest.raises(Rejected, match=r"fleet\.csr_invalid"):
        pki.sign_node(request_pem, node_id=NODE, host="127.0.0.1", now=utc_now())
