"""Who may reach what: the only way from an id that a caller names to the thing itself.

A token narrows what its owner's roles give; a session does not. What a caller holds no role in does
not exist for that caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from portal.accounts.models import Membership, Project, Tenant, User
from portal.accounts.roles import EVERY_SCOPE, SCOPES_OF, SCOPES_OF_EVERYBODY, Role, Scope
from portal.core.audit import Actor
from portal.core.errors import Forbidden, NotFound

NO_SCOPES: frozenset[Scope] = frozenset()


@dataclass(frozen=True)
class Principal:
    """A signed-in caller. ``token_scopes`` is None for a session: nothing is narrowed."""

    user_id: str
    name: str
    is_platform_admin: bool
    token_scopes: frozenset[Scope] | None = None

    @property
    def actor(self) -> Actor:
        return Actor(self.name, self.user_id)

    def narrowed(self, scopes: frozenset[Scope]) -> frozenset[Scope]:
        return scopes if self.token_scopes is None else scopes & self.token_scopes


@dataclass(frozen=True)
class ProjectRef:
    """A project that the caller may see, and what the caller may do there."""

    id: str
    slug: str
    name: str
    tenant_id: str
    tenant_path: str
    scopes: frozenset[Scope]

    @property
    def owner_ids(self) -> tuple[str, ...]:
        """Whose quotas count for the project: the tenants from the root, then itself."""
        return (*tenant_ids_of_path(self.tenant_path), self.id)


@dataclass(frozen=True)
class TenantRef:
    """A tenant that the caller may see, and what the caller may do in all of it."""

    id: str
    slug: str
    name: str
    path: str
    scopes: frozenset[Scope]


def principal_of_user(user: User) -> Principal:
    return Principal(user.id, user.name, user.is_platform_admin)


def access_project(principal: Principal, id_or_slug: str, *, need: Scope) -> ProjectRef:
    """Give the project when the caller may do ``need`` there.

    Raises ``accounts.project_not_found`` when the caller has no role in it, and
    ``accounts.scope_missing`` when the role or the token does not give ``need``.
    """
    project = (
        Project.objects.select_related("tenant")
        .filter(Q(id=id_or_slug) | Q(slug=id_or_slug))
        .first()
    )
    if project is None:
        raise _project_not_found(id_or_slug)
    place = Q(project=project) | Q(tenant__in=tenant_ids_of_path(project.tenant.path))
    scopes = _scopes_of_roles(principal, place)
    if not scopes:
        raise _project_not_found(id_or_slug)
    _require(principal, scopes, need, f"in project {project.slug}")
    return ProjectRef(
        id=project.id,
        slug=project.slug,
        name=project.name,
        tenant_id=project.tenant_id,
        tenant_path=project.tenant.path,
        scopes=principal.narrowed(scopes),
    )


def access_tenant(principal: Principal, id_or_slug: str, *, need: Scope) -> TenantRef:
    """Give the tenant when the caller may do ``need`` in all of it.

    Raises ``accounts.tenant_not_found`` or ``accounts.scope_missing``, as `access_project` does.
    """
    tenant = Tenant.objects.filter(Q(id=id_or_slug) | Q(slug=id_or_slug)).first()
    if tenant is None:
        raise _tenant_not_found(id_or_slug)
    scopes = _scopes_of_roles(principal, Q(tenant__in=tenant_ids_of_path(tenant.path)))
    if not scopes:
        raise _tenant_not_found(id_or_slug)
    _require(principal, scopes, need, f"in tenant {tenant.slug}")
    return TenantRef(tenant.id, tenant.slug, tenant.name, tenant.path, principal.narrowed(scopes))


def access_tenant_from_above(principal: Principal, id_or_slug: str, *, need: Scope) -> TenantRef:
    """Give the tenant when the caller may do ``need`` one level above it.

    For limits: nobody changes the one that was set for them. Above a root is the platform.
    """
    tenant = access_tenant(principal, id_or_slug, need=Scope.USAGE_READ)
    *above, _own = tenant_ids_of_path(tenant.path)
    if above:
        access_tenant(principal, above[-1], need=need)
    else:
        access_platform(principal, need=need)
    return tenant


def accessible_project_ids(principal: Principal, *, need: Scope) -> set[str] | None:
    """Give the projects where the caller may do ``need``; None means every project.

    Raises ``accounts.scope_missing`` when the caller's token cannot do ``need`` anywhere.
    """
    _require(principal, EVERY_SCOPE, need, "anywhere")
    if principal.is_platform_admin:
        return None
    reach = Q(pk__in=())
    roles = [role for role in Role if need in SCOPES_OF[role]]
    for project_id, path in Membership.objects.filter(
        user_id=principal.user_id, role__in=roles
    ).values_list("project_id", "tenant__path"):
        reach |= Q(pk=project_id) if project_id else Q(tenant__path__startswith=path)
    return set(Project.objects.filter(reach).values_list("pk", flat=True))


def accessible_tenant_ids(principal: Principal, *, need: Scope) -> set[str] | None:
    """Give the tenants in all of which the caller may do ``need``; None means every tenant.

    Raises ``accounts.scope_missing`` when the caller's token cannot do ``need`` anywhere.
    """
    _require(principal, EVERY_SCOPE, need, "anywhere")
    if principal.is_platform_admin:
        return None
    reach = Q(pk__in=())
    roles = [role for role in Role if need in SCOPES_OF[role]]
    for path in Membership.objects.filter(
        user_id=principal.user_id, tenant__isnull=False, role__in=roles
    ).values_list("tenant__path", flat=True):
        reach |= Q(path__startswith=path)
    return set(Tenant.objects.filter(reach).values_list("pk", flat=True))


def access_anywhere(principal: Principal, *, need: Scope) -> None:
    """Refuse with ``accounts.scope_missing`` a caller who may do ``need`` in no place at all."""
    _require(principal, _scopes_of_roles(principal, Q()) | SCOPES_OF_EVERYBODY, need, "anywhere")


def access_platform(principal: Principal, *, need: Scope) -> None:
    """Refuse with ``accounts.scope_missing`` what concerns the whole platform."""
    scopes = EVERY_SCOPE if principal.is_platform_admin else SCOPES_OF_EVERYBODY
    _require(principal, scopes, need, "on the platform")


def access_whole_platform(principal: Principal) -> None:
    """For what could make the caller more than they are: users and their ways to sign in.

    Only an administrator of the platform, in a session or with a token that carries every scope.
    """
    for scope in Scope:
        access_platform(principal, need=scope)


def every_scope_of(principal: Principal) -> frozenset[Scope]:
    """Give all that the caller may do somewhere: the most that a token of theirs may carry."""
    return principal.narrowed(_scopes_of_roles(principal, Q()) | SCOPES_OF_EVERYBODY)


def tenant_ids_of_path(path: str) -> tuple[str, ...]:
    """Split a tenant's path into ids, root first."""
    return tuple(part for part in path.split("/") if part)


