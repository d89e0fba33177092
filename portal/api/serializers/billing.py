"""Use, prices and quotas."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.serializers.fields import Input, MoneyOut, Output, Text, Whole

MOST_MICROS = 2**53


class UsageIn(Input):
    project = serializers.CharField(required=False, max_length=50)
    since = serializers.DateTimeField(required=False, help_text="first moment; absent: 30 days ago")
    until = serializers.DateTimeField(required=False, help_text="first moment after; absent: now")
    group = serializers.ChoiceField(["project", "user", "job"], required=False, default="project")


class UsageLineOut(Output):
    project = serializers.CharField()
    project_id = serializers.CharField()
    user = serializers.CharField(required=False)
    job_id = serializers.CharField(required=False)
    jobs = serializers.IntegerField(required=False)
    seconds = serializers.FloatField(help_text="metered time of leases")
    gpu_seconds = serializers.FloatField(help_text="the same weighted by the slice's size")
    cost = MoneyOut()


class UsageOut(Output):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    group = serializers.CharField()
    items = UsageLineOut(many=True)
    total = serializers.DictField()


class PriceIn(Input):
    effective_from = serializers.DateTimeField(help_text="not in the past, the first one excepted")
    rates = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=MOST_MICROS),
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
    owner_id = serializers.CharField()
    limit_milli = serializers.IntegerField(allow_null=True)
    queued_limit = serializers.IntegerField(allow_null=True)
    held_milli = serializers.IntegerField()
