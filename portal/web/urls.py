"""The addresses of the pages."""

from __future__ import annotations

from django.urls import path
from django.views.i18n import set_language

import portal.core.addresses  # noqa: F401  (registers the converters)
from portal.web.views import (
    account,
    administration,
    audit,
    fleet,
    home,
    jobs,
    nodes,
    people,
    session,
    submit,
    teams,
    tokens,
    usage,
)

app_name = "web"
urlpatterns = [
    path("", home.home, name="home"),
    path("sign-in", session.SignIn.as_view(), name="sign-in"),
    path("sign-out", session.SignOut.as_view(), name="sign-out"),
    path("language", set_language, name="language"),
    path("jobs", jobs.job_list, name="jobs"),
    path("submit", submit.submit, name="submit"),
    path("submit/estimate", submit.estimate, name="estimate"),
    path("jobs/<job:ref>", jobs.one_job, name="job"),
    path("jobs/<job:ref>/cancel", jobs.cancel, name="job-cancel"),
    path("jobs/<job:ref>/hold", jobs.hold, name="job-hold"),
    path("jobs/<job:ref>/release", jobs.release, name="job-release"),
    path("arrays/<id:array_id>/cancel", jobs.cancel_members, name="array-cancel"),
    path("gpus", fleet.gpus, name="gpus"),
    path("nodes", nodes.nodes, name="nodes"),
    path("nodes/<id:node_id>/drain", nodes.drain, name="node-drain"),
    path("nodes/<id:node_id>/resume", nodes.resume, name="node-resume"),
    path("nodes/<id:node_id>/lost", nodes.lost, name="node-lost"),
    path("usage", usage.usage, name="usage"),
    path("usage.csv", usage.usage_csv, name="usage-csv"),
    path("tokens", tokens.tokens, name="tokens"),
    path("tokens/<id:token_id>/revoke", tokens.revoke, name="token-revoke"),
    path("audit", audit.audit, name="audit"),
    path("users", people.users, name="users"),
    path("users/-/new", people.new_user, name="user-new"),
    path("users/<id:user_id>", people.one_user, name="user"),
    path("users/<id:user_id>/deactivate", people.deactivate, name="user-deactivate"),
    path("users/<id:user_id>/reactivate", people.reactivate, name="user-reactivate"),
    path("users/<id:user_id>/password-link", people.password_link, name="user-password-link"),
    path("account", account.account, name="account"),
    path("account/password", account.change_password, name="account-password"),
    path("password", account.password_link, name="password-link"),
    path("password/new", account.new_password, name="password-new"),
    path("tenants", teams.tenants, name="tenants"),
    path("tenants/-/new", teams.new_root, name="tenant-new"),
    path("tenants/<id:tenant>", teams.tenant, name="tenant"),
    path("tenants/<id:tenant>/name", teams.tenant_name, name="tenant-name"),
    path("tenants/<id:tenant>/move", teams.tenant_move, name="tenant-move"),
    path("tenants/<id:tenant>/tenants", teams.tenant_child, name="tenant-child"),
    path("tenants/<id:tenant>/projects", teams.tenant_project, name="tenant-project"),
    path("tenants/<id:tenant>/members", teams.tenant_member, name="tenant-member"),
    path(
        "tenants/<id:tenant>/members/remove",
        teams.tenant_member_remove,
        name="tenant-member-remove",
    ),
    path("projects/<id:project>", teams.project, name="project"),
    path("projects/<id:project>/name", teams.project_name, name="project-name"),
    path("projects/<id:project>/members", teams.project_member, name="project-member"),
    path(
        "projects/<id:project>/members/remove",
        teams.project_member_remove,
        name="project-member-remove",
    ),
    path("quotas", administration.quotas, name="quotas"),
    path("quotas/projects/<id:project>", administration.project_quota, name="project-quota"),
    path("quotas/tenants/<id:tenant>", administration.tenant_quota, name="tenant-quota"),
    path("prices", administration.prices, name="prices"),
]
