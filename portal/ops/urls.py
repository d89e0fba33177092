"""What operators and their probes ask."""

from __future__ import annotations

from django.urls import path

from portal.ops import health, metrics

app_name = "ops"
urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]
