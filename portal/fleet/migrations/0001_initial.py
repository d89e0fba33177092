import django.db.models.deletion
from django.db import migrations, models

import portal.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="EnrolmentCode",
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
                ("digest", models.CharField(max_length=64, unique=True)),
                ("node_name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                ("key_digest", models.CharField(blank=True, max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="Node",
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
                ("name", models.CharField(max_length=100, unique=True)),
                ("address", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("enrolled", "enrolled"),
                            ("ready", "ready"),
                            ("unreachable", "unreachable"),
                            ("lost", "lost"),
                        ],
                        max_length=20,
                    ),
                ),
                ("isolated", models.BooleanField(null=True)),
                ("agent_version", models.CharField(blank=True, max_length=40)),
                ("boot_id", models.CharField(blank=True, max_length=64)),
                ("stream_id", models.CharField(blank=True, max_length=64)),
                ("event_cursor", models.BigIntegerField(default=0)),
                ("last_seen_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Gpu",
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
                ("uuid", models.CharField(max_length=80, unique=True)),
                ("index", models.PositiveSmallIntegerField()),
                ("model", models.CharField(max_length=100)),
                ("memory_mib", models.PositiveIntegerField()),
                (
                    "mode",
                    models.CharField(
                        choices=[("whole", "whole"), ("share", "share"), ("mig", "mig")],
                        max_length=10,
                    ),
                ),
                ("simulated", models.BooleanField()),
                ("healthy", models.BooleanField()),
                ("health_reason", models.CharField(blank=True, max_length=200)),
                ("mig_geometry", models.JSONField(null=True)),
                ("compute_leased_milli", models.IntegerField(default=0)),
                ("memory_leased_mib", models.IntegerField(default=0)),
                ("utilisation_percent", models.FloatField(null=True)),
                ("memory_used_mib", models.PositiveIntegerField(null=True)),
                ("sampled_at", models.DateTimeField(null=True)),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gpus",
                        to="fleet.node",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Slice",
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
                (
                    "kind",
                    models.CharField(
                        choices=[("whole", "whole"), ("share", "share"), ("mig", "mig")],
                        max_length=10,
                    ),
                ),
                ("memory_mib", models.PositiveIntegerField()),
                ("compute_milli", models.PositiveIntegerField()),
                ("mig_profile", models.CharField(blank=True, max_length=20)),
                ("mig_start", models.PositiveSmallIntegerField(null=True)),
                (
                    "gpu",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="slices",
                        to="fleet.gpu",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Lease",
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
                ("attempt_id", models.CharField(max_length=36, unique=True)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("desired", models.CharField(max_length=10)),
                ("memory_mib", models.PositiveIntegerField()),
                ("compute_milli", models.PositiveIntegerField()),
                (
                    "enforcement_memory",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("hardware", "hardware"),
                            ("driver", "driver"),
                            ("cooperative", "cooperative"),
                            ("none", "none"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "enforcement_compute",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("hardware", "hardware"),
                            ("driver", "driver"),
                            ("cooperative", "cooperative"),
                            ("none", "none"),
                        ],
                        max_length=12,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("released_at", models.DateTimeField(null=True)),
                ("utilisation_percent", models.FloatField(null=True)),
                ("memory_used_mib", models.PositiveIntegerField(null=True)),
                ("memory_peak_mib", models.PositiveIntegerField(null=True)),
                ("sampled_at", models.DateTimeField(null=True)),
                (
                    "gpu",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leases",
                        to="fleet.gpu",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leases",
                        to="fleet.node",
                    ),
                ),
                (
                    "slice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leases",
                        to="fleet.slice",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="MigUnit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("unit", models.PositiveSmallIntegerField()),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "gpu",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mig_units",
                        to="fleet.gpu",
                    ),
                ),
                (
                    "lease",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mig_units",
                        to="fleet.lease",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("released_at__isnull", True)),
                        fields=("gpu", "unit"),
                        name="mig_unit_leased_once",
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="gpu",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("compute_leased_milli__gte", 0), ("compute_leased_milli__lte", 1000)
                ),
                name="gpu_compute_within_capacity",
            ),
        ),
        migrations.AddConstraint(
            model_name="gpu",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("memory_leased_mib__gte", 0),
                    ("memory_leased_mib__lte", models.F("memory_mib")),
                ),
                name="gpu_memory_within_capacity",
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=models.Q(("released_at__isnull", True)),
                fields=["node"],
                name="lease_active_by_node",
            ),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.UniqueConstraint(
                condition=models.Q(("released_at__isnull", True)),
                fields=("slice",),
                name="slice_leased_once",
            ),
        ),
    ]
