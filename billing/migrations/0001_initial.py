import django.db.models.deletion
from django.db import migrations, models

import portal.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="PriceVersion",
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
                ("effective_from", models.DateTimeField(unique=True)),
                ("currency", models.CharField(max_length=3)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="Rate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("gpu_model", models.CharField(max_length=100)),
                ("micros_per_gpu_hour", models.BigIntegerField()),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rates",
                        to="billing.priceversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("version", "gpu_model"), name="rate_once_per_model"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("micros_per_gpu_hour__gte", 0)),
                        name="rate_not_negative",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Segment",
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
                ("lease_id", models.CharField(max_length=36)),
                ("job_id", models.CharField(db_index=True, max_length=36)),
                ("project_id", models.CharField(max_length=36)),
                ("tenant_id", models.CharField(max_length=36)),
                ("user_id", models.CharField(max_length=36)),
                ("gpu_model", models.CharField(max_length=100)),
                ("equivalent_milli", models.PositiveIntegerField()),
                ("compute_milli", models.PositiveIntegerField()),
                ("memory_mib", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("duration_ms", models.PositiveIntegerField()),
                ("rate_micros_per_gpu_hour", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "price_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="billing.priceversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project_id", "started_at"], name="segment_by_project")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("lease_id", "started_at"), name="segment_once"),
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__gt", models.F("started_at"))),
                        name="segment_not_empty",
                    ),
                ],
            },
        ),
    ]
