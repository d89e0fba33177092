"""Nodes and GPUs, with every slice drawn on its GPU."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_GET

from jobs.selectors import JobName, jobs_on_leases
from portal.accounts.access import Principal, access_platform
from portal.accounts.roles import Scope
from portal.fleet.selectors import GpuView, LeaseView, NodeView, fleet_view
from portal.web.base import page


@dataclass(frozen=True)
class Part:
    """A lease as a stretch of a GPU's bar, in thousandths of its width."""

    lease: LeaseView
    job: JobName | None
    tone: int
    compute_at: int
    memory_at: int
    memory_milli: int


@dataclass(frozen=True)
class GpuBar:
    gpu: GpuView
    parts: tuple[Part, ...]

    @property
    def compute_free_milli(self) -> int:
        return 1000 - self.gpu.compute_leased_milli

    @property
    def memory_free_mib(self) -> int:
        return self.gpu.memory_mib - self.gpu.memory_leased_mib


@require_GET
@page
def gpus(request: HttpRequest, principal: Principal) -> HttpResponse:
    access_platform(principal, need=Scope.FLEET_READ)
    nodes = fleet_view()
    every = [gpu for node in nodes for gpu in node.gpus]
    jobs = jobs_on_leases(principal, (lease.id for gpu in every for lease in gpu.leases))
    return render(
        request,
        "web/gpus.html",
        {
            "nodes": [(node, _bars(node, jobs)) for node in nodes],
            "count": len(every),
            "simulated": sum(gpu.simulated for gpu in every),
            # Rendered once: a template included for each of hundreds of GPUs is dear.
            "simulated_tag": mark_safe(render_to_string("web/_simulated.html")),  # noqa: S308
            "healthy": sum(gpu.healthy for gpu in every),
            "leased_milli": sum(gpu.compute_leased_milli for gpu in every),
            "leases": sum(len(gpu.leases) for gpu in every),
        },
    )


def _bars(node: NodeView, jobs: dict[str, JobName]) -> list[GpuBar]:
    return [GpuBar(gpu, _parts(gpu, jobs)) for gpu in node.gpus]


def _parts(gpu: GpuView, jobs: dict[str, JobName]) -> tuple[Part, ...]:
    parts = []
    compute_at = memory_mib = 0
    for number, lease in enumerate(gpu.leases):
        memory_at = memory_mib * 1000 // gpu.memory_mib
        memory_mib += lease.memory_mib
        memory_end = memory_mib * 1000 // gpu.memory_mib
        parts.append(
            Part(
                lease=lease,
                job=jobs.get(lease.id),
                tone=number % 6 + 1,
                compute_at=compute_at,
                memory_at=memory_at,
                memory_milli=memory_end - memory_at,
            )
        )
        compute_at += lease.compute_milli
    return tuple(parts)
