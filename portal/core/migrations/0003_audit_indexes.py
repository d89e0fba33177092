from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0002_append_only")]

    operations = [
        migrations.AddIndex(
            "AuditEntry", models.Index(fields=["tenant_id", "id"], name="audit_of_tenant")
        ),
        migrations.AddIndex(
            "AuditEntry", models.Index(fields=["actor_id", "id"], name="audit_of_actor")
        ),
        migrations.AddIndex(
            "AuditEntry", models.Index(fields=["object_id", "id"], name="audit_of_object")
        ),
    ]
