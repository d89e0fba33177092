"""The entries of the main menu."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

register = template.Library()
_PAGES_OF = {
    "jobs": {"jobs", "job"},
    "nodes": {"nodes", "node-drain", "node-lost"},
    "quotas": {"quotas", "project-quota", "tenant-quota"},
}


@register.inclusion_tag("web/_menu_item.html", takes_context=True)
def menu_item(context: Context, name: str, label: str, icon: str) -> dict[str, Any]:
    """A link that knows whether it leads to where one is."""
    match = getattr(context.get("request"), "resolver_match", None)
    here = match.url_name if match else ""
    active = here in _PAGES_OF.get(name, {name})
    return {"name": name, "label": label, "icon": icon, "active": active}
