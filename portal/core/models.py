"""What every app stands on: outbox, audit, idempotency and row leases."""

from __future__ import annotations

from django.db import models

from portal.core.ids import new_id


class OutboxMessage(models.Model):
    """An effect that must leave the database; deleted once it has.

    It carries a reference, never a copy: whoever delivers reads the newest state.
    """

    topic = models.CharField(max_length=64)
    ref = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(db_index=True)
    tries = models.PositiveIntegerField(default=0)


class AuditEntry(models.Model):
    """Who changed what, when and why. Append-only: triggers refuse anything else."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    at = models.DateTimeField(db_index=True)
    actor_id = models.CharField(max_length=36, blank=True)
    actor_name = models.CharField(max_length=200)
    verb = models.CharField(max_length=64, db_index=True)
    object_type = models.CharField(max_length=32)
    object_id = models.CharField(max_length=64)
    tenant_id = models.CharField(max_length=36, blank=True)
    project_id = models.CharField(max_length=36, blank=True, db_index=True)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["tenant_id", "id"], name="audit_of_tenant"),
            models.Index(fields=["actor_id", "id"], name="audit_of_actor"),
            models.Index(fields=["object_id", "id"], name="audit_of_object"),
        ]


class IdempotencyRecord(models.Model):
    """The answer to an unsafe request with a key, written in the transaction of its effect."""

    principal_id = models.CharField(max_length=36)
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["principal_id", "key"], name="idempotency_key_once")
        ]


class RowLease(models.Model):
    """The right of one process to be the only one that runs a loop, until it expires."""

    name = models.CharField(primary_key=True, max_length=64)
    owner = models.CharField(max_length=64)
    expires_at = models.DateTimeField()
