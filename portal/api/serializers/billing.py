"""Use, prices and quotas."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, MoneyOut, Output, Text, Whole

MOST_MICROS = 2**53


class UsageIn(Input):
    project = serializers.CharField(required=False, max_length=50)
    since = serializers.DateTimeField(required=False, help_text="first moment; absent: 30 days ago")
    until = serializers.DateTimeField(required=False, help_text="first moment after; absent: now")
    group = serializers.ChoiceField(
        ["project", "user", "day", "job"], required=False, default="project"
    )


class UsageTotalOut(Output):
    seconds = serializers.FloatField(help_text="metered time of leases")
    gpu_seconds = serializers.FloatField(help_text="the same weighted by the slice's size")
    cost = MoneyOut()


class UsageLineOut(UsageTotalOut):
    project = serializers.CharField(source="project_slug")
    project_id = serializers.CharField()
    user = serializers.CharField(source="user_name", allow_null=True)
    job_id = serializers.CharField(allow_null=True)
    job = serializers.CharField(source="job_name", allow_null=True, help_text="short name")
    day = serializers.DateField(allow_null=True, help_text="UTC")


class UsageOut(Output):
    """Running jobs are in it up to the last full hour (UTC)."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    group = serializers.CharField()
    items = UsageLineOut(many=True, source="lines")
    total = UsageTotalOut()


class PriceIn(Input):
    effective_from = serializers.DateTimeField(
        required=False, allow_null=True, help_text="absent: as soon as possible"
    )
    currency = Text(required=False, max_length=3, help_text="absent: the currency of the portal")
    rates = serializers.DictField(
        child=Whole(min_value=0, max_value=MOST_MICROS),
        allow_empty=False,
        help_text="micro-units for one hour of a whole GPU, by model; * is every other model",
    )


class PriceOut(Output):
    id = serializers.CharField()
    effective_from = serializers.DateTimeField()
    currency = serializers.CharField()
    rates = serializers.DictField(child=serializers.IntegerField())


class PriceListOut(Output):
    items = PriceOut(many=True)


class QuotaIn(Input):
    limit_milli = Whole(allow_null=True, min_value=0, help_text="thousandths of a GPU; null: none")
    queued_limit = Whole(
        required=False, allow_null=True, min_value=0, help_text="waiting jobs; projects only"
    )


class QuotaOut(Output):
    """What a project or tenant holds and may hold at once, in thousandths of a GPU."""

    owner_id = serializers.CharField()
    limit_milli = serializers.IntegerField(allow_null=True)
    queued_limit = serializers.IntegerField(allow_null=True)
    held_milli = serializers.IntegerField()
