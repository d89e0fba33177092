"""Invite by a link, list and revoke what is open, accept."""

from __future__ import annotations

from datetime import timedelta

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts import invitations
from portal.accounts.roles import Role
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.invitations import (
    AcceptIn,
    InvitationIn,
    InvitationListOut,
    InvitationOut,
    NewInvitationOut,
    PlaceIn,
)
from portal.config import config
from portal.core.clock import utc_now


class Invitations(View):
    @extend_schema(
        operation_id="invitations_list",
        parameters=[PlaceIn],
        responses={200: InvitationListOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """List the open invitations to a project or tenant; for its administrators."""
        query = self.query(PlaceIn)
        found = invitations.open_invitations(
            self.principal,
            project=query.get("project"),
            tenant=query.get("tenant"),
            now=utc_now(),
        )
        return Response(InvitationListOut({"items": found}).data)

    @extend_schema(
        operation_id="invitations_issue",
        request=InvitationIn,
        responses={201: NewInvitationOut, **problems(400, 401, 403, 404, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """Make a link that gives a role once. It is in this answer and nowhere else."""
        body = self.body(InvitationIn)
        made = invitations.invite(
            self.principal,
            project=body.get("project"),
            tenant=body.get("tenant"),
            role=Role(body["role"]),
            life=timedelta(days=body["days"]),
            email=body["email"],
            now=utc_now(),
        )
        url = f"{config.public_url.rstrip('/')}/invitation?key={made.secret}"
        answer = {"invitation": made.invitation, "url": url}
        return Response(
            NewInvitationOut(answer).data, status=201, headers={"Cache-Control": "no-store"}
        )


class OneInvitation(View):
    @extend_schema(
        operation_id="invitations_revoke", responses={204: None, **problems(401, 403, 404, 503)}
    )
    def delete(self, request: Request, invitation_id: str) -> Response:
        """Make an open invitation useless."""
        invitations.revoke_invitation(self.principal, invitation_id=invitation_id, now=utc_now())
        return Response(status=204)


class AcceptInvitation(View):
    @extend_schema(
        operation_id="invitations_accept",
        request=AcceptIn,
        responses={200: InvitationOut, **problems(400, 401, 404, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """Take the role that a link offers. Who has no user yet opens the link in a browser."""
        key = self.body(AcceptIn)["key"]
        joined = invitations.accept_invitation(self.principal, secret=key, now=utc_now())
        return Response(InvitationOut(joined).data)
