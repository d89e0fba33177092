"""Users, as administrators of the platform manage them."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, Output, Text


class UserFilterIn(Input):
    search = serializers.CharField(
        required=False, max_length=150, help_text="part of the name or e-mail address"
    )
    cursor = serializers.CharField(
        required=False, max_length=150, help_text="next_cursor of the page before"
    )
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=200)


class UserIn(Input):
    name = Text(max_length=150)
    email = serializers.EmailField(required=False, allow_blank=True, default="", max_length=254)
    is_platform_admin = serializers.BooleanField(required=False, default=False)


class UserOut(Output):
    id = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField()
    is_active = serializers.BooleanField()
    is_platform_admin = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    last_login = serializers.DateTimeField(allow_null=True)


class UserPageOut(Output):
    items = UserOut(many=True)
    next_cursor = serializers.CharField(allow_null=True, source="next_after")


class PasswordLinkOut(Output):
    user = UserOut()
    url = serializers.CharField(help_text="shown this once; whoever opens it sets the password")
    expires_at = serializers.DateTimeField()
