"""Limits and prices, for administrators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from billing.selectors import price_versions, repriced
from billing.services.prices import publish_price
from jobs.services.limits import preview_limit
from portal.accounts.access import (
    Principal,
    access_platform,
    access_project,
    access_tenant_from_above,
)
from portal.accounts.roles import Scope
from portal.accounts.selectors import project_lines
from portal.config import config
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.core.money import Money
from portal.fleet.selectors import fleet_view
from portal.web.base import page, put_error
from portal.web.forms import PriceForm, QuotaForm
from portal.web.quota_tree import quota_lines
from quotas.selectors import levels_of, queued_limit
from quotas.services.limits import set_limit

HOLDERS_SHOWN = 20


@dataclass(frozen=True)
class PriceEffect:
    project_slug: str
    before: Money
    after: Money

    @property
    def change(self) -> Money:
        return Money(self.after.amount_micros - self.before.amount_micros, self.after.currency)


@require_GET
@page
def quotas(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The tree of tenants and projects that the caller may look into, with limits and use."""
    return render(request, "web/quotas.html", {"lines": quota_lines(principal)})


@require_http_methods(["GET", "POST"])
@page
def project_quota(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.TENANT_ADMIN)
    return _quota(request, principal, place.id, f"project {place.slug}", is_project=True)


@require_http_methods(["GET", "POST"])
@page
def tenant_quota(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = access_tenant_from_above(principal, tenant, need=Scope.TENANT_ADMIN)
    return _quota(request, principal, place.id, f"tenant {place.slug}", is_project=False)


@require_http_methods(["GET", "POST"])
@page
def prices(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The price book; administrators of the platform publish the next version."""
    now = utc_now()
    versions = price_versions()
    form = None
    preview = None
    if principal.is_platform_admin:
        models = sorted({gpu.model for node in fleet_view() for gpu in node.gpus})
        known = versions[-1].rates if versions else {}
        models = [*sorted({*models, *known} - {"*"}), "*"]
        initial = {
            f"rate_{number}": f"{known.get(model, known.get('*', 0)) / 1_000_000:.2f}"
            for number, model in enumerate(models)
        }
        form = PriceForm(
            request.POST if request.method == "POST" else None,
            initial=initial,
            models=models,
            currency=config.currency,
        )
        if request.method == "POST" and form.is_valid() and "preview" in request.POST:
            preview = _effect(form.rates, now)
        elif request.method == "POST" and form.is_valid():
            try:
                _publish(principal, form)
            except PortalError as error:
                put_error(form, error, {})
            else:
                messages.success(request, _("The prices are published."))
                return redirect("web:prices")
    elif request.method == "POST":
        access_platform(principal, need=Scope.TENANT_ADMIN)
    return render(
        request,
        "web/prices.html",
        {
            "versions": list(reversed(versions)),
            "form": form,
            "preview": preview,
            "now": now,
            "current_id": next(
                (price.id for price in reversed(versions) if price.effective_from <= now), None
            ),
        },
        status=422 if form is not None and form.errors else 200,
    )


def _effect(rates: dict[str, int], now: datetime) -> list[PriceEffect]:
    """Last month's cost of each project, as it was and as it would have been."""
    until = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    since = (until - timedelta(days=1)).replace(day=1)
    effects = repriced(rates, since=since, until=until)
    projects = project_lines(effect.project_id for effect in effects)
    return sorted(
        (
            PriceEffect(projects[effect.project_id].slug, effect.before, effect.after)
            for effect in effects
        ),
        key=lambda effect: -effect.after.amount_micros,
    )


def _publish(principal: Principal, form: PriceForm) -> None:
    begins = form.cleaned_data["effective_from"]
    publish_price(
        actor=principal.actor,
        effective_from=begins and begins.replace(tzinfo=UTC),
        currency=config.currency,
        rates=form.rates,
        now=utc_now(),
    )


def _quota(
    request: HttpRequest, principal: Principal, owner_id: str, name: str, *, is_project: bool
) -> HttpResponse:
    level = levels_of([owner_id])[owner_id]
    form = QuotaForm(
        request.POST if request.method == "POST" else None,
        initial={
            "limit_gpus": None if level.limit_milli is None else f"{level.limit_milli / 1000:g}",
            "queued_limit": queued_limit(owner_id),
        },
    )
    if not is_project:
        del form.fields["queued_limit"]
    preview = None
    if request.method == "POST" and form.is_valid() and "preview" in request.POST:
        preview = preview_limit(owner_id, form.limit_milli, now=utc_now())
    elif request.method == "POST" and form.is_valid():
        try:
            set_limit(
                actor=principal.actor,
                owner_id=owner_id,
                limit_milli=form.limit_milli,
                queued_limit=form.cleaned_data.get("queued_limit"),
                now=utc_now(),
            )
        except PortalError as error:
            put_error(form, error, {"limit_milli": "limit_gpus"})
        else:
            messages.success(request, _("The limit of %(name)s is set.") % {"name": name})
            return redirect("web:quotas")
    return render(
        request,
        "web/quota.html",
        {
            "form": form,
            "name": name,
            "level": level,
            "preview": preview,
            "holders": preview.holders[:HOLDERS_SHOWN] if preview else (),
        },
        status=422 if form.errors else 200,
    )
