"""The log of a job, as bytes."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.services.engine import agent_engine
from jobs.services.logs import read_log, search_log
from portal.api.base import View
from portal.api.schema import JOB_REF, problems
from portal.api.serializers.jobs import LogIn, LogSearchIn, LogSearchOut
from portal.api.waiting import place

_HEADERS = [
    OpenApiParameter(
        "X-Log-Next-Offset",
        OpenApiTypes.INT64,
        OpenApiParameter.HEADER,
        response=[200],
        description="offset of the next read",
    ),
    OpenApiParameter(
        "X-Log-Final",
        OpenApiTypes.BOOL,
        OpenApiParameter.HEADER,
        response=[200],
        description="true: the attempt has ended and this was its last byte",
    ),
]


class JobLog(View):
    @extend_schema(
        operation_id="jobs_log",
        parameters=[JOB_REF, LogIn, *_HEADERS],
        responses={
            (200, "text/plain"): OpenApiResponse(OpenApiTypes.BINARY, "the bytes from offset on"),
            **problems(401, 403, 404, 422, 503),
        },
    )
    def get(self, request: Request, ref: str) -> HttpResponse:
        """Read what the job wrote; with ``wait_ms`` wait until there is more."""
        query = self.query(LogIn)
        with place() as taken:
            chunk = read_log(
                agent_engine(),
                principal=self.principal,
                job_id=ref,
                attempt=query["attempt"],
                offset=query["offset"],
                limit=query["limit"],
                wait_ms=query["wait_ms"] if taken else 0,
            )
        response = HttpResponse(chunk.data, content_type="text/plain; charset=utf-8")
        response["X-Log-Next-Offset"] = str(chunk.next_offset)
        response["X-Log-Final"] = "true" if chunk.final else "false"
        response["Cache-Control"] = "no-store"
        return response


class JobLogSearch(View):
    @extend_schema(
        operation_id="jobs_log_search",
        parameters=[JOB_REF, LogSearchIn],
        responses={200: LogSearchOut, **problems(401, 403, 404, 422, 503)},
    )
    def get(self, request: Request, ref: str) -> Response:
        """Find the first lines of an attempt's log that contain a text."""
        query = self.query(LogSearchIn)
        lines = search_log(
            agent_engine(),
            principal=self.principal,
            job_id=ref,
            wanted=query["q"],
            attempt=query["attempt"],
            most=query["limit"],
        )
        return Response(LogSearchOut({"items": lines}).data)
