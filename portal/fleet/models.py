"""Nodes, their GPUs, the slices cut from them and the leases on those."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import F, Q

from agent.wire import Enforcement, SharingMode, SliceKind
from portal.core.ids import new_id


class NodeState(StrEnum):
    ENROLLED = "enrolled"
    READY = "ready"
    UNREACHABLE = "unreachable"
    LOST = "lost"


def _choices(kind: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in kind]


class Node(models.Model):
    """A machine with an agent. ``event_cursor`` counts within ``stream_id``.

    A drained node gets no new leases; what runs there goes on. ``drain_note`` says why.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    name = models.CharField(max_length=100, unique=True)
    address = models.CharField(max_length=200)
    state = models.CharField(max_length=20, choices=_choices(NodeState))
    drained = models.BooleanField(default=False)
    drain_note = models.CharField(max_length=200, blank=True)
    isolated = models.BooleanField(null=True)
    agent_version = models.CharField(max_length=40, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)
    stream_id = models.CharField(max_length=64, blank=True)
    event_cursor = models.BigIntegerField(default=0)
    last_seen_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()


class EnrolmentCode(models.Model):
    """A one-time code with which one node may enrol; only its digest is kept.

    ``key_digest`` names the key that used it: the same node may ask again when an answer was lost.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    digest = models.CharField(max_length=64, unique=True)
    node_name = models.CharField(max_length=100)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    key_digest = models.CharField(max_length=64, blank=True)


class Gpu(models.Model):
    """A physical device. The CHECKs refuse to lease more than it has."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="gpus")
    uuid = models.CharField(max_length=80, unique=True)
    index = models.PositiveSmallIntegerField()
    model = models.CharField(max_length=100)
    memory_mib = models.PositiveIntegerField()
    mode = models.CharField(max_length=10, choices=_choices(SharingMode))
    simulated = models.BooleanField()
    healthy = models.BooleanField()
    health_reason = models.CharField(max_length=200, blank=True)
    mig_geometry = models.JSONField(null=True)
    compute_leased_milli = models.IntegerField(default=0)
    memory_leased_mib = models.IntegerField(default=0)
    utilisation_percent = models.FloatField(null=True)
    memory_used_mib = models.PositiveIntegerField(null=True)
    sampled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(compute_leased_milli__gte=0, compute_leased_milli__lte=1000),
                name="gpu_compute_within_capacity",
            ),
            models.CheckConstraint(
                condition=Q(memory_leased_mib__gte=0, memory_leased_mib__lte=F("memory_mib")),
                name="gpu_memory_within_capacity",
            ),
        ]


class Slice(models.Model):
    """A part of one GPU that can be given away."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="slices")
    kind = models.CharField(max_length=10, choices=_choices(SliceKind))
    memory_mib = models.PositiveIntegerField()
    compute_milli = models.PositiveIntegerField()
    mig_profile = models.CharField(max_length=20, blank=True)
    mig_start = models.PositiveSmallIntegerField(null=True)


class Lease(models.Model):
    """The right of one job attempt to one slice.

    ``generation`` grows with each change of the desired state. ``started_at`` and ``ended_at`` are
    what the node observed; ``released_at`` is when the slice was free again here.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    slice = models.ForeignKey(Slice, on_delete=models.PROTECT, related_name="leases")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="leases")
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="leases")
    attempt_id = models.CharField(max_length=36, unique=True)
    generation = models.PositiveIntegerField(default=1)
    desired = models.CharField(max_length=10)
    memory_mib = models.PositiveIntegerField()
    compute_milli = models.PositiveIntegerField()
    enforcement_memory = models.CharField(max_length=12, choices=_choices(Enforcement), blank=True)
    enforcement_compute = models.CharField(max_length=12, choices=_choices(Enforcement), blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    utilisation_percent = models.FloatField(null=True)
    memory_used_mib = models.PositiveIntegerField(null=True)
    memory_peak_mib = models.PositiveIntegerField(null=True)
    sampled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["slice"],
                condition=Q(released_at__isnull=True),
                name="slice_leased_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["node"], condition=Q(released_at__isnull=True), name="lease_active_by_node"
            )
        ]


class MigUnit(models.Model):
    """One memory unit of a MIG GPU under an active lease; the index refuses a second one."""

    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="mig_units")
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="mig_units")
    unit = models.PositiveSmallIntegerField()
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["gpu", "unit"],
                condition=Q(released_at__isnull=True),
                name="mig_unit_leased_once",
            )
        ]
