"""Strict input: no guessing of types, unknown fields refused, whole numbers bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from portal.core.money import Money

MOST_INTEGER = 2**31 - 1


class Input(serializers.Serializer[Any]):
    """Base of everything that is read."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            for name in data:
                if name not in self.fields:
                    complaint = f"There is no field {str(name)[:80]!r} here."
                    raise ValidationError({str(name): [ErrorDetail(complaint, "unknown_field")]})
        return super().to_internal_value(data)


class Output(serializers.Serializer[Any]):
    """Base of everything that is written."""


class Text(serializers.CharField):
    """A JSON string; numbers are not turned into text."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A JSON integer within 32 bits; no text, no fraction, no truth value."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("min_value", -MOST_INTEGER)
        options.setdefault("max_value", MOST_INTEGER)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class TextMap(serializers.DictField):
    """Names to strings, without characters that no environment can hold."""

    child = Text(allow_blank=True, trim_whitespace=False, max_length=32_768)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        value: dict[str, str] = super().to_internal_value(data)
        names = Text(max_length=200)
        for name in value:
            names.run_validation(name)
        return value


class MoneyOut(Output):
    """``display`` is for people, ``amount_micros`` for programs."""

    amount_micros = serializers.IntegerField()
    currency = serializers.CharField()
    display = serializers.SerializerMethodField()

    def get_display(self, value: Money) -> str:
        return value.display()


class ProblemOut(Output):
    """Problem details (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="stable; docs/reference/errors.md lists every code")
    detail = serializers.CharField()
    field = serializers.CharField(required=False)
    hint = serializers.CharField(required=False)
