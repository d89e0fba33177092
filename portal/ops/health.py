"""Probes: is the process alive, and could it serve?"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from celery import current_app
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from kombu.exceptions import OperationalError as BrokerLost

_log = structlog.get_logger(__name__)


def livez(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "alive"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when every part answers; else 503 with the parts that do not."""
    parts = {name: check() for name, check in _CHECKS.items()}
    ready = all(parts.values())
    body = {"status": "ready" if ready else "not ready", "parts": parts}
    return JsonResponse(body, status=200 if ready else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        _log.warning("readyz.database", error=str(error))
        return False
    return True


def _migrations() -> bool:
    try:
        executor = MigrationExecutor(connection)
        return not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        _log.warning("readyz.migrations", error=str(error))
        return False


def _broker() -> bool:
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except BrokerLost as error:
        _log.warning("readyz.broker", error=str(error))
        return False
    return True


_CHECKS: dict[str, Callable[[], bool]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
}
