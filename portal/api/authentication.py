"""Who calls the REST API: a program with a token, or a browser that has signed in."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.accounts.access import Principal, principal_of_user
from portal.accounts.models import User
from portal.accounts.tokens import authenticate_token
from portal.core.clock import utc_now
from portal.core.errors import Forbidden, Unauthenticated

_SCHEME = "bearer"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer gpc_...``: the token's owner, narrowed to its scopes."""

    def authenticate(self, request: Request) -> tuple[Principal, str] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != _SCHEME:
            return None
        principal = authenticate_token(secret.strip(), utc_now())
        if principal is None:
            raise Unauthenticated(
                "api.token_invalid",
                "This token is unknown, expired or revoked.",
                hint="Make a new one on the page Tokens.",
            )
        return principal, "token"

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> str:
        return reason


class BrowserSessionAuthentication(BaseAuthentication):
    """The session of a browser; changes need its CSRF token in ``X-CSRFToken``."""

    def authenticate(self, request: Request) -> tuple[Principal, str] | None:
        user = getattr(request._request, "user", None)
        if not isinstance(user, User) or not user.is_active:
            return None
        check = _CsrfCheck(_unused)
        check.process_request(request._request)
        reason: Any = check.process_view(request._request, _unused, (), {})
        if reason:
            raise Forbidden(
                "api.csrf_failed",
                "The browser's CSRF token is missing or wrong.",
                hint="Send it in the header X-CSRFToken, or use an API token.",
            )
        return principal_of_user(user), "session"


def _unused(request: HttpRequest) -> Any:
    raise AssertionError("the check answers before any view")


class SignedIn(BasePermission):
    """Every address needs somebody; what they may do is asked of `portal.accounts.access`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, Principal)
