"""The addresses of ``/api/v1``."""

from __future__ import annotations

from django.urls import path

import portal.core.addresses  # noqa: F401  (registers the converters)
from portal.api.views import (
    accounts,
    arrays,
    audit,
    fleet,
    invitations,
    jobs,
    logs,
    places,
    presets,
    prices,
    quotas,
    usage,
    users,
)
from portal.api.views.description import description

app_name = "api"
urlpatterns = [
    path("schema", description, name="schema"),
    path("self", accounts.Self.as_view(), name="self"),
    path("projects", accounts.Projects.as_view(), name="projects"),
    path("projects/<id:project>", places.OneProject.as_view(), name="project"),
    path("projects/<id:project>/templates", presets.Templates.as_view(), name="templates"),
    path(
        "projects/<id:project>/templates/<id:name>", presets.OneTemplate.as_view(), name="template"
    ),
    path("projects/<id:project>/secrets", presets.Secrets.as_view(), name="secrets"),
    path("projects/<id:project>/secrets/<id:name>", presets.OneSecret.as_view(), name="secret"),
    path("projects/<id:project>/members", places.ProjectMembers.as_view(), name="project-members"),
    path(
        "projects/<id:project>/members/<name:user>",
        places.ProjectMember.as_view(),
        name="project-member",
    ),
    path("tenants", places.Tenants.as_view(), name="tenants"),
    path("tenants/<id:tenant>", places.OneTenant.as_view(), name="tenant"),
    path("tenants/<id:tenant>/members", places.TenantMembers.as_view(), name="tenant-members"),
    path(
        "tenants/<id:tenant>/members/<name:user>",
        places.TenantMember.as_view(),
        name="tenant-member",
    ),
    path("tokens", accounts.Tokens.as_view(), name="tokens"),
    path("tokens/<id:token_id>", accounts.OneToken.as_view(), name="token"),
    path("audit", audit.Audit.as_view(), name="audit"),
    path("jobs", jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<job:ref>", jobs.OneJob.as_view(), name="job"),
    path("jobs/<job:ref>/cancel", jobs.CancelJob.as_view(), name="job-cancel"),
    path("jobs/<job:ref>/hold", jobs.HoldJob.as_view(), name="job-hold"),
    path("jobs/<job:ref>/release", jobs.ReleaseJob.as_view(), name="job-release"),
    path("jobs/<job:ref>/rerun", jobs.RerunJob.as_view(), name="job-rerun"),
    path("jobs/<job:ref>/log/search", logs.JobLogSearch.as_view(), name="job-log-search"),
    path("jobs/<job:ref>/log", logs.JobLog.as_view(), name="job-log"),
    path("arrays/<id:array_id>", arrays.OneArray.as_view(), name="array"),
    path("arrays/<id:array_id>/cancel", arrays.CancelArray.as_view(), name="array-cancel"),
    path("usage", usage.Usage.as_view(), name="usage"),
    path("nodes", fleet.Nodes.as_view(), name="nodes"),
    path("nodes/codes", fleet.EnrolmentCodes.as_view(), name="node-codes"),
    path("nodes/<id:node_id>/drain", fleet.DrainNode.as_view(), name="node-drain"),
    path("nodes/<id:node_id>/lost", fleet.LostNode.as_view(), name="node-lost"),
    path("nodes/enrol", fleet.Enrol.as_view(), name="node-enrol"),
    path("gpus", fleet.Gpus.as_view(), name="gpus"),
    path("quotas/projects/<id:project>", quotas.ProjectQuota.as_view(), name="project-quota"),
    path("quotas/tenants/<id:tenant>", quotas.TenantQuota.as_view(), name="tenant-quota"),
    path("invitations", invitations.Invitations.as_view(), name="invitations"),
    path("invitations/accept", invitations.AcceptInvitation.as_view(), name="invitation-accept"),
    path("invitations/<id:invitation_id>", invitations.OneInvitation.as_view(), name="invitation"),
    path("users", users.Users.as_view(), name="users"),
    path("users/<id:user_id>", users.OneUser.as_view(), name="user"),
    path("users/<id:user_id>/deactivate", users.DeactivateUser.as_view(), name="user-deactivate"),
    path("users/<id:user_id>/reactivate", users.ReactivateUser.as_view(), name="user-reactivate"),
    path(
        "users/<id:user_id>/password-link",
        users.UserPasswordLink.as_view(),
        name="user-password-link",
    ),
    path(
        "users/<id:user_id>/second-factor",
        users.UserSecondFactor.as_view(),
        name="user-second-factor",
    ),
    path("prices", prices.Prices.as_view(), name="prices"),
]
