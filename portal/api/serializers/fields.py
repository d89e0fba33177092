"""Strict input: no guessing of types, unknown fields refused, whole numbers bounded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field
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


class Flag(serializers.BooleanField):
    """A JSON truth value, no text that looks like one."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Moment(serializers.DateTimeField):
    """RFC 3339 with its distance from UTC: a time of the clock on the wall says too little."""

    default_error_messages = {"naive": "Say the distance from UTC, as in 2026-03-31T14:00:00Z."}

    def to_internal_value(self, value: Any) -> datetime:
        if isinstance(value, str) and parse_moment(value) is None:
            self.fail("naive")
        moment: datetime = super().to_internal_value(value)
        return moment


def parse_moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class ExitCode(Text):
    """A whole number or a range as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=20, **options)

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, int) and not isinstance(data, bool):
            data = str(data)
        return super().to_internal_value(data)


class ExitCodes(serializers.ListField):
    """``75`` and ``"100-110"``, as texts."""

    child = ExitCode()


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
