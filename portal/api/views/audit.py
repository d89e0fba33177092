"""Who changed what."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.audit_log import AuditFilter, audit_page
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.audit import AuditIn, AuditPageOut


class Audit(View):
    @extend_schema(
        operation_id="audit_list",
        parameters=[AuditIn],
        responses={200: AuditPageOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """List what happened in the projects and tenants that the caller administers."""
        query = self.query(AuditIn)
        asked = AuditFilter(
            actor=query.get("actor", ""),
            verb=query.get("verb", ""),
            object_id=query.get("object", ""),
            project=query.get("project", ""),
            since=query.get("since"),
            until=query.get("until"),
        )
        page = audit_page(
            self.principal, asked=asked, before=query.get("cursor"), limit=query["limit"]
        )
        return Response(AuditPageOut(page).data)
