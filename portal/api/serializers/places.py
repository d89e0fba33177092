"""Tenants, projects and who has which role in them."""

from __future__ import annotations

from rest_framework import serializers

from portal.accounts.members import PROJECT_ROLES, TENANT_ROLES
from portal.api.serializers.fields import Input, Output, Text

_SLUG_HELP = "1 to 31 of a-z, 0-9 and '-'; never changes"


class TenantOut(Output):
    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()
    parent_id = serializers.CharField(allow_null=True)
    path = serializers.CharField(help_text="ids from the root to the tenant, /a/b/")
    may_administer = serializers.BooleanField()


class TenantListOut(Output):
    items = TenantOut(many=True)


class TenantIn(Input):
    name = Text(max_length=100)
    slug = Text(max_length=31, help_text=_SLUG_HELP)
    parent = Text(  # type: ignore[assignment]
        required=False, allow_null=True, max_length=50, help_text="absent or null: a new root"
    )


class TenantChangeIn(Input):
    """What is left out stays as it is."""

    name = Text(required=False, max_length=100)
    parent = Text(  # type: ignore[assignment]
        required=False,
        allow_null=True,
        max_length=50,
        help_text="move below it; null: to the roots",
    )


class NewProjectIn(Input):
    name = Text(max_length=100)
    slug = Text(max_length=31, help_text=_SLUG_HELP)
    tenant = Text(max_length=50)


class NameIn(Input):
    name = Text(max_length=100)


class MemberOut(Output):
    user_id = serializers.CharField()
    name = serializers.CharField()
    is_active = serializers.BooleanField()
    role = serializers.CharField()
    tenant = serializers.CharField(help_text="the tenant that the role comes from; empty: here")


class MemberListOut(Output):
    items = MemberOut(many=True)


class ProjectRoleIn(Input):
    role = serializers.ChoiceField([role.value for role in PROJECT_ROLES])


class TenantRoleIn(Input):
    role = serializers.ChoiceField([role.value for role in TENANT_ROLES])
