"""Who changed what, for administrators."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from portal.accounts.access import Principal
from portal.accounts.audit_log import AuditFilter, audit_page
from portal.accounts.selectors import projects_of
from portal.web.base import page
from portal.web.forms import AuditForm

_DAY = timedelta(days=1)


@require_GET
@page
def audit(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Days are whole and UTC; the last day of the form is in the list."""
    projects = [project.slug for project in projects_of(principal)]
    form = AuditForm(request.GET, projects=projects)
    wanted = form.cleaned_data if form.is_valid() else {}
    since, until = wanted.get("since"), wanted.get("until")
    asked = AuditFilter(
        actor=wanted.get("actor", ""),
        verb=wanted.get("verb", ""),
        object_id=wanted.get("object", ""),
        project=wanted.get("project", ""),
        since=since and datetime.combine(since, time(), UTC),
        until=until and datetime.combine(until, time(), UTC) + _DAY,
    )
    found = audit_page(principal, asked=asked, before=request.GET.get("before"))
    lines = [
        {"entry": entry, "raw": json.dumps(entry.detail, indent=2, sort_keys=True)}
        for entry in found.items
    ]
    kept = {name: value for name, value in request.GET.items() if name != "before" and value}
    older = urlencode({**kept, "before": found.next_before}) if found.next_before else ""
    return render(
        request,
        "web/audit.html",
        {"form": form, "lines": lines, "older": older, "title": _("Audit")},
        status=422 if form.errors else 200,
    )
