"""How a node joins: a one-time code from an administrator, a certificate from the portal.

A code for the name of a node that is there already renews that node's certificate and address.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from django.utils.crypto import salted_hmac

from agent.wire import EnrolmentAnswer, EnrolmentRequest
from portal.core import audit, crash
from portal.core.audit import Actor
from portal.core.errors import Rejected
from portal.core.hints import Hint, give_on_commit
from portal.core.locks import guarded, lock_rows
from portal.fleet import pki
from portal.fleet.models import EnrolmentCode, Node, NodeState

CODE_LIFE = timedelta(hours=1)


def issue_code(*, actor: Actor, node_name: str, now: datetime) -> str:
    """Give a code with which the node of this name may enrol once within an hour.

    Raises ``fleet.node_name_invalid``.
    """
    if not node_name.isprintable() or not node_name.strip() == node_name != "":
        raise Rejected(
            "fleet.node_name_invalid",
            f"{node_name!r} is no name of a node.",
            hint="Use the host's name.",
            field="node_name",
        )
    code = f"gpe_{secrets.token_urlsafe(24)}"
    with guarded():
        row = EnrolmentCode.objects.create(
            digest=_digest(code), node_name=node_name, created_at=now, expires_at=now + CODE_LIFE
        )
        audit.record(
            actor=actor,
            verb="enrolment_code.issued",
            object_type="enrolment_code",
            object_id=row.id,
            now=now,
            detail={"node_name": node_name},
        )
    return code


def enrol(request: EnrolmentRequest, now: datetime) -> EnrolmentAnswer:
    """Take a node in and give it its certificate; the code is used up in the same transaction.

    The same node, known by its key, may repeat the request while the code lives: an answer can be
    lost. Raises ``fleet.code_invalid``, ``fleet.csr_invalid`` or ``fleet.address_invalid``.
    """
    host = _host_of(request.address)
    key_digest = _key_digest(request.csr_pem)
    with guarded():
        codes = lock_rows(EnrolmentCode.objects.filter(digest=_digest(request.code)))
        if not codes or not _usable(codes[0], request.node_name, key_digest, now):
            raise _code_invalid()
        EnrolmentCode.objects.filter(pk=codes[0].pk).update(used_at=now, key_digest=key_digest)
        node, created = Node.objects.get_or_create(
            name=request.node_name,
            defaults={
                "address": request.address,
                "state": NodeState.ENROLLED,
                "created_at": now,
            },
        )
        Node.objects.filter(pk=node.pk).update(address=request.address)
        audit.record(
            actor=Actor(f"node {request.node_name}"),
            verb="node.enrolled" if created else "node.renewed",
            object_type="node",
            object_id=node.id,
            now=now,
            detail={"address": request.address},
        )
        give_on_commit(Hint.WATCH)
        crash.point("enrol.written")
    crash.point("enrol.committed")
    return EnrolmentAnswer(
        node_id=node.id,
        certificate_pem=pki.sign_node(request.csr_pem, node_id=node.id, host=host, now=now),
        ca_pem=pki.ensure_ca(now).pem,
    )


def _usable(code: EnrolmentCode, node_name: str, key_digest: str, now: datetime) -> bool:
    fresh = code.used_at is None or code.key_digest == key_digest
    return fresh and code.expires_at > now and code.node_name == node_name


def _host_of(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, has_port = parts.hostname, parts.port is not None
    except ValueError:
        host, has_port = None, False
    if not host or not has_port or address != f"https://{parts.netloc}" or "@" in address:
        raise Rejected(
            "fleet.address_invalid",
            f"{address!r} is no address of an agent.",
            hint="Use https://host:port as the portal reaches it.",
            field="address",
        )
    return host


def _key_digest(csr_pem: str) -> str:
    key = pki.public_key_of(csr_pem).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(key).hexdigest()


def _digest(code: str) -> str:
    return salted_hmac("portal.fleet.enrolment", code, algorithm="sha256").hexdigest()


def _code_invalid() -> Rejected:
    return Rejected(
        "fleet.code_invalid",
        "This enrolment code is unknown, used, expired or for a node of another name.",
        hint="Have an administrator issue a new code for this node's name.",
        field="code",
    )
