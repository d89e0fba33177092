"""Jobs, their attempts and their story."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q

from jobs.domain.readiness import Need
from jobs.domain.states import PRIORITY_OF, TERMINAL, Form, JobState, PriorityClass, Wish
from portal.core.ids import new_id


def _choices(kind: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in kind]


class JobArray(models.Model):
    """One submission with several members that differ in ``GPUCOMMONS_ARRAY_INDEX`` alone.

    ``max_running``: so many of them hold a lease at once; none: as many as there is room for.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    project_id = models.CharField(max_length=36)
    size = models.PositiveIntegerField()
    max_running = models.PositiveIntegerField(null=True)
    submitted_at = models.DateTimeField()


class Bundle(models.Model):
    """Files that came with a submission; its jobs share them. ``files``: path, base64, mode."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    project_id = models.CharField(max_length=36)
    files = models.JSONField()
    created_at = models.DateTimeField()


class Job(models.Model):
    """What a user asked for. ``wait_*`` say why it waits.

    Without ``memory_mib`` it gets the part of the GPU's memory that ``compute_milli`` is of its
    compute, and the other way round; with neither, a whole GPU. ``priority`` is a number so that
    the queue's order is the index's order. ``retry_exit_codes`` are pairs, first to last.
    ``not_before``: the wished start, or after a failure the end of the pause.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    project = models.ForeignKey("accounts.Project", on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    submitted_by = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    array = models.ForeignKey(JobArray, null=True, on_delete=models.PROTECT, related_name="members")
    array_index = models.PositiveIntegerField(null=True)
    name = models.CharField(max_length=100)
    command = models.JSONField()
    env = models.JSONField(default=dict)
    secrets = models.JSONField(default=list)
    bundle = models.ForeignKey(Bundle, null=True, on_delete=models.PROTECT, related_name="+")
    memory_mib = models.PositiveIntegerField(null=True)
    compute_milli = models.PositiveIntegerField(null=True)
    form = models.CharField(max_length=10, choices=_choices(Form), default=Form.ANY)
    gpu_model = models.CharField(max_length=100, blank=True)
    priority = models.SmallIntegerField(default=PRIORITY_OF[PriorityClass.NORMAL])
    time_limit_s = models.PositiveIntegerField(null=True)
    max_attempts = models.PositiveIntegerField(default=3)
    retry_exit_codes = models.JSONField(default=list)
    not_before = models.DateTimeField(null=True)
    state = models.CharField(max_length=10, choices=_choices(JobState), default=JobState.QUEUED)
    wish = models.CharField(max_length=10, choices=_choices(Wish), default=Wish.RUN)
    submitted_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    exit_signal = models.PositiveSmallIntegerField(null=True)
    reason_code = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    wait_code = models.CharField(max_length=64, blank=True)
    wait_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="job_number_once"),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in JobState]), name="job_state_known"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=False, state__in=[s.value for s in sorted(TERMINAL)])
                | (Q(ended_at__isnull=True) & ~Q(state__in=[s.value for s in sorted(TERMINAL)])),
                name="job_ended_when_terminal",
            ),
        ]
        indexes = [
            models.Index(
                fields=["-priority", "queued_at", "id"],
                condition=Q(state="QUEUED"),
                name="job_queue",
            ),
            models.Index(fields=["project", "-submitted_at"], name="job_by_project"),
            models.Index(fields=["-submitted_at"], name="job_newest"),
        ]


class Dependency(models.Model):
    """A job that waits for another one. ``settled`` once the scheduler has seen that one's end."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="dependencies")
    on = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="dependents")
    need = models.CharField(max_length=3, choices=_choices(Need))
    settled = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "on"], name="dependency_once")]
        indexes = [
            models.Index(fields=["on"], condition=Q(settled=False), name="dependency_open"),
        ]


class Template(models.Model):
    """Fields of a request that a project keeps under a name."""

    project = models.ForeignKey("accounts.Project", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=50)
    fields = models.JSONField(default=dict)
    saved_by = models.CharField(max_length=150)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="template_name_once")
        ]


class Secret(models.Model):
    """A value for the environment of jobs; ``sealed`` opens only with the portal's key."""

    project = models.ForeignKey("accounts.Project", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=50)
    sealed = models.TextField()
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="secret_name_once")]


class Attempt(models.Model):
    """One try at running a job. Open until ``ended_at``; a job has at most one open attempt.

    ``log_kept``: its log was copied from the node, ``log_size`` bytes of which those between
    ``log_head_end`` and ``log_tail_start`` are missing; without a size the node had no log.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    lease_id = models.CharField(max_length=36, unique=True)
    node_id = models.CharField(max_length=36)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    exit_signal = models.PositiveSmallIntegerField(null=True)
    end_reason = models.CharField(max_length=32, blank=True)
    log_kept = models.BooleanField(default=False)
    log_kept_bytes = models.BigIntegerField(default=0)
    log_size = models.BigIntegerField(null=True)
    log_head_end = models.BigIntegerField(null=True)
    log_tail_start = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["ended_at"],
                condition=Q(log_kept=False, ended_at__isnull=False),
                name="attempt_log_to_keep",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["job"], condition=Q(ended_at__isnull=True), name="attempt_open_once"
            ),
        ]


class Transition(models.Model):
    """One change of a job's state with its cause and actor: the story that the user sees."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="transitions")
    at = models.DateTimeField()
    from_state = models.CharField(max_length=10, blank=True)
    to_state = models.CharField(max_length=10)
    event = models.CharField(max_length=32)
    actor = models.CharField(max_length=200)
    attempt_number = models.PositiveIntegerField(null=True)
    detail = models.CharField(max_length=500, blank=True)
