"""The addresses of ``/api/v1``."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "api"
urlpatterns: list[URLPattern] = []
