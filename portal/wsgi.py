"""The portal as a WSGI application: all pages and the REST API."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

import portal.celery  # noqa: F401  (the outbox sends tasks by this application)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()
