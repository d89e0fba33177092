"""Who the caller is, the caller's projects and tokens."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.access import every_scope_of
from portal.accounts.places import make_project
from portal.accounts.roles import Scope
from portal.accounts.selectors import projects_of, tokens_of
from portal.accounts.tokens import issue_token, revoke_token
from portal.api.base import View, answer_once
from portal.api.schema import IDEMPOTENCY_KEY, problems
from portal.api.serializers.accounts import (
    NewTokenOut,
    ProjectListOut,
    ProjectOut,
    SelfOut,
    TokenIn,
    TokenListOut,
)
from portal.api.serializers.places import NewProjectIn
from portal.core.clock import utc_now
from portal.core.idempotency import Answer


class Self(View):
    @extend_schema(operation_id="self_read", responses={200: SelfOut, **problems(401)})
    def get(self, request: Request) -> Response:
        """Who is asking, and what may they do?"""
        principal = self.principal
        return Response(
            {
                "id": principal.user_id,
                "name": principal.name,
                "is_platform_admin": principal.is_platform_admin,
                "scopes": sorted(every_scope_of(principal)),
            }
        )


class Projects(View):
    @extend_schema(
        operation_id="projects_list", responses={200: ProjectListOut, **problems(401, 403)}
    )
    def get(self, request: Request) -> Response:
        """List the projects that the caller may look into."""
        return Response(ProjectListOut({"items": projects_of(self.principal)}).data)

    @extend_schema(
        operation_id="projects_create",
        parameters=[IDEMPOTENCY_KEY],
        request=NewProjectIn,
        responses={201: ProjectOut, **problems(400, 401, 403, 404, 409, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """Make a project in a tenant that the caller administers."""
        body = self.body(NewProjectIn)
        principal = self.principal

        def effect() -> Answer:
            made = make_project(
                principal,
                tenant=body["tenant"],
                name=body["name"],
                slug=body["slug"],
                now=utc_now(),
            )
            return Answer(201, dict(ProjectOut(made).data))

        return answer_once(request, principal, effect)


class Tokens(View):
    @extend_schema(operation_id="tokens_list", responses={200: TokenListOut, **problems(401)})
    def get(self, request: Request) -> Response:
        """List the caller's tokens that are not revoked."""
        return Response(TokenListOut({"items": tokens_of(self.principal.user_id)}).data)

    @extend_schema(
        operation_id="tokens_issue",
        request=TokenIn,
        responses={201: NewTokenOut, **problems(400, 401, 403, 422)},
    )
    def post(self, request: Request) -> Response:
        """Issue a token of the caller. Its secret is in this answer and nowhere else."""
        body = self.body(TokenIn)
        principal = self.principal
        token_id, secret = issue_token(
            actor=principal.actor,
            user_id=principal.user_id,
            name=body["name"],
            scopes=[Scope(scope) for scope in body["scopes"]],
            expires_at=body["expires_at"],
            now=utc_now(),
            within=principal.token_scopes,
        )
        answer = {"id": token_id, "secret": secret, "expires_at": body["expires_at"]}
        return Response(NewTokenOut(answer).data, status=201, headers={"Cache-Control": "no-store"})


class OneToken(View):
    @extend_schema(operation_id="tokens_revoke", responses={204: None, **problems(401, 404)})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke one of the caller's tokens."""
        principal = self.principal
        revoke_token(
            actor=principal.actor, user_id=principal.user_id, token_id=token_id, now=utc_now()
        )
        return Response(status=204)
