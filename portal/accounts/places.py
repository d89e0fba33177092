"""Tenants and projects as their administrators see, make and rename them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.accounts.access import (
    Principal,
    ProjectRef,
    TenantRef,
    access_platform,
    access_project,
    access_tenant,
    accessible_project_ids,
    accessible_tenant_ids,
    tenant_ids_of_path,
)
from portal.accounts.models import Project, Tenant
from portal.accounts.roles import EVERY_SCOPE, Scope
from portal.accounts.services import create_project, create_tenant, rename_project, rename_tenant


@dataclass(frozen=True)
class TenantInfo:
    """A tenant in the tree. ``may_administer``: the caller administers all of it."""

    id: str
    slug: str
    name: str
    parent_id: str | None
    path: str
    may_administer: bool

    @property
    def depth(self) -> int:
        return len(tenant_ids_of_path(self.path)) - 1


@dataclass(frozen=True)
class ProjectPlace:
    id: str
    slug: str
    name: str
    tenant_id: str
    tenant_path: str


@dataclass(frozen=True)
class Branch:
    """A tenant with its projects, as the caller sees them; branches come in the tree's order."""

    tenant: TenantInfo
    projects: tuple[ProjectPlace, ...]


def tree_of(principal: Principal) -> list[Branch]:
    """Give the tenants that the caller has a role in or above, and the projects that they may
    look into; a project's tenants are shown by name also to those without a role in them.
    """
    project_ids = accessible_project_ids(principal, need=Scope.JOBS_READ)
    projects = Project.objects.select_related("tenant").order_by("slug")
    if project_ids is not None:
        projects = projects.filter(pk__in=project_ids)
    of_tenant: dict[str, list[ProjectPlace]] = {}
    shown: set[str] = set()
    for project in projects:
        place = ProjectPlace(
            project.id, project.slug, project.name, project.tenant_id, project.tenant.path
        )
        of_tenant.setdefault(project.tenant_id, []).append(place)
        shown.update(tenant_ids_of_path(project.tenant.path))
    reach = accessible_tenant_ids(principal, need=Scope.JOBS_READ)
    for path in Tenant.objects.filter(pk__in=reach or ()).values_list("path", flat=True):
        shown.update(tenant_ids_of_path(path))
    return [
        Branch(tenant, tuple(of_tenant.get(tenant.id, ())))
        for tenant in _tenants(principal, shown, all_of_them=project_ids is None)
    ]


def tenants_of(principal: Principal) -> list[TenantInfo]:
    """Give the tenants in all of which the caller has a role, in the tree's order."""
    reach = accessible_tenant_ids(principal, need=Scope.USAGE_READ)
    return [
        tenant
        for tenant in _tenants(principal, reach or set(), all_of_them=reach is None)
        if reach is None or tenant.id in reach
    ]


def tenant_info(principal: Principal, tenant: TenantRef) -> TenantInfo:
    """Complete what `access_tenant` gave."""
    return next(
        one for one in _tenants(principal, {tenant.id}, all_of_them=False) if one.id == tenant.id
    )


def projects_of_tenant(principal: Principal, tenant: TenantRef) -> list[ProjectPlace]:
    """Give the projects of a tenant itself; whoever has a role in it may look into them all."""
    access_tenant(principal, tenant.id, need=Scope.USAGE_READ)
    return [
        ProjectPlace(project.id, project.slug, project.name, tenant.id, tenant.path)
        for project in Project.objects.filter(tenant_id=tenant.id).order_by("slug")
    ]


def make_project(
    principal: Principal, *, tenant: str, name: str, slug: str, now: datetime
) -> ProjectRef:
    """Make a project in a tenant that the caller administers."""
    place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    project_id = create_project(
        actor=principal.actor, tenant_id=place.id, name=name, slug=slug, now=now
    )
    return access_project(principal, project_id, need=Scope.TENANT_ADMIN)


def make_tenant(
    principal: Principal, *, parent: str | None, name: str, slug: str, now: datetime
) -> TenantRef:
    """Make a tenant below one that the caller administers; roots are the platform's."""
    parent_id = None
    if parent is None:
        access_platform(principal, need=Scope.TENANT_ADMIN)
    else:
        parent_id = access_tenant(principal, parent, need=Scope.TENANT_ADMIN).id
    tenant_id = create_tenant(
        actor=principal.actor, name=name, slug=slug, parent_id=parent_id, now=now
    )
    return access_tenant(principal, tenant_id, need=Scope.TENANT_ADMIN)


def name_project(principal: Principal, *, project: str, name: str, now: datetime) -> ProjectRef:
    """Rename a project; its short name stays, since jobs are known by it."""
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    rename_project(actor=principal.actor, project_id=place.id, name=name, now=now)
    return access_project(principal, place.id, need=Scope.PROJECT_ADMIN)


def name_tenant(principal: Principal, *, tenant: str, name: str, now: datetime) -> TenantRef:
    """Rename a tenant; its short name stays."""
    place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    rename_tenant(actor=principal.actor, tenant_id=place.id, name=name, now=now)
    return access_tenant(principal, place.id, need=Scope.TENANT_ADMIN)


def _tenants(principal: Principal, shown: set[str], *, all_of_them: bool) -> list[TenantInfo]:
    """Children after their parent, siblings by name."""
    own: set[str] | None = set()
    if Scope.TENANT_ADMIN in principal.narrowed(EVERY_SCOPE):
        own = accessible_tenant_ids(principal, need=Scope.TENANT_ADMIN)
    rows = Tenant.objects.all() if all_of_them else Tenant.objects.filter(pk__in=shown)
    found = {row.id: row for row in rows}
    names = {row.id: (row.name.casefold(), row.id) for row in found.values()}
    ordered = sorted(
        found.values(),
        key=lambda row: [names.get(one, ("", one)) for one in tenant_ids_of_path(row.path)],
    )
    return [
        TenantInfo(
            id=row.id,
            slug=row.slug,
            name=row.name,
            parent_id=row.parent_id,
            path=row.path,
            may_administer=own is None or row.id in own,
        )
        for row in ordered
    ]
