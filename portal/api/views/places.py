"""The tree of tenants and projects, and who has which role where."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts import members, places
from portal.accounts.access import Principal, access_project, access_tenant
from portal.accounts.roles import Role, Scope
from portal.api.base import View, answer_once
from portal.api.schema import IDEMPOTENCY_KEY, problems
from portal.api.serializers.accounts import ProjectOut
from portal.api.serializers.places import (
    MemberListOut,
    MemberOut,
    NameIn,
    ProjectRoleIn,
    TenantChangeIn,
    TenantIn,
    TenantListOut,
    TenantOut,
    TenantRoleIn,
)
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.core.idempotency import Answer
from portal.core.locks import guarded
from quotas.services.moves import move_tenant

_READ = problems(401, 403, 404)
_WRITE = problems(400, 401, 403, 404, 409, 422, 503)


class Tenants(View):
    @extend_schema(
        operation_id="tenants_list", responses={200: TenantListOut, **problems(401, 403)}
    )
    def get(self, request: Request) -> Response:
        """List the tenants that the caller has a role in, children after their parent."""
        return Response(TenantListOut({"items": places.tenants_of(self.principal)}).data)

    @extend_schema(
        operation_id="tenants_create",
        parameters=[IDEMPOTENCY_KEY],
        request=TenantIn,
        responses={201: TenantOut, **_WRITE},
    )
    def post(self, request: Request) -> Response:
        """Make a tenant below one that the caller administers; roots are the platform's."""
        body = self.body(TenantIn)
        principal = self.principal

        def effect() -> Answer:
            made = places.make_tenant(
                principal,
                parent=body.get("parent"),
                name=body["name"],
                slug=body["slug"],
                now=utc_now(),
            )
            return Answer(201, _tenant_json(principal, made.id))

        return answer_once(request, principal, effect)


class OneTenant(View):
    @extend_schema(operation_id="tenants_read", responses={200: TenantOut, **_READ})
    def get(self, request: Request, tenant: str) -> Response:
        """Read a tenant that the caller has a role in."""
        return Response(_tenant_json(self.principal, tenant))

    @extend_schema(
        operation_id="tenants_change",
        request=TenantChangeIn,
        responses={200: TenantOut, **_WRITE},
    )
    def patch(self, request: Request, tenant: str) -> Response:
        """Rename a tenant, move it with all below it, or both at once.

        It moves only while no job in it holds quota (`accounts.tenant_in_use`).
        """
        body = self.body(TenantChangeIn)
        principal, now = self.principal, utc_now()
        place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
        if not body:
            raise Rejected(
                "api.nothing_to_change", "The body names nothing to change.", hint="Send a name."
            )
        with guarded():
            if "name" in body:
                places.name_tenant(principal, tenant=place.id, name=body["name"], now=now)
            if "parent" in body:
                move_tenant(principal, tenant=place.id, parent=body["parent"], now=now)
        return Response(_tenant_json(principal, place.id))


class OneProject(View):
    @extend_schema(operation_id="projects_read", responses={200: ProjectOut, **_READ})
    def get(self, request: Request, project: str) -> Response:
        """Read a project that the caller may look into."""
        place = access_project(self.principal, project, need=Scope.JOBS_READ)
        return Response(ProjectOut(place).data)

    @extend_schema(
        operation_id="projects_rename", request=NameIn, responses={200: ProjectOut, **_WRITE}
    )
    def patch(self, request: Request, project: str) -> Response:
        """Rename a project; its short name stays."""
        place = access_project(self.principal, project, need=Scope.PROJECT_ADMIN)
        named = places.name_project(
            self.principal, project=place.id, name=self.body(NameIn)["name"], now=utc_now()
        )
        return Response(ProjectOut(named).data)


class ProjectMembers(View):
    @extend_schema(operation_id="project_members_list", responses={200: MemberListOut, **_READ})
    def get(self, request: Request, project: str) -> Response:
        """List who has a role in a project, also those who have it from a tenant above."""
        place = access_project(self.principal, project, need=Scope.JOBS_READ)
        return Response(MemberListOut({"items": members.members_of_project(place)}).data)


class ProjectMember(View):
    @extend_schema(
        operation_id="project_members_put",
        request=ProjectRoleIn,
        responses={200: MemberOut, **_WRITE},
    )
    def put(self, request: Request, project: str, user: str) -> Response:
        """Give a user, by id or exact name, a role in a project instead of an older one."""
        access_project(self.principal, project, need=Scope.PROJECT_ADMIN)
        role = Role(self.body(ProjectRoleIn)["role"])
        member = members.put_project_member(
            self.principal, project=project, user=user, role=role, now=utc_now()
        )
        return Response(MemberOut(member).data)

    @extend_schema(operation_id="project_members_remove", responses={204: None, **_WRITE})
    def delete(self, request: Request, project: str, user: str) -> Response:
        """Take a user's role in a project away; roles from tenants above stay."""
        members.remove_project_member(self.principal, project=project, user=user, now=utc_now())
        return Response(status=204)


class TenantMembers(View):
    @extend_schema(operation_id="tenant_members_list", responses={200: MemberListOut, **_READ})
    def get(self, request: Request, tenant: str) -> Response:
        """List who has a role in all of a tenant; for its administrators."""
        place = access_tenant(self.principal, tenant, need=Scope.TENANT_ADMIN)
        return Response(MemberListOut({"items": members.members_of_tenant(place)}).data)


class TenantMember(View):
    @extend_schema(
        operation_id="tenant_members_put",
        request=TenantRoleIn,
        responses={200: MemberOut, **_WRITE},
    )
    def put(self, request: Request, tenant: str, user: str) -> Response:
        """Give a user, by id or exact name, a role in a tenant and in all below it."""
        access_tenant(self.principal, tenant, need=Scope.TENANT_ADMIN)
        role = Role(self.body(TenantRoleIn)["role"])
        member = members.put_tenant_member(
            self.principal, tenant=tenant, user=user, role=role, now=utc_now()
        )
        return Response(MemberOut(member).data)

    @extend_schema(operation_id="tenant_members_remove", responses={204: None, **_WRITE})
    def delete(self, request: Request, tenant: str, user: str) -> Response:
        """Take a user's role in a tenant away."""
        members.remove_tenant_member(self.principal, tenant=tenant, user=user, now=utc_now())
        return Response(status=204)


def _tenant_json(principal: Principal, tenant: str) -> dict[str, object]:
    place = access_tenant(principal, tenant, need=Scope.USAGE_READ)
    return dict(TenantOut(places.tenant_info(principal, place)).data)
