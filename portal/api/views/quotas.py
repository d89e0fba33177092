"""What projects and tenants may hold at once."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.access import (
    Principal,
    access_project,
    access_tenant,
    access_tenant_from_above,
)
from portal.accounts.roles import Scope
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.billing import QuotaIn, QuotaOut
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from quotas.selectors import levels_of, queued_limit
from quotas.services.limits import set_limit

_READ = problems(401, 403, 404)
_WRITE = problems(400, 401, 403, 404, 422, 503)


class ProjectQuota(View):
    @extend_schema(operation_id="quotas_read_project", responses={200: QuotaOut, **_READ})
    def get(self, request: Request, project: str) -> Response:
        """Read the limits of a project and what it holds."""
        place = access_project(self.principal, project, need=Scope.USAGE_READ)
        return Response(quota_json(place.id))

    @extend_schema(
        operation_id="quotas_set_project", request=QuotaIn, responses={200: QuotaOut, **_WRITE}
    )
    def put(self, request: Request, project: str) -> Response:
        """Set the limits of a project; for administrators of its tenant."""
        place = access_project(self.principal, project, need=Scope.TENANT_ADMIN)
        return Response(_set(self.principal, place.id, self.body(QuotaIn)))


class TenantQuota(View):
    @extend_schema(operation_id="quotas_read_tenant", responses={200: QuotaOut, **_READ})
    def get(self, request: Request, tenant: str) -> Response:
        """Read the limit of a tenant and what it holds."""
        place = access_tenant(self.principal, tenant, need=Scope.USAGE_READ)
        return Response(quota_json(place.id))

    @extend_schema(
        operation_id="quotas_set_tenant", request=QuotaIn, responses={200: QuotaOut, **_WRITE}
    )
    def put(self, request: Request, tenant: str) -> Response:
        """Set the limit of a tenant; for administrators of the tenant above, or the platform."""
        place = access_tenant_from_above(self.principal, tenant, need=Scope.TENANT_ADMIN)
        body = self.body(QuotaIn)
        if body.get("queued_limit") is not None:
            raise Rejected(
                "api.queued_limit_of_tenant",
                "Only projects limit how many of their jobs wait.",
                hint="Leave queued_limit out.",
                field="queued_limit",
            )
        return Response(_set(self.principal, place.id, body))


def quota_json(owner_id: str) -> dict[str, Any]:
    level = levels_of([owner_id])[owner_id]
    return {
        "owner_id": owner_id,
        "limit_milli": level.limit_milli,
        "queued_limit": queued_limit(owner_id),
        "held_milli": level.held_milli,
    }


def _set(principal: Principal, owner_id: str, body: dict[str, Any]) -> dict[str, Any]:
    set_limit(
        actor=principal.actor,
        owner_id=owner_id,
        limit_milli=body["limit_milli"],
        queued_limit=body.get("queued_limit"),
        now=utc_now(),
    )
    return quota_json(owner_id)
