"""Roles and the scopes that they give, as data."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    USAGE_READ = "usage:read"
    PROJECT_ADMIN = "project:admin"
    TENANT_ADMIN = "tenant:admin"
    FLEET_READ = "fleet:read"
    FLEET_ADMIN = "fleet:admin"


class Role(StrEnum):
    VIEWER = "viewer"
    MEMBER = "member"
    PROJECT_ADMIN = "project_admin"
    TENANT_ADMIN = "tenant_admin"


_VIEWER = frozenset({Scope.JOBS_READ, Scope.USAGE_READ})
_MEMBER = _VIEWER | {Scope.JOBS_WRITE}
_PROJECT_ADMIN = _MEMBER | {Scope.PROJECT_ADMIN}

SCOPES_OF: dict[Role, frozenset[Scope]] = {
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
    Role.PROJECT_ADMIN: _PROJECT_ADMIN,
    Role.TENANT_ADMIN: _PROJECT_ADMIN | {Scope.TENANT_ADMIN},
}
EVERY_SCOPE = frozenset(Scope)
SCOPES_OF_EVERYBODY = frozenset({Scope.FLEET_READ})
