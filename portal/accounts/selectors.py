"""What other rooms may know of accounts. Whoever names an object for a caller uses `access`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from portal.accounts.access import Principal, accessible_project_ids, tenant_ids_of_path
from portal.accounts.models import ApiToken, Project, Tenant, User
from portal.accounts.roles import Scope


@dataclass(frozen=True)
class ProjectInfo:
    """A project and the tenants above it, root first."""

    id: str
    slug: str
    name: str
    tenant_id: str
    tenant_ids: tuple[str, ...]

    @property
    def owner_ids(self) -> tuple[str, ...]:
        """Whose quotas count for the project: the tenants from the root, then itself."""
        return (*self.tenant_ids, self.id)


@dataclass(frozen=True)
class TokenInfo:
    """A token as its owner may see it again: without its secret."""

    id: str
    name: str
    prefix: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


def project_line(project_id: str) -> ProjectInfo:
    return project_lines([project_id])[project_id]


def project_lines(project_ids: Iterable[str]) -> dict[str, ProjectInfo]:
    """Give the projects by id, in one query."""
    return _infos(Project.objects.filter(pk__in=set(project_ids)))


def project_ids_below(owner_id: str) -> set[str]:
    """Give the projects whose quota the tenant or project decides: below it, or itself."""
    below = Q(pk=owner_id) | Q(tenant__path__contains=f"/{owner_id}/")
    return set(Project.objects.filter(below).values_list("pk", flat=True))


def projects_of(principal: Principal) -> list[ProjectInfo]:
    """Give the projects that the caller may look into, by short name."""
    ids = accessible_project_ids(principal, need=Scope.JOBS_READ)
    projects = Project.objects.all() if ids is None else Project.objects.filter(pk__in=ids)
    return list(_infos(projects.order_by("slug")).values())


def user_names(user_ids: Iterable[str]) -> dict[str, str]:
    return dict(User.objects.filter(pk__in=set(user_ids)).values_list("pk", "name"))


def user_ids(names: Iterable[str]) -> dict[str, str]:
    """Give the ids of users by name; unknown names are left out."""
    return dict(User.objects.filter(name__in=set(names)).values_list("name", "pk"))


def ids_of_slugs(slugs: Iterable[str]) -> dict[str, str]:
    """Give the ids of tenants and projects by short name; unknown ones are left out.

    For setting up only: whoever names an object for a caller uses `portal.accounts.access`.
    """
    wanted = set(slugs)
    return dict(Tenant.objects.filter(slug__in=wanted).values_list("slug", "pk")) | dict(
        Project.objects.filter(slug__in=wanted).values_list("slug", "pk")
    )


def tokens_of(user_id: str) -> list[TokenInfo]:
    """Give the user's tokens that were not revoked, newest first."""
    tokens = ApiToken.objects.filter(user_id=user_id, revoked_at__isnull=True).order_by("-id")
    return [
        TokenInfo(
            id=token.id,
            name=token.name,
            prefix=token.prefix,
            scopes=frozenset(Scope(scope) for scope in token.scopes),
            created_at=token.created_at,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
        )
        for token in tokens
    ]


def place_of_owner(owner_id: str) -> tuple[str, str]:
    """Give the tenant and the project that an owner of a quota is; a tenant has no project."""
    tenant_id = Project.objects.filter(pk=owner_id).values_list("tenant_id", flat=True).first()
    return (owner_id, "") if tenant_id is None else (tenant_id, owner_id)


def tenant_ids_of_projects(project_ids: Iterable[str]) -> dict[str, str]:
    """Give the tenant that each project belongs to."""
    return dict(Project.objects.filter(pk__in=set(project_ids)).values_list("pk", "tenant_id"))


def owner_names(owner_ids: Iterable[str]) -> dict[str, str]:
    """Name tenants and projects for people: ``tenant acme``, ``project vision``."""
    ids = set(owner_ids)
    tenants = Tenant.objects.filter(pk__in=ids).values_list("pk", "slug")
    projects = Project.objects.filter(pk__in=ids).values_list("pk", "slug")
    return {pk: f"tenant {slug}" for pk, slug in tenants} | {
        pk: f"project {slug}" for pk, slug in projects
    }


def _infos(projects: QuerySet[Project]) -> dict[str, ProjectInfo]:
    return {
        project.id: ProjectInfo(
            id=project.id,
            slug=project.slug,
            name=project.name,
            tenant_id=project.tenant_id,
            tenant_ids=tenant_ids_of_path(project.tenant.path),
        )
        for project in projects.select_related("tenant")
    }
