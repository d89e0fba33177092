"""Arrays: one submission with several members."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import selectors
from jobs.services.cancel import cancel_array
from portal.api.base import View, answer_once
from portal.api.schema import IDEMPOTENCY_KEY, problems
from portal.api.serializers.jobs import ArrayOut, WaitIn
from portal.api.views.jobs import states_of
from portal.api.waiting import wait_while
from portal.core.clock import utc_now
from portal.core.idempotency import Answer


class OneArray(View):
    @extend_schema(
        operation_id="arrays_read",
        parameters=[WaitIn],
        responses={200: ArrayOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request, array_id: str) -> Response:
        """Read how many members are in which state; or wait until the state changes."""
        query = self.query(WaitIn)
        unless = states_of(query["unless_state"], "unless_state")
        if query["wait_ms"] and unless:
            state = selectors.array_state_reader(self.principal, array_id)
            wait_while(lambda: state() in unless, query["wait_ms"])
        view = selectors.array_view(self.principal, array_id)
        return Response(ArrayOut(view).data)


class CancelArray(View):
    @extend_schema(
        operation_id="arrays_cancel",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={202: ArrayOut, **problems(401, 403, 404, 409, 422, 503)},
    )
    def post(self, request: Request, array_id: str) -> Response:
        """Wish that every member ends that has not ended."""
        principal = self.principal

        def effect() -> Answer:
            cancel_array(principal=principal, array_id=array_id, now=utc_now())
            return Answer(202, dict(ArrayOut(selectors.array_view(principal, array_id)).data))

        return answer_once(request, principal, effect)
