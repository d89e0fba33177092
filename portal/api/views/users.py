"""Users: list, make, deactivate, give a link for a new password."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts import users
from portal.accounts.access import access_whole_platform
from portal.accounts.second_factor import reset_second_factor
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.users import (
    PasswordLinkOut,
    UserFilterIn,
    UserIn,
    UserOut,
    UserPageOut,
)
from portal.config import config
from portal.core.clock import utc_now

_CHANGE = problems(401, 403, 404, 409, 503)


class Users(View):
    @extend_schema(
        operation_id="users_list",
        parameters=[UserFilterIn],
        responses={200: UserPageOut, **problems(401, 403, 422)},
    )
    def get(self, request: Request) -> Response:
        """List users by name; for administrators of the platform."""
        query = self.query(UserFilterIn)
        page = users.user_page(
            self.principal,
            search=query.get("search", ""),
            after=query.get("cursor", ""),
            limit=query["limit"],
        )
        return Response(UserPageOut(page).data)

    @extend_schema(
        operation_id="users_create",
        request=UserIn,
        responses={201: PasswordLinkOut, **problems(400, 401, 403, 409, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """Make a user; the answer holds the link with which they set their password."""
        access_whole_platform(self.principal)
        body = self.body(UserIn)
        return _link(users.make_user(self.principal, now=utc_now(), **body))


class OneUser(View):
    @extend_schema(operation_id="users_read", responses={200: UserOut, **problems(401, 403, 404)})
    def get(self, request: Request, user_id: str) -> Response:
        """Read a user; for administrators of the platform."""
        return Response(UserOut(users.user_detail(self.principal, user_id)).data)


class DeactivateUser(View):
    @extend_schema(
        operation_id="users_deactivate", request=None, responses={200: UserOut, **_CHANGE}
    )
    def post(self, request: Request, user_id: str) -> Response:
        """End a user's sessions, tokens and links at once."""
        found = users.deactivate_user(self.principal, user=user_id, now=utc_now())
        return Response(UserOut(found).data)


class ReactivateUser(View):
    @extend_schema(
        operation_id="users_reactivate", request=None, responses={200: UserOut, **_CHANGE}
    )
    def post(self, request: Request, user_id: str) -> Response:
        """Let a user sign in again; tokens stay revoked."""
        found = users.reactivate_user(self.principal, user=user_id, now=utc_now())
        return Response(UserOut(found).data)


class UserPasswordLink(View):
    @extend_schema(
        operation_id="users_password_link",
        request=None,
        responses={201: PasswordLinkOut, **_CHANGE},
    )
    def post(self, request: Request, user_id: str) -> Response:
        """Make a link for a new password, good for a day; older ones stop working."""
        return _link(users.issue_password_link(self.principal, user=user_id, now=utc_now()))


class UserSecondFactor(View):
    @extend_schema(
        operation_id="users_second_factor_reset", request=None, responses={204: None, **_CHANGE}
    )
    def delete(self, request: Request, user_id: str) -> Response:
        """Take the second factor from a user who has lost it."""
        reset_second_factor(self.principal, user=user_id, now=utc_now())
        return Response(status=204)


def _link(link: users.NewLink) -> Response:
    answer = {
        "user": link.user,
        "url": f"{config.public_url.rstrip('/')}/password?key={link.secret}",
        "expires_at": link.expires_at,
    }
    return Response(PasswordLinkOut(answer).data, status=201, headers={"Cache-Control": "no-store"})
