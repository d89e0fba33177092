import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import jobs.domain.states
import portal.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="JobArray",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=portal.core.ids.new_id,
                        max_length=36,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("project_id", models.CharField(max_length=36)),
                ("size", models.PositiveIntegerField()),
                ("submitted_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=portal.core.ids.new_id,
                        max_length=36,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("array_index", models.PositiveIntegerField(null=True)),
                ("name", models.CharField(max_length=100)),
                ("command", models.JSONField()),
                ("env", models.JSONField(default=dict)),
                ("memory_mib", models.PositiveIntegerField(null=True)),
                ("compute_milli", models.PositiveIntegerField(null=True)),
                (
                    "form",
                    models.CharField(
                        choices=[
                            ("any", "any"),
                            ("whole", "whole"),
                            ("share", "share"),
                            ("mig", "mig"),
                        ],
                        default=jobs.domain.states.Form["ANY"],
                        max_length=10,
                    ),
                ),
                ("gpu_model", models.CharField(blank=True, max_length=100)),
                ("priority", models.SmallIntegerField(default=0)),
                ("time_limit_s", models.PositiveIntegerField(null=True)),
                ("max_attempts", models.PositiveIntegerField(default=3)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("QUEUED", "QUEUED"),
                            ("STARTING", "STARTING"),
                            ("RUNNING", "RUNNING"),
                            ("SUCCEEDED", "SUCCEEDED"),
                            ("FAILED", "FAILED"),
                            ("CANCELLED", "CANCELLED"),
                            ("TIMED_OUT", "TIMED_OUT"),
                        ],
                        default=jobs.domain.states.JobState["QUEUED"],
                        max_length=10,
                    ),
                ),
                (
                    "wish",
                    models.CharField(
                        choices=[("run", "run"), ("cancel", "cancel")],
                        default=jobs.domain.states.Wish["RUN"],
                        max_length=10,
                    ),
                ),
                ("submitted_at", models.DateTimeField()),
                ("queued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("exit_code", models.IntegerField(null=True)),
                ("exit_signal", models.PositiveSmallIntegerField(null=True)),
                ("reason_code", models.CharField(blank=True, max_length=64)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("wait_code", models.CharField(blank=True, max_length=64)),
                ("wait_reason", models.CharField(blank=True, max_length=500)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "array",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="members",
                        to="jobs.jobarray",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("from_state", models.CharField(blank=True, max_length=10)),
                ("to_state", models.CharField(max_length=10)),
                ("event", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=200)),
                ("attempt_number", models.PositiveIntegerField(null=True)),
                ("detail", models.CharField(blank=True, max_length=500)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="transitions",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=portal.core.ids.new_id,
                        max_length=36,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("lease_id", models.CharField(max_length=36, unique=True)),
                ("node_id", models.CharField(max_length=36)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("exit_code", models.IntegerField(null=True)),
                ("exit_signal", models.PositiveSmallIntegerField(null=True)),
                ("end_reason", models.CharField(blank=True, max_length=32)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "number"), name="attempt_number_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("job",),
                        name="attempt_open_once",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "QUEUED")),
                fields=["-priority", "queued_at", "id"],
                name="job_queue",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["project", "-submitted_at"], name="job_by_project"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["-submitted_at"], name="job_newest"),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                fields=("project", "number"), name="job_number_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "QUEUED",
                            "STARTING",
                            "RUNNING",
                            "SUCCEEDED",
                            "FAILED",
                            "CANCELLED",
                            "TIMED_OUT",
                        ],
                    )
                ),
                name="job_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", False),
                        ("state__in", ["CANCELLED", "FAILED", "SUCCEEDED", "TIMED_OUT"]),
                    ),
                    models.Q(
                        ("ended_at__isnull", True),
                        models.Q(
                            ("state__in", ["CANCELLED", "FAILED", "SUCCEEDED", "TIMED_OUT"]),
                            _negated=True,
                        ),
                    ),
                    _connector="OR",
                ),
                name="job_ended_when_terminal",
            ),
        ),
    ]
