"""What was used and what it costs."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.selectors import Group
from jobs.services.usage import read_usage
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.billing import UsageIn, UsageOut
from portal.core.clock import utc_now


class Usage(View):
    @extend_schema(
        operation_id="usage_read",
        parameters=[UsageIn],
        responses={200: UsageOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """Sum metered use and its cost by project, user, day or job, in ``[since, until)``."""
        query = self.query(UsageIn)
        report = read_usage(
            self.principal,
            project=query.get("project"),
            since=query.get("since"),
            until=query.get("until"),
            group=Group(query["group"]),
            now=utc_now(),
        )
        return Response(UsageOut(report).data)
