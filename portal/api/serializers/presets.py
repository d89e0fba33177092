"""Templates and secrets of a project as the API reads and writes them."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, Output, Text
from portal.api.serializers.jobs import RequestIn


class NewTemplateIn(Input):
    name = Text(max_length=60)
    request = RequestIn()


class TemplateOut(Output):
    name = serializers.CharField()
    request = serializers.DictField(source="fields")
    saved_by = serializers.CharField()
    saved_at = serializers.DateTimeField()


class TemplateListOut(Output):
    items = TemplateOut(many=True)


class SecretValueIn(Input):
    value = Text(max_length=32_768, trim_whitespace=False, write_only=True)


class SecretOut(Output):
    """A secret without its value."""

    name = serializers.CharField()
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()


class SecretListOut(Output):
    items = SecretOut(many=True)
