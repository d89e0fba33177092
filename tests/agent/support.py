"""A portal's authority, an agent as a process of its own, and a client that speaks to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent import enrol, wire

DEADLINE_S = 30
ROOT = Path(__file__).parents[2]
SUPERVISOR = ROOT / "native" / "build" / "gpucommons-supervisor"
T = TypeVar("T")


def eventually(probe: Callable[[], T | None], what: str = "") -> T:
    """The probe's first true value; fails after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        value = probe()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE_S} s: {what or probe}")


class Authority:
    """Signs certificates as the portal does."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self._certificate = self._sign(
            self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=0), None
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _sign(
        self,
        subject: x509.Name,
        key: Any,
        constraints: x509.BasicConstraints,
        names: list[x509.GeneralName] | None,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(constraints, critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def certify(self, key: Any, uri: str) -> str:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)]
        constraints = x509.BasicConstraints(ca=False, path_length=None)
        certificate = self._sign(subject, key, constraints, names)
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def credential(self, uri: str) -> tuple[str, str]:
        """A new key and its certificate, PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
        return pem, self.certify(key.public_key(), uri)

    def identity(self) -> enrol.Identity:
        key, certificate = self.credential(wire.NODE_URI_PREFIX + "node-1")
        return enrol.Identity("node-1", "node-1", "https://127.0.0.1:0", key, certificate, self.pem)

    def client_context(self, folder: Path, uri: str) -> ssl.SSLContext:
        key, certificate = self.credential(uri)
        folder.mkdir(exist_ok=True)
        pem = folder / f"{uri.replace(':', '_')}.pem"
        pem.write_text(key + certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=self.pem)
        context.load_cert_chain(pem)
        return context


@dataclass
class Reply:
    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One kept-alive connection to an agent."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        url = urlsplit(address)
        self.connection = http.client.HTTPSConnection(
            url.hostname or "", url.port, context=context, timeout=DEADLINE_S + 10
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> Reply:
        self.connection.request(method, path, body)
        response = self.connection.getresponse()
        return Reply(response.status, response.read(), response.headers)

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply.body
        return reply.json

    def put(self, spec: wire.LeaseSpec) -> Reply:
        return self.ask("PUT", f"/v1/leases/{spec.lease_id}", spec.model_dump_json().encode())

    def close(self) -> None:
        self.connection.close()


@dataclass
class AgentProcess:
    """`gpucommons-agent run` on a data folder; may be killed and started again."""

    data: Path
    authority: Authority
    simulated: str = "H200:share,H200:mig"
    stop_jobs: bool = False
    supervisor: Path = SUPERVISOR
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    clients: list[Client] = field(default_factory=list)

    def enrol(self) -> None:
        self.data.mkdir(mode=0o700, exist_ok=True)
        enrol.save(self.data, self.authority.identity())

    def run(self) -> subprocess.Popen[bytes]:
        """Starts the command and does not wait for anything."""
        command = [
            *(sys.executable, "-m", "agent.main", "run", "--data", str(self.data)),
            *("--listen", "127.0.0.1:0", "--gpus", "simulated", "--simulated", self.simulated),
            *("--supervisor", str(self.supervisor), "--work", str(self.data.parent / "work")),
        ]
        if self.stop_jobs:
            command.append("--stop-jobs")
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
        )

    def start(self) -> None:
        """Runs an agent until it listens or dies."""
        (self.data / "agent.json").unlink(missing_ok=True)
        process = self.process = self.run()
        eventually(lambda: (self.data / "agent.json").exists() or process.poll() is not None)

    @property
    def address(self) -> str:
        return str(json.loads((self.data / "agent.json").read_text())["address"])

    def client(self, uri: str = wire.PORTAL_URI) -> Client:
        context = self.authority.client_context(self.data.parent / "clients", uri)
        client = Client(self.address, context)
        self.clients.append(client)
        return client

    def close(self) -> None:
        """Ends the agent with all its jobs."""
        for client in self.clients:
            client.close()
        if self.process is not None and self.process.poll() is None:
            self.terminate()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


class Follower:
    """Reads an agent's events in order, from the first or a later one on."""

    def __init__(self, client: Client, after: int = 0) -> None:
        self.client = client
        self.after = after
        self.events: list[wire.Event] = []

    def read(self, wait_ms: int = 1000) -> list[wire.Event]:
        batch = wire.EventBatch.model_validate(
            self.client.get(f"/v1/events?after={self.after}&wait_ms={wait_ms}")
        )
        self.after = batch.next_after
        self.events += batch.events
        return batch.events

    def wait_for(self, kind: wire.EventKind, lease_id: str) -> wire.LeaseReport:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            for event in self.events:
                if event.kind is kind and event.lease and event.lease.lease_id == lease_id:
                    return event.lease
            self.read()
        raise AssertionError(f"no event {kind} of {lease_id}: {self.events}")

    def ended(self, lease_id: str) -> wire.LeaseReport:
        return self.wait_for(wire.EventKind.ENDED, lease_id)

    def started(self, lease_id: str) -> wire.LeaseReport:
        return self.wait_for(wire.EventKind.STARTED, lease_id)


def running(
    lease_id: str,
    gpu_uuid: str,
    *argv: str,
    generation: int = 1,
    memory_mib: int = 1000,
    compute_milli: int = 10,
    **process: Any,
) -> wire.LeaseSpec:
    return wire.LeaseSpec(
        lease_id=lease_id,
        generation=generation,
        desired=wire.Desired.RUNNING,
        slice=wire.SliceSpec(
            gpu_uuid=gpu_uuid,
            kind=wire.SliceKind.SHARE,
            memory_mib=memory_mib,
            compute_milli=compute_milli,
        ),
        process=wire.ProcessSpec(argv=list(argv), **process),
    )


def absent(lease_id: str, generation: int) -> wire.LeaseSpec:
    return wire.LeaseSpec(lease_id=lease_id, generation=generation, desired=wire.Desired.ABSENT)
