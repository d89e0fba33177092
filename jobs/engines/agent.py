"""The engine of our own node agents: HTTPS with mutual TLS, one connection pool for each node."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from agent import wire
from agent.wire import EventBatch, Inventory, LeaseList, LeaseReport, LeaseSpec, SampleList
from jobs.engines.base import Engine, EngineRejected, EngineTransient, LogChunk, NodeTarget

M = TypeVar("M", bound=BaseModel)


class AgentEngine(Engine):
    """``ssl_context(node_id)`` gives the portal's identity and trust for one node."""

    def __init__(
        self,
        ssl_context: Callable[[str], ssl.SSLContext],
        *,
        timeout_s: float,
        before_call: Callable[[], None] = lambda: None,
    ) -> None:
        self._ssl_context = ssl_context
        self._timeout_s = timeout_s
        self._before_call = before_call
        self._clients: dict[NodeTarget, httpx2.Client] = {}
        self._mutex = threading.Lock()

    def inventory(self, node: NodeTarget) -> Inventory:
        return self._read(Inventory, self._call(node, "GET", "/v1/inventory"))

    def apply(self, node: NodeTarget, spec: LeaseSpec) -> LeaseReport:
        response = self._call(
            node, "PUT", f"/v1/leases/{spec.lease_id}", content=spec.model_dump_json()
        )
        return self._read(LeaseReport, response)

    def leases(self, node: NodeTarget) -> LeaseList:
        return self._read(LeaseList, self._call(node, "GET", "/v1/leases"))

    def events(self, node: NodeTarget, *, after: int, wait_ms: int) -> EventBatch:
        response = self._call(
            node,
            "GET",
            "/v1/events",
            params={"after": after, "wait_ms": wait_ms, "limit": 200},
            wait_s=wait_ms / 1000,
        )
        return self._read(EventBatch, response)

    def samples(self, node: NodeTarget) -> SampleList:
        return self._read(SampleList, self._call(node, "GET", "/v1/samples"))

    def read_log(
        self, node: NodeTarget, lease_id: str, *, offset: int, limit: int, wait_ms: int
    ) -> LogChunk:
        response = self._call(
            node,
            "GET",
            f"/v1/leases/{lease_id}/log",
            params={"offset": offset, "limit": limit, "wait_ms": wait_ms},
            wait_s=wait_ms / 1000,
        )
        data = response.content
        final = response.headers.get(wire.LOG_FINAL_HEADER) == "true"
        size = int(response.headers.get(wire.LOG_SIZE_HEADER, offset + len(data)))
        end = offset + len(data)
        return LogChunk(data, end, final and end >= size, size)

    def _client(self, node: NodeTarget) -> httpx2.Client:
        with self._mutex:
            client = self._clients.get(node)
            if client is None:
                client = httpx2.Client(
                    base_url=node.address,
                    verify=self._ssl_context(node.node_id),
                    timeout=self._timeout_s,
                    trust_env=False,
                    limits=httpx2.Limits(max_connections=64, max_keepalive_connections=16),
                )
                self._clients[node] = client
            return client

    def _call(
        self,
        node: NodeTarget,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        content: str | None = None,
        wait_s: float = 0,
    ) -> httpx2.Response:
        self._before_call()
        try:
            response = self._client(node).request(
                method,
                path,
                params=params,
                content=content,
                headers={"Content-Type": "application/json"} if content else None,
                timeout=self._timeout_s + wait_s,
            )
        except (httpx2.TransportError, ssl.SSLError, OSError) as error:
            raise EngineTransient(f"{node.address}: {error!r}") from error
        if response.status_code < 400:
            return response
        if response.status_code >= 500 or response.status_code == 429:
            raise EngineTransient(f"{node.address}: status {response.status_code}")
        raise _rejection(response)

    def _read(self, kind: type[M], response: httpx2.Response) -> M:
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise EngineTransient(f"unreadable answer to {response.request.url.path}") from error


def _rejection(response: httpx2.Response) -> EngineRejected:
    try:
        problem = wire.Problem.model_validate_json(response.content)
    except ValidationError:
        return EngineRejected("agent.refused", f"The node answered {response.status_code}.")
    return EngineRejected(problem.code, problem.detail)
