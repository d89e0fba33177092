"""Projects and tokens."""

from __future__ import annotations

from rest_framework import serializers

from portal.accounts.roles import Scope
from portal.api.serializers.fields import Input, Output, Text


class ProjectOut(Output):
    id = serializers.CharField()
    slug = serializers.CharField(help_text="the short name, used wherever a project is named")
    name = serializers.CharField()
    tenant_id = serializers.CharField()


class ProjectListOut(Output):
    items = ProjectOut(many=True)


class TokenIn(Input):
    name = Text(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField([scope.value for scope in Scope]), min_length=1, max_length=20
    )
    expires_at = serializers.DateTimeField()


class TokenOut(Output):
    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="what the secret begins with, after gpc_")
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)


class TokenListOut(Output):
    items = TokenOut(many=True)


class NewTokenOut(Output):
    id = serializers.CharField()
    secret = serializers.CharField(help_text="shown this once")
    expires_at = serializers.DateTimeField()


class SelfOut(Output):
    id = serializers.CharField()
    name = serializers.CharField()
    is_platform_admin = serializers.BooleanField()
    scopes = serializers.ListField(
        child=serializers.CharField(), help_text="all that the caller may do somewhere"
    )
