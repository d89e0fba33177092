"""The audit."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, Output


class AuditIn(Input):
    actor = serializers.CharField(required=False, max_length=200, help_text="name or id of a user")
    verb = serializers.CharField(
        required=False,
        max_length=64,
        help_text="what the verb begins with, as job. or token.issued",
    )
    object = serializers.CharField(required=False, max_length=64, help_text="id of the object")
    project = serializers.CharField(required=False, max_length=50)
    since = serializers.DateTimeField(required=False, help_text="first moment")
    until = serializers.DateTimeField(required=False, help_text="first moment after")
    cursor = serializers.CharField(
        required=False, max_length=36, help_text="next_cursor of the page before"
    )
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=200)


class AuditEntryOut(Output):
    id = serializers.CharField()
    at = serializers.DateTimeField()
    actor_id = serializers.CharField(help_text="empty: a part of the platform")
    actor = serializers.CharField(source="actor_name")
    verb = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    tenant_id = serializers.CharField(help_text="empty: concerns no tenant")
    project_id = serializers.CharField(help_text="empty: concerns no project")
    detail = serializers.DictField()
    sentence = serializers.CharField(help_text="the same for people")


class AuditPageOut(Output):
    items = AuditEntryOut(many=True)
    next_cursor = serializers.CharField(allow_null=True, source="next_before")
