"""Prices and metered use. Both are append-only: triggers refuse to change or delete a row."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from portal.core.ids import new_id


class PriceVersion(models.Model):
    """The price book from one moment on, until a later version begins."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    effective_from = models.DateTimeField(unique=True)
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)


class Rate(models.Model):
    """Micro-units for one hour of a whole GPU of a model; ``*`` is any model without its own."""

    version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="rates")
    gpu_model = models.CharField(max_length=100)
    micros_per_gpu_hour = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "gpu_model"], name="rate_once_per_model"),
            models.CheckConstraint(
                condition=Q(micros_per_gpu_hour__gte=0), name="rate_not_negative"
            ),
        ]


class Segment(models.Model):
    """Metered use of one lease: a half-open interval, at most an hour long, within one price."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    lease_id = models.CharField(max_length=36)
    job_id = models.CharField(max_length=36, db_index=True)
    project_id = models.CharField(max_length=36)
    tenant_id = models.CharField(max_length=36)
    user_id = models.CharField(max_length=36)
    gpu_model = models.CharField(max_length=100)
    equivalent_milli = models.PositiveIntegerField()
    compute_milli = models.PositiveIntegerField()
    memory_mib = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="+")
    rate_micros_per_gpu_hour = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["lease_id", "started_at"], name="segment_once"),
            models.CheckConstraint(
                condition=Q(ended_at__gt=F("started_at")), name="segment_not_empty"
            ),
        ]
        indexes = [models.Index(fields=["project_id", "started_at"], name="segment_by_project")]
