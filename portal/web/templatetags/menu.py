"""The entries of the main menu."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.utils.translation import gettext as _

from portal.accounts.access import every_scope_of, principal_of_user
from portal.accounts.models import User
from portal.accounts.roles import Scope

register = template.Library()
_PAGES_OF = {
    "jobs": {"jobs", "job"},
    "nodes": {"nodes", "node-drain", "node-lost"},
    "tenants": {
        "audit",
        "tenants",
        "tenant",
        "tenant-new",
        "project",
        "project-invitations",
        "tenant-invitations",
        "users",
        "user",
        "user-new",
    },
    "quotas": {"quotas", "project-quota", "tenant-quota"},
}


@register.inclusion_tag("web/_menu_item.html", takes_context=True)
def menu_item(context: Context, name: str, label: str, icon: str) -> dict[str, Any]:
    """A link that knows whether it leads to where one is."""
    match = getattr(context.get("request"), "resolver_match", None)
    here = match.url_name if match else ""
    active = here in _PAGES_OF.get(name, {name})
    return {"name": name, "label": label, "icon": icon, "active": active}


@register.simple_tag(takes_context=True)
def teams_tabs(context: Context) -> list[dict[str, str]]:
    """The pages about people and places that the caller may open."""
    user = getattr(context.get("request"), "user", None)
    if not isinstance(user, User):
        return []
    principal = principal_of_user(user)
    tabs = [{"name": "tenants", "url": "web:tenants", "label": _("Projects")}]
    if principal.is_platform_admin:
        tabs.append({"name": "users", "url": "web:users", "label": _("Users")})
    if Scope.PROJECT_ADMIN in every_scope_of(principal):
        tabs.append({"name": "audit", "url": "web:audit", "label": _("Audit")})
    return tabs
