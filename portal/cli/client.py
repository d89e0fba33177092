"""Calls of the REST API: with the token, with retries where a repetition is harmless."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from portal.cli.failures import Exit, Failure

if TYPE_CHECKING:
    import httpx2

DEFAULT_URL = "http://127.0.0.1:8000"
_TRIES = 6
_TRANSIENT = {502, 503, 504}
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Portal:
    """The portal that ``GPUCOMMONS_URL`` names, for the owner of ``GPUCOMMONS_TOKEN``."""

    def __init__(self, *, timeout_s: float = 90) -> None:
        import httpx2  # here, since it takes longer to load than --help takes in all

        self._errors = httpx2
        self.url = os.environ.get("GPUCOMMONS_URL", DEFAULT_URL).rstrip("/")
        token = os.environ.get("GPUCOMMONS_TOKEN", "")
        if not token:
            raise Failure(
                Exit.NOT_SIGNED_IN,
                "cli.no_token",
                "GPUCOMMONS_TOKEN is not set.",
                hint=f"Make a token on {self.url}/tokens and export it.",
            )
        self._http = httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(timeout_s, connect=5),
            trust_env=urlsplit(self.url).hostname not in _LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query=query).json()

    def post(self, path: str, body: dict[str, Any] | None, *, key: str) -> Any:
        """Send a change; ``key`` makes it safe to send it again when the answer was lost."""
        return self.call("POST", path, body=body, headers={"Idempotency-Key": key}).json()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx2.Response:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        pause = 0.2
        for tries_left in reversed(range(_TRIES)):
            try:
                response = self._http.request(
                    method, path, params=params, json=body, headers=headers
                )
            except (self._errors.TransportError, self._errors.DecodingError) as error:
                if not tries_left:
                    raise self._unreachable(str(error)) from error
            except (self._errors.InvalidURL, ValueError) as error:
                raise self._unreachable(str(error)) from error
            else:
                if response.status_code < 400:
                    return response
                if response.status_code not in _TRANSIENT or not tries_left:
                    raise _refusal(response)
            time.sleep(pause)
            pause = min(2 * pause, 3.0)
        raise AssertionError("the last try answers or raises")

    def _unreachable(self, reason: str) -> Failure:
        return Failure(
            Exit.UNREACHABLE,
            "cli.unreachable",
            f"The portal at {self.url} does not answer: {reason or 'no connection'}.",
            hint="Check GPUCOMMONS_URL and whether the portal runs.",
        )


def _refusal(response: httpx2.Response) -> Failure:
    try:
        problem = response.json()
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        problem, code = {}, "cli.unexpected_answer"
        detail = f"The portal answered {response.status_code} {response.reason_phrase}."
    if response.status_code == 401:
        kind = Exit.NOT_SIGNED_IN
    elif response.status_code >= 500:
        kind = Exit.UNREACHABLE
    else:
        kind = Exit.REFUSED
    return Failure(kind, code, detail, hint=problem.get("hint"), field=problem.get("field"))
