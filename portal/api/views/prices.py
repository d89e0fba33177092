"""The price book."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.selectors import price_versions
from billing.services.prices import publish_price
from portal.accounts.access import access_platform
from portal.accounts.roles import Scope
from portal.api.base import View, answer_once
from portal.api.schema import IDEMPOTENCY_KEY, problems
from portal.api.serializers.billing import PriceIn, PriceListOut, PriceOut
from portal.config import config
from portal.core.clock import utc_now
from portal.core.idempotency import Answer


class Prices(View):
    @extend_schema(operation_id="prices_list", responses={200: PriceListOut, **problems(401, 403)})
    def get(self, request: Request) -> Response:
        """List the versions of the price book, oldest first."""
        access_platform(self.principal, need=Scope.FLEET_READ)
        return Response(PriceListOut({"items": price_versions()}).data)

    @extend_schema(
        operation_id="prices_publish",
        parameters=[IDEMPOTENCY_KEY],
        request=PriceIn,
        responses={201: PriceOut, **problems(400, 401, 403, 409, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """Publish prices from a moment on; for administrators of the platform."""
        principal = self.principal
        access_platform(principal, need=Scope.TENANT_ADMIN)
        body = self.body(PriceIn)

        def effect() -> Answer:
            version_id = publish_price(
                actor=principal.actor,
                effective_from=body.get("effective_from"),
                currency=body.get("currency", config.currency),
                rates=body["rates"],
                now=utc_now(),
            )
            version = next(price for price in price_versions() if price.id == version_id)
            return Answer(201, dict(PriceOut(version).data))

        return answer_once(request, principal, effect)
