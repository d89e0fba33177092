"""Enrolment: one code, one node, safe to repeat."""

from datetime import timedelta
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.wire import NODE_URI_PREFIX, EnrolmentRequest
from portal.core.audit import SYSTEM
from portal.core.clock import utc_now
from portal.core.errors import PortalError, Rejected
from portal.fleet.enrolment import enrol, issue_code
from portal.fleet.models import Node
from tests.racing import codes, race


def code(now, node_name="gpu7"):
    return issue_code(actor=SYSTEM, node_name=node_name, now=now)


def request(with_code, *, node_name="gpu7", address="https://10.0.0.7:7070", csr_pem=None):
    return EnrolmentRequest(
        code=with_code, node_name=node_name, address=address, csr_pem=csr_pem or signing_request()
    )


def signing_request():
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


@pytest.fixture
def now():
    return utc_now()


@pytest.mark.django_db
def test_a_node_with_a_code_gets_a_certificate_of_its_own(now):
    answer = enrol(request(code(now)), now)

    row = Node.objects.get()
    certificate = x509.load_pem_x509_certificate(answer.certificate_pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert answer.node_id == row.id
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [NODE_URI_PREFIX + row.id]
    assert (row.name, row.state, row.address) == ("gpu7", "enrolled", "https://10.0.0.7:7070")


@pytest.mark.django_db
def test_an_answer_that_was_lost_can_be_asked_for_again_with_the_same_key(now):
    asked = request(code(now))

    assert enrol(asked, now).node_id == enrol(asked, now).node_id
    assert Node.objects.count() == 1


@pytest.mark.django_db
def test_a_code_serves_one_key(now):
    used = code(now)
    enrol(request(used), now)

    with pytest.raises(Rejected, match=r"fleet\.code_invalid"):
        enrol(request(used), now)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda fresh: request("gpe_unknown"), "fleet.code_invalid"),
        (lambda fresh: request(fresh, node_name="gpu8"), "fleet.code_invalid"),
        (lambda fresh: request(fresh, csr_pem="nothing"), "fleet.csr_invalid"),
        (lambda fresh: request(fresh, address="http://10.0.0.7:1"), "fleet.address_invalid"),
        (lambda fresh: request(fresh, address="https://10.0.0.7"), "fleet.address_invalid"),
        (lambda fresh: request(fresh, address="https://h:1/path"), "fleet.address_invalid"),
        (lambda fresh: request(fresh, address="https://u@h:1"), "fleet.address_invalid"),
        (lambda fresh: request(fresh, address="https://h:99999"), "fleet.address_invalid"),
        (lambda fresh: request(fresh, address="https://[::1:1"), "fleet.address_invalid"),
    ],
)
def test_a_wrong_request_is_refused_and_the_code_still_serves(now, ask, problem):
    fresh = code(now)

    with pytest.raises(PortalError) as refused:
        enrol(ask(fresh), now)

    assert refused.value.code == problem
    assert not Node.objects.exists()
    assert enrol(request(fresh), now).node_id


@pytest.mark.django_db
def test_a_code_lives_for_an_hour(now):
    old = code(now - timedelta(hours=1))

    with pytest.raises(Rejected, match=r"fleet\.code_invalid"):
        enrol(request(old), now)


@pytest.mark.django_db
def test_a_new_code_renews_a_node_in_place(now):
    first = enrol(request(code(now)), now)

    second = enrol(request(code(now), address="https://10.0.0.8:7070"), now)

    assert second.node_id == first.node_id
    assert Node.objects.get().address == "https://10.0.0.8:7070"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", " gpu7", "gpu\n7"])
def test_a_node_needs_a_printable_name(now, name):
    with pytest.raises(Rejected, match=r"fleet\.node_name_invalid"):
        code(now, name)


@pytest.mark.django_db(transaction=True)
def test_racing_requests_with_one_code_enrol_one_key(now):
    fresh = code(now)

    outcomes = race(*(partial(enrol, request(fresh), now) for _ in range(6)))

    assert codes(outcomes) == ["fleet.code_invalid"] * 5
    assert Node.objects.count() == 1
