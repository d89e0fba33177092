"""Prices and metered use are never rewritten."""

from django.db import migrations

from portal.core.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]

    operations = [AppendOnly("PriceVersion"), AppendOnly("Rate"), AppendOnly("Segment")]
