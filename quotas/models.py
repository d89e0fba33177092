"""Limits on what tenants and projects may hold at once, and the holds."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from portal.core.ids import new_id


class QuotaAccount(models.Model):
    """What one tenant or project may hold at once, in equivalents (thousandths of a GPU).

    No limit means unlimited at this level. ``queued_limit`` caps waiting jobs (projects only).
    A limit may be set below what is held: nothing ends, nothing new is admitted.
    """

    owner_id = models.CharField(primary_key=True, max_length=36)
    limit_milli = models.PositiveIntegerField(null=True)
    queued_limit = models.PositiveIntegerField(null=True)
    held_milli = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(held_milli__gte=0), name="quota_held_not_negative")
        ]


class Hold(models.Model):
    """Quota set aside for one attempt at every level above it; released exactly once."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    attempt_id = models.CharField(max_length=36, unique=True)
    project_id = models.CharField(max_length=36)
    owner_ids = models.JSONField()
    equivalent_milli = models.PositiveIntegerField()
    held_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)
