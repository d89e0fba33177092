"""Invitations."""

from __future__ import annotations

from rest_framework import serializers

from portal.accounts.roles import Role
from portal.api.serializers.fields import Input, Output, Text, Whole


class PlaceIn(Input):
    """Either a project or a tenant."""

    project = serializers.CharField(required=False, max_length=50)
    tenant = serializers.CharField(required=False, max_length=50)


class InvitationIn(Input):
    """Either a project or a tenant."""

    project = Text(required=False, max_length=50)
    tenant = Text(required=False, max_length=50)
    role = serializers.ChoiceField([role.value for role in Role])
    days = Whole(required=False, default=7, min_value=1, max_value=30)
    email = serializers.EmailField(
        required=False,
        allow_blank=True,
        default="",
        max_length=254,
        help_text="a note of whom it is for; no mail is sent",
    )


class InvitationOut(Output):
    id = serializers.CharField()
    kind = serializers.CharField(help_text="project or tenant")
    place = serializers.CharField(help_text="its short name")
    role = serializers.CharField()
    email = serializers.CharField()
    invited_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class InvitationListOut(Output):
    items = InvitationOut(many=True)


class NewInvitationOut(Output):
    invitation = InvitationOut()
    url = serializers.CharField(help_text="shown this once; whoever opens it first may join")


class AcceptIn(Input):
    key = Text(max_length=100, help_text="what stands after key= in the link")
