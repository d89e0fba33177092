from django.db import migrations, models

import portal.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Hold",
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
                ("project_id", models.CharField(max_length=36)),
                ("owner_ids", models.JSONField()),
                ("equivalent_milli", models.PositiveIntegerField()),
                ("held_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="QuotaAccount",
            fields=[
                ("owner_id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("limit_milli", models.PositiveIntegerField(null=True)),
                ("queued_limit", models.PositiveIntegerField(null=True)),
                ("held_milli", models.IntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("held_milli__gte", 0)), name="quota_held_not_negative"
                    )
                ],
            },
        ),
    ]