def _scopes_of_roles(principal: Principal, place: Q) -> frozenset[Scope]:
    if principal.is_platform_admin:
        return EVERY_SCOPE
    roles: Iterable[str] = Membership.objects.filter(place, user_id=principal.user_id).values_list(
        "role", flat=True
    )
    return NO_SCOPES.union(*(SCOPES_OF[Role(role)] for role in roles))


def _require(principal: Principal, scopes: frozenset[Scope], need: Scope, where: str) -> None:
    if need not in scopes:
        raise Forbidden(
            "accounts.scope_missing",
            f"Your role does not give {need} {where}.",
            hint="Ask an administrator of it for a role that does.",
        )
    if need not in principal.narrowed(scopes):
        raise Forbidden(
            "accounts.scope_missing",
            f"Your token does not carry the scope {need}.",
            hint=f"Use a token that was issued with {need}.",
        )


def _project_not_found(id_or_slug: str) -> NotFound:
    return NotFound(
        "accounts.project_not_found",
        f"There is no project {id_or_slug!r} that you are a member of.",
        hint="List your projects, or ask an administrator of the project to add you.",
        field="project",
    )


def _tenant_not_found(id_or_slug: str) -> NotFound:
    return NotFound(
        "accounts.tenant_not_found",
        f"There is no tenant {id_or_slug!r} that you have a role in.",
        hint="Ask an administrator of the tenant for a role.",
        field="tenant",
    )
