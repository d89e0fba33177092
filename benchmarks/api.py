"""A caller of the REST API with one keep-alive connection, as cheap as a caller can be."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

LIVING = "QUEUED,STARTING,RUNNING"
_TIMEOUT_S = 60
_WAIT_MS = 20_000
_PAGE = 200
# The server closes a connection that was idle for 5 s.
_LONGEST_IDLE_S = 2.0


class Failed(Exception):
    """The measurement has no value: something did not go as it must."""


class Api:
    """Not for use by several threads: each takes its own."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            place.hostname or "", place.port, timeout=_TIMEOUT_S
        )
        self._headers = {"Authorization": f"Bearer {token}"}
        self._used_at = 0.0

    def get(self, path: str, **query: object) -> Any:
        return json.loads(self._call("GET", path, query)[0])

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(self._call("POST", path, {}, json.dumps(body))[0])

    def text(self, path: str, **query: object) -> tuple[str, http.client.HTTPMessage]:
        raw, headers = self._call("GET", path, query)
        return raw.decode(errors="replace"), headers

    def connect(self) -> None:
        """Open the connection now, so that the next call finds it open."""
        if time.monotonic() - self._used_at > _LONGEST_IDLE_S:
            self._connection.close()
            self._connection.connect()
            self._used_at = time.monotonic()

    def close(self) -> None:
        self._connection.close()

    def _call(
        self, method: str, path: str, query: dict[str, object], body: str | None = None
    ) -> tuple[bytes, http.client.HTTPMessage]:
        self.connect()
        target = f"/api/v1{path}" + (f"?{urlencode(query)}" if query else "")
        sent = self._headers if body is None else _JSON | self._headers
        self._connection.request(method, target, body, sent)
        response = self._connection.getresponse()
        raw = response.read()
        self._used_at = time.monotonic()
        if response.status >= 400:
            raise Failed(f"{method} {target}: {response.status} {raw.decode(errors='replace')}")
        return raw, response.headers

    # -- what every benchmark does ---------------------------------------------------------------

    def wait_ended(self, path: str, timeout_s: float) -> Any:
        """Wait for the end of a job or array by long polls; give its last reading."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.get(path, wait_ms=_WAIT_MS, unless_state=LIVING)
            if found["state"] not in LIVING.split(","):
                return found
            if time.monotonic() >= deadline:
                raise Failed(f"{path} is still {found['state']} after {timeout_s:g} s")

    def any_living(self, project: str) -> bool:
        return bool(self.get("/jobs", project=project, state=LIVING, limit=1)["items"])

    def jobs(self, project: str, job_ids: set[str]) -> dict[str, Any]:
        """These jobs, read from the pages of their project, newest first."""
        found: dict[str, Any] = {}
        cursor: dict[str, object] = {}
        while len(found) < len(job_ids):
            page = self.get("/jobs", project=project, limit=_PAGE, **cursor)
            found |= {job["id"]: job for job in page["items"] if job["id"] in job_ids}
            if not page["next_cursor"]:
                break
            cursor = {"cursor": page["next_cursor"]}
        return found


_JSON = {"Content-Type": "application/json"}
