"""The agent's one HTTPS port: mutual TLS, JSON messages of `wire`, long polls.

Each connection has a thread. The handshake happens there, with a deadline, so that a peer that
stalls blocks nobody. A peer needs a certificate of the portal's authority; all but the metrics
also needs it to name the portal.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ValidationError

from agent import clock, crash, log, wire
from agent.collector import Collector
from agent.enrol import Identity
from agent.errors import Refused
from agent.inventory import GpuInventory
from agent.leases import Leases
from agent.metrics import Metrics
from agent.store import Store

HANDSHAKE_S = 10
IDLE_S = 120
MOST_LONG_POLLS = 64
MOST_WAIT_MS = 30_000
MOST_EVENTS = 1_000
MOST_LOG_BYTES = 1024 * 1024
VERSION = "0.1.0"
_LEASE = re.compile(r"/v1/leases/([^/]+)")
_LOG = re.compile(r"/v1/leases/([^/]+)/log")


@dataclass(frozen=True, slots=True)
class Services:
    """What the doors lead to."""

    node_name: str
    isolated: bool
    store: Store
    leases: Leases
    inventory: GpuInventory
    collector: Collector
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    content_type: str = "application/json"
    status: int = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


def _message(message: BaseModel) -> Answer:
    return Answer(message.model_dump_json(exclude_none=True).encode())


def tls_context(identity: Identity) -> ssl.SSLContext:
    """A server context that accepts peers of the portal's authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.ca_pem)
    fd = os.memfd_create("identity")
    try:
        os.write(fd, (identity.key_pem + identity.certificate_pem).encode())
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return context


class AgentServer(ThreadingHTTPServer):
    """Serves until `shutdown`; ``server_address`` tells the port."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, services: Services
    ) -> None:
        self.context = context
        self.services = services
        self.long_polls = threading.BoundedSemaphore(MOST_LONG_POLLS)
        self.stopping = threading.Event()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """As the base class, without asking a name server for this machine's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.error("server.connection_failed", peer=str(client_address[0]), exc=_trace())


