"""The errors that a caller may see: a stable code, what is wrong, where, and the way out.

Doors turn them into RFC 9457 problem details or a page. Anything else that is raised is a bug and
answers 500 without details.
"""

from __future__ import annotations


class PortalError(Exception):
    """Base of every error with a public face.

    ``code`` is ``<room>.<rule>``; ``detail`` names the rule and the numbers; ``hint`` what would
    make it pass; ``field`` the input at fault, if it is one.
    """

    status = 500
    retry_after_s: int | None = None

    def __init__(
        self, code: str, detail: str, *, hint: str | None = None, field: str | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.hint = hint
        self.field = field


class Rejected(PortalError):
    """The caller can act on it: change the request."""

    status = 422


class Unauthenticated(PortalError):
    status = 401


class Forbidden(PortalError):
    status = 403


class NotFound(PortalError):
    """There is no such thing, or the caller may not know that there is."""

    status = 404


class Conflict(PortalError):
    """The thing is in another state than the caller believed: read it again."""

    status = 409


class TooMany(PortalError):
    status = 429
    retry_after_s = 5


class Unavailable(PortalError):
    """Try the same again later."""

    status = 503
    retry_after_s = 1


def busy() -> Unavailable:
    return Unavailable(
        "portal.busy", "The database is busy with other changes.", hint="Try again in a moment."
    )
