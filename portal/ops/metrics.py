"""What Prometheus reads of the portal: states counted in the database at the time of asking."""

from __future__ import annotations

import ipaddress
from collections import Counter
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from jobs.domain.states import JobState
from jobs.selectors import counts_by_state, oldest_waiting_since
from portal.accounts.access import access_platform
from portal.accounts.roles import Scope
from portal.accounts.tokens import authenticate_token
from portal.core import outbox
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.fleet.selectors import fleet_view

_SECOND = timedelta(seconds=1)


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """For this machine, or with a token that carries ``fleet:admin``."""
    if not (_is_loopback(request) or _has_token(request)):
        return HttpResponse(
            "The metrics need a token with the scope fleet:admin.\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": "Bearer"},
        )
    registry = CollectorRegistry()
    _count_jobs(registry)
    _count_outbox(registry)
    _count_fleet(registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _is_loopback(request: HttpRequest) -> bool:
    """A proxy on this machine speaks for others, so what it passes on needs a token."""
    if "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _has_token(request: HttpRequest) -> bool:
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    principal = (
        authenticate_token(secret.strip(), utc_now()) if scheme.lower() == "bearer" else None
    )
    if principal is None:
        return False
    try:
        access_platform(principal, need=Scope.FLEET_ADMIN)
    except PortalError:
        return False
    return True


def _count_jobs(registry: CollectorRegistry) -> None:
    by_state = Gauge("gpucommons_jobs", "Jobs by state", ["state"], registry=registry)
    counts = counts_by_state()
    for state in JobState:
        by_state.labels(state).set(counts.get(state, 0))
    since = oldest_waiting_since()
    waited = Gauge(
        "gpucommons_queue_oldest_seconds", "Age of the oldest waiting job", registry=registry
    )
    waited.set((utc_now() - since) / _SECOND if since else 0)


def _count_outbox(registry: CollectorRegistry) -> None:
    count, since = outbox.backlog()
    messages = Gauge("gpucommons_outbox_messages", "Effects not done yet", registry=registry)
    messages.set(count)
    waited = Gauge(
        "gpucommons_outbox_oldest_seconds", "Age of the oldest of them", registry=registry
    )
    waited.set((utc_now() - since) / _SECOND if since else 0)


def _count_fleet(registry: CollectorRegistry) -> None:
    nodes = fleet_view()
    by_state = Gauge("gpucommons_nodes", "Nodes by state", ["state"], registry=registry)
    for state, count in Counter(node.state.value for node in nodes).items():
        by_state.labels(state).set(count)
    labels = ["node", "gpu", "model", "simulated"]
    healthy = Gauge("gpucommons_gpu_healthy", "1: in service", labels, registry=registry)
    compute = Gauge(
        "gpucommons_gpu_leased_compute_milli", "Thousandths leased", labels, registry=registry
    )
    memory = Gauge("gpucommons_gpu_leased_memory_mib", "MiB leased", labels, registry=registry)
    capacity = Gauge("gpucommons_gpu_memory_mib", "MiB in all", labels, registry=registry)
    leases = Gauge("gpucommons_gpu_leases", "Active leases", labels, registry=registry)
    for node in nodes:
        for gpu in node.gpus:
            names = (node.name, str(gpu.index), gpu.model, str(gpu.simulated).lower())
            healthy.labels(*names).set(gpu.healthy)
            compute.labels(*names).set(gpu.compute_leased_milli)
            memory.labels(*names).set(gpu.memory_leased_mib)
            capacity.labels(*names).set(gpu.memory_mib)
            leases.labels(*names).set(len(gpu.leases))
