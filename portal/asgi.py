"""The portal as an ASGI application, as uvicorn serves it.

Pages and REST are synchronous: they run in Django's WSGI application on a pool of threads, which
costs less than Django's own ASGI handler. What streams (server-sent events) belongs into
`_STREAMS`: asynchronous applications by path prefix, which hold no thread while they wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from a2wsgi import WSGIMiddleware

from portal.wsgi import application as wsgi_application

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

#: More than `portal.api.waiting.MOST_WAITERS`, so that long polls never take the last thread.
THREADS = 40

_STREAMS: dict[str, AsgiApplication] = {}
_pages = WSGIMiddleware(wsgi_application, workers=THREADS)  # type: ignore[arg-type]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "http":
        await _streaming_or_page(scope["path"])(scope, receive, send)
    else:
        raise ValueError(f"the portal does not speak {scope['type']}")


def _streaming_or_page(path: str) -> AsgiApplication:
    for prefix, stream in _STREAMS.items():
        if path.startswith(prefix):
            return stream
    return _pages  # type: ignore[return-value]


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
