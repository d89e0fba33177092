from django.db import migrations, models

import portal.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
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
                ("at", models.DateTimeField(db_index=True)),
                ("actor_id", models.CharField(blank=True, max_length=36)),
                ("actor_name", models.CharField(max_length=200)),
                ("verb", models.CharField(db_index=True, max_length=64)),
                ("object_type", models.CharField(max_length=32)),
                ("object_id", models.CharField(max_length=64)),
                ("tenant_id", models.CharField(blank=True, max_length=36)),
                ("project_id", models.CharField(blank=True, db_index=True, max_length=36)),
                ("detail", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic", models.CharField(max_length=64)),
                ("ref", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(db_index=True)),
                ("tries", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="RowLease",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("owner", models.CharField(max_length=64)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("principal_id", models.CharField(max_length=36)),
                ("key", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("body", models.JSONField()),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("principal_id", "key"), name="idempotency_key_once"
                    )
                ],
            },
        ),
    ]
