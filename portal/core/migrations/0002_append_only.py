"""The audit is never rewritten."""

from django.db import migrations

from portal.core.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]

    operations = [AppendOnly("AuditEntry")]