def _trace() -> str:
    import traceback

    return traceback.format_exc()


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    protocol_version = "HTTP/1.1"
    server_version = "gpucommons-agent"
    sys_version = ""
    timeout = IDLE_S
    wbufsize = -1
    disable_nagle_algorithm = True
    peer: frozenset[str] = frozenset()

    def setup(self) -> None:
        self.request.settimeout(HANDSHAKE_S)
        self.request = self.server.context.wrap_socket(
            self.request, server_side=True, do_handshake_on_connect=False
        )
        super().setup()

    def handle(self) -> None:
        try:
            self.request.settimeout(HANDSHAKE_S)
            self.request.do_handshake()
        except (OSError, ssl.SSLError) as error:
            self.server.services.metrics.handshake_refused()
            log.error(
                "server.handshake_refused",
                peer=self.client_address[0],
                error=str(error),
            )
            return
        self.request.settimeout(IDLE_S)
        names = (self.request.getpeercert() or {}).get("subjectAltName", ())
        self.peer = frozenset(value for kind, value in names if kind == "URI")
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_PUT(self) -> None:
        self._answer(self._put)

    def _answer(self, handler: Callable[[str, dict[str, str]], Answer]) -> None:
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        try:
            if url.path != "/metrics" and wire.PORTAL_URI not in self.peer:
                raise Refused(
                    403,
                    "agent.not_the_portal",
                    "the certificate does not name the portal",
                    hint="only the portal commands an agent",
                )
            answer = handler(url.path, query)
        except Refused as refused:
            answer = self._problem(refused.problem)
        except Exception:  # noqa: BLE001 - a bug answers 500 and the connection goes on
            log.error("server.bug", path=url.path, exc=_trace())
            answer = self._problem(
                wire.Problem(status=500, code="agent.bug", detail="the agent failed; see its log")
            )
        self._send(answer)

    def _problem(self, problem: wire.Problem) -> Answer:
        return Answer(
            problem.model_dump_json(exclude_none=True).encode(),
            "application/problem+json",
            problem.status,
        )

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    # -- reading ---------------------------------------------------------------------------------

    def _get(self, path: str, query: dict[str, str]) -> Answer:
        services = self.server.services
        if path == "/v1/events":
            return self._events(query)
        if path == "/v1/leases":
            last_seq, leases = services.leases.snapshot()
            return _message(
                wire.LeaseList(
                    boot_id=clock.boot_id(),
                    stream_id=services.store.stream_id,
                    next_event=last_seq + 1,
                    leases=leases,
                )
            )
        if path == "/v1/inventory":
            return self._inventory()
        if path == "/v1/samples":
            return _message(services.collector.newest())
        if path == "/metrics":
            return Answer(services.metrics.text(), services.metrics.content_type)
        if match := _LEASE.fullmatch(path):
            return _message(services.leases.report(match[1]))
        if match := _LOG.fullmatch(path):
            return self._log(match[1], query)
        raise _unknown(path)

    def _inventory(self) -> Answer:
        services = self.server.services
        return _message(
            wire.Inventory(
                node_name=services.node_name,
                agent_version=VERSION,
                boot_id=clock.boot_id(),
                stream_id=services.store.stream_id,
                at=clock.now(),
                isolated=services.isolated,
                gpus=services.inventory.all(),
            )
        )

    def _waiting(self, wait_ms: int) -> Callable[[], None]:
        """Takes one of the places for long polls; the caller gives it back."""
        if wait_ms == 0:
            return lambda: None
        if not self.server.long_polls.acquire(blocking=False):
            raise Refused(
                503,
                "agent.busy",
                f"{MOST_LONG_POLLS} calls wait already",
                hint="ask without wait_ms or later",
            )
        return self.server.long_polls.release

    def _events(self, query: dict[str, str]) -> Answer:
        after = _number(query, "after", 0, None)
        limit = max(1, _number(query, "limit", MOST_EVENTS, MOST_EVENTS))
        wait_ms = _number(query, "wait_ms", 0, MOST_WAIT_MS)
        store = self.server.services.store
        done = self._waiting(wait_ms)
        try:
            if wait_ms:
                store.wait_for_event(after, clock.monotonic_ns() + wait_ms * 1_000_000)
            events = store.events(after, limit)
        finally:
            done()
        crash.point("agent.event.read")
        batch = {
            "stream_id": store.stream_id,
            "boot_id": clock.boot_id(),
            "events": events,
            "next_after": events[-1]["seq"] if events else after,
        }
        return Answer(json.dumps(batch, separators=(",", ":")).encode())

    def _log(self, lease_id: str, query: dict[str, str]) -> Answer:
        offset = _number(query, "offset", 0, None)
        limit = _number(query, "limit", MOST_LOG_BYTES, MOST_LOG_BYTES)
        wait_ms = _number(query, "wait_ms", 0, MOST_WAIT_MS)
        done = self._waiting(wait_ms)
        try:
            text, size, final = self.server.services.leases.read_log(
                lease_id, offset=offset, limit=limit, wait_ms=wait_ms
            )
        finally:
            done()
        return Answer(
            text,
            "application/octet-stream",
            headers=(
                (wire.LOG_SIZE_HEADER, str(size)),
                (wire.LOG_FINAL_HEADER, "true" if final else "false"),
            ),
        )

    # -- orders ----------------------------------------------------------------------------------

    def _put(self, path: str, query: dict[str, str]) -> Answer:
        body = self._body()
        match = _LEASE.fullmatch(path)
        if match is None:
            raise _unknown(path)
        try:
            document = json.loads(body)
        except ValueError as error:
            raise Refused(400, "agent.malformed", f"the body is not JSON: {error}") from None
        try:
            spec = wire.LeaseSpec.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            raise Refused(
                422,
                "agent.invalid",
                first["msg"],
                field=".".join(str(part) for part in first["loc"]) or None,
            ) from None
        if spec.lease_id != match[1]:
            raise Refused(
                422,
                "agent.invalid",
                "path and body name different leases",
                field="lease_id",
            )
        return _message(self.server.services.leases.apply(spec))

    def _body(self) -> bytes:
        try:
            size = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self.close_connection = True
            raise Refused(411, "agent.length_required", "the length must be given") from None
        if not 0 <= size <= wire.MAX_BODY_BYTES:
            self.close_connection = True
            raise Refused(
                413,
                "agent.body_too_large",
                f"the body has {size} bytes",
                hint=f"at most {wire.MAX_BODY_BYTES} bytes are read",
            )
        return self.rfile.read(size)


def _unknown(path: str) -> Refused:
    return Refused(404, "agent.path_unknown", f"nothing lives at {path}")


def _number(query: dict[str, str], name: str, default: int, most: int | None) -> int:
    """A parameter from 0 on; more than ``most`` counts as ``most``."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refused(422, "agent.invalid", f"{name} is a whole number from 0 on", field=name)
    return int(text) if most is None else min(int(text), most)
