"""What was used and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.selectors import Group, UsageLine, usage_of_projects
from jobs.selectors import job_names
from portal.accounts.access import access_project, accessible_project_ids
from portal.accounts.roles import Scope
from portal.accounts.selectors import project_lines, user_names
from portal.api.base import View
from portal.api.schema import problems
from portal.api.serializers.billing import UsageIn, UsageOut
from portal.config import config
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.core.money import Money

UNLESS_TOLD = timedelta(days=30)


class Usage(View):
    @extend_schema(
        operation_id="usage_read",
        parameters=[UsageIn],
        responses={200: UsageOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """Sum metered use and its cost by project, user or job, in ``[since, until)``."""
        query = self.query(UsageIn)
        until = query.get("until") or utc_now()
        since = query.get("since") or until - UNLESS_TOLD
        if since >= until:
            raise Rejected("api.period_empty", "since must lie before until.", field="since")
        if query.get("project"):
            place = access_project(self.principal, query["project"], need=Scope.USAGE_READ)
            project_ids: set[str] | None = {place.id}
        else:
            project_ids = accessible_project_ids(self.principal, need=Scope.USAGE_READ)
        lines = usage_of_projects(
            project_ids, since=since, until=until, group=Group(query["group"])
        )
        answer = {
            "since": since,
            "until": until,
            "group": query["group"],
            "items": list(named(lines)),
            "total": total_of(lines),
        }
        return Response(UsageOut(answer).data)


def named(lines: list[UsageLine]) -> Iterable[dict[str, Any]]:
    """Put the names of projects, users and jobs beside their ids."""
    projects = project_lines(line.project_id for line in lines)
    users = user_names(line.user_id for line in lines if line.user_id)
    jobs = job_names(line.job_id for line in lines if line.job_id)
    for line in lines:
        yield {
            "project": projects[line.project_id].slug,
            "project_id": line.project_id,
            **({"user": users[line.user_id]} if line.user_id else {}),
            **({"job_id": line.job_id, "job": jobs[line.job_id].short_name} if line.job_id else {}),
            "seconds": line.use.seconds,
            "gpu_seconds": line.use.gpu_seconds,
            "cost": line.use.cost,
        }


def total_of(lines: list[UsageLine]) -> dict[str, Any]:
    return {
        "seconds": sum(line.use.metered_ms for line in lines) / 1000,
        "gpu_seconds": sum(line.use.gpu_milli_ms for line in lines) / 1_000_000,
        "cost": Money(sum(line.use.cost.amount_micros for line in lines), config.currency),
    }
