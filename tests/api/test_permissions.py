"""Who may call what: a row for every address, checked for every kind of caller."""

import json
from dataclasses import dataclass, field

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

CALLERS = (
    "anonymous",
    "outsider",
    "viewer",
    "member",
    "project_admin",
    "tenant_admin",
    "platform_admin",
    "narrow_token",
)
FORM = "application/x-www-form-urlencoded"
JOB = {"project": "vision", "command": ["true"], "memory_mib": 8192, "compute_milli": 250}
OPEN = (200,) * 8
SIGNED_IN = (401, *(200,) * 7)
SIGNED_IN_PAGE = (302, *(200,) * 7)
READERS = (401, 404, 200, 200, 200, 200, 200, 403)
USE_READERS = (401, 404, 200, 200, 200, 200, 200, 200)
PROJECT_ADMINS = (401, 404, 403, 403, 200, 200, 200, 403)
TENANT_ADMINS = (401, 404, 404, 404, 404, 200, 200, 403)
READER_PAGE = (302, 404, 200, 200, 200, 200, 200, 200)


@dataclass(frozen=True)
class Row:
    """Expected statuses in the order of `CALLERS`."""

    method: str
    name: str
    expected: tuple[int, ...]
    path: dict[str, str] = field(default_factory=dict)
    body: dict[str, object] | None = None

    def __str__(self):
        return f"{self.method} {self.name}"


def platform(done):
    return (401, 403, 403, 403, 403, 403, done, 403)


def writers(done, *, page=False):
    return (302 if page else 401, 404, 403, done, done, done, done, done if page else 403)


PLATFORM_PAGE = (302, 403, 403, 403, 403, 403, 200, 200)
NODE_PATH = {"node_id": "none"}
NOBODY = {"user_id": "none"}
RESEARCH = {"tenant": "research"}
VISION = {"project": "vision"}
JOB_PATH = {"ref": "vision/1"}
PROJECT_PATH = {"project": "vision"}
ADMINS_404 = (401, 404, 403, 403, 404, 404, 404, 403)
ARRAY_PATH = {"array_id": "ARRAY"}
ROWS = [
    Row("GET", "api:schema", OPEN),
    Row("GET", "api:self", SIGNED_IN),
    Row("GET", "api:projects", (401, 403, 200, 200, 200, 200, 200, 403)),
    Row(
        "POST",
        "api:projects",
        (401, 404, 404, 404, 404, 201, 409, 403),
        body={"name": "N", "slug": "new", "tenant": "research"},
    ),
    Row("GET", "api:project", READERS, {"project": "vision"}),
    Row("PATCH", "api:project", PROJECT_ADMINS, {"project": "vision"}, {"name": "N"}),
    Row("GET", "api:project-members", READERS, {"project": "vision"}),
    Row(
        "PUT",
        "api:project-member",
        PROJECT_ADMINS,
        {"project": "vision", "user": "viewer"},
        {"role": "member"},
    ),
    Row(
        "DELETE",
        "api:project-member",
        (401, 404, 403, 403, 204, 404, 404, 403),
        {"project": "vision", "user": "viewer"},
    ),
    Row("GET", "api:tenants", (401, 403, 200, 200, 200, 200, 200, 200)),
    Row(
        "POST",
        "api:tenants",
        (401, 404, 404, 404, 404, 201, 409, 403),
        body={"name": "N", "slug": "new", "parent": "research"},
    ),
    Row("GET", "api:tenant", (401, 404, 404, 404, 404, 200, 200, 200), {"tenant": "research"}),
    Row("PATCH", "api:tenant", TENANT_ADMINS, {"tenant": "research"}, {"name": "N"}),
    Row("GET", "api:tenant-members", TENANT_ADMINS, {"tenant": "research"}),
    Row(
        "PUT",
        "api:tenant-member",
        TENANT_ADMINS,
        {"tenant": "research", "user": "outsider"},
        {"role": "viewer"},
    ),
    Row(
        "DELETE",
        "api:tenant-member",
        (401, 404, 404, 404, 404, 204, 404, 403),
        {"tenant": "research", "user": "tenant_admin"},
    ),
    Row("GET", "api:users", platform(200)),
    Row("POST", "api:users", platform(422), body={}),
    Row("GET", "api:user", platform(404), NOBODY),
    Row("POST", "api:user-deactivate", platform(404), NOBODY),
    Row("POST", "api:user-reactivate", platform(404), NOBODY),
    Row("DELETE", "api:user-second-factor", platform(404), NOBODY),
    Row("POST", "api:user-password-link", platform(404), NOBODY),
    Row("GET", "api:invitations", (401, *(422,) * 7)),
    Row(
        "POST",
        "api:invitations",
        (401, 404, 403, 403, 201, 201, 201, 403),
        body={"project": "vision", "role": "viewer"},
    ),
    Row("DELETE", "api:invitation", (401, *(404,) * 7), {"invitation_id": "none"}),
    Row("POST", "api:invitation-accept", (401, *(404,) * 7), body={"key": "none"}),
    Row("GET", "api:tokens", SIGNED_IN),
    Row("POST", "api:tokens", (401, *(422,) * 7), body={}),
    Row("DELETE", "api:token", (401, *(404,) * 7), {"token_id": "none"}),
    Row("GET", "api:jobs", (401, 403, 200, 200, 200, 200, 200, 403)),
    Row("POST", "api:jobs", writers(201), body=JOB),
    Row("GET", "api:job", READERS, JOB_PATH),
    Row("POST", "api:job-cancel", writers(202), JOB_PATH),
    Row("POST", "api:job-hold", writers(200), JOB_PATH),
    Row("POST", "api:job-release", writers(200), JOB_PATH),
    Row("POST", "api:job-rerun", writers(201), JOB_PATH),
    Row("GET", "api:templates", READERS, PROJECT_PATH),
    Row(
        "POST",
        "api:templates",
        (401, 404, 403, 201, 409, 409, 409, 403),
        PROJECT_PATH,
        {"name": "t", "request": {}},
    ),
    Row("DELETE", "api:template", ADMINS_404, {**PROJECT_PATH, "name": "none"}),
    Row("GET", "api:secrets", (401, 404, 403, 403, 200, 200, 200, 403), PROJECT_PATH),
    Row(
        "PUT",
        "api:secret",
        (401, 404, 403, 403, 204, 204, 204, 403),
        {**PROJECT_PATH, "name": "S"},
        {"value": "v"},
    ),
    Row("DELETE", "api:secret", ADMINS_404, {**PROJECT_PATH, "name": "none"}),
    Row("GET", "api:job-log-search", (401, *(422,) * 7), JOB_PATH),
    Row("GET", "api:job-log", READERS, JOB_PATH),
    Row("GET", "api:array", READERS, ARRAY_PATH),
    Row("POST", "api:array-cancel", writers(202), ARRAY_PATH),
    Row("GET", "api:usage", (401, 403, 200, 200, 200, 200, 200, 200)),
    Row("GET", "api:nodes", (401, 200, 200, 200, 200, 200, 200, 403)),
    Row("GET", "api:gpus", (401, 200, 200, 200, 200, 200, 200, 403)),
    Row(
        "POST",
        "api:node-codes",
        (401, 403, 403, 403, 403, 403, 201, 403),
        body={"node_name": "n"},
    ),
    Row(
        "PUT",
        "api:node-drain",
        (401, 403, 403, 403, 403, 403, 404, 403),
        {"node_id": "none"},
        {"drained": True},
    ),
    Row(
        "POST",
        "api:node-lost",
        (401, 403, 403, 403, 403, 403, 404, 403),
        {"node_id": "none"},
        {"name": "n", "reason": "r"},
    ),
    Row("POST", "api:node-enrol", (422,) * 8, body={}),
    Row("GET", "api:project-quota", USE_READERS, {"project": "vision"}),
    Row(
        "PUT",
        "api:project-quota",
        (401, 404, 403, 403, 403, 200, 200, 403),
        {"project": "vision"},
        {"limit_milli": 1000},
    ),
    Row(
        "GET", "api:tenant-quota", (401, 404, 404, 404, 404, 200, 200, 200), {"tenant": "research"}
    ),
    Row(
        "PUT",
        "api:tenant-quota",
        (401, 404, 404, 404, 404, 404, 200, 403),
        {"tenant": "research"},
        {"limit_milli": 1000},
    ),
    Row("GET", "api:audit", (401, 403, 403, 403, 200, 200, 200, 403)),
    Row("GET", "api:prices", (401, 200, 200, 200, 200, 200, 200, 403)),
    Row("POST", "api:prices", (401, 403, 403, 403, 403, 403, 422, 403), body={"rates": {}}),
    Row("GET", "ops:livez", OPEN),
    Row("GET", "ops:readyz", OPEN),
    Row("GET", "ops:metrics", (401, 401, 401, 401, 401, 401, 200, 401)),
    Row("GET", "web:sign-in", (200, *(302,) * 7)),
    Row("POST", "web:sign-out", (302,) * 8),
    Row("POST", "web:language", (302,) * 8),
    Row("GET", "web:home", SIGNED_IN_PAGE),
    Row("GET", "web:jobs", SIGNED_IN_PAGE),
    Row("GET", "web:submit", SIGNED_IN_PAGE),
    Row("GET", "web:estimate", SIGNED_IN_PAGE),
    Row("GET", "web:job", READER_PAGE, JOB_PATH),
    Row("POST", "web:job-hold", writers(302, page=True), JOB_PATH),
    Row("POST", "web:job-release", writers(302, page=True), JOB_PATH),
    Row("POST", "web:template-save", (302, 404, 403, *(422,) * 5), JOB_PATH),
    Row("GET", "web:presets", READER_PAGE, PROJECT_PATH),
    Row("POST", "web:secret-set", (302, 404, 403, 403, *(422,) * 4), PROJECT_PATH),
    Row(
        "POST",
        "web:secret-delete",
        (302, 404, 403, 403, *(404,) * 4),
        {**PROJECT_PATH, "name": "none"},
    ),
    Row(
        "POST",
        "web:template-delete",
        (302, 404, 403, 403, *(404,) * 4),
        {**PROJECT_PATH, "name": "none"},
    ),
    Row("POST", "web:job-cancel", writers(302, page=True), JOB_PATH),
    Row("POST", "web:array-cancel", writers(302, page=True), ARRAY_PATH),
    Row("GET", "web:gpus", SIGNED_IN_PAGE),
    Row("GET", "web:nodes", PLATFORM_PAGE),
    Row("POST", "web:nodes", (302, 403, 403, 403, 403, 403, 422, 422)),
    Row("GET", "web:node-drain", (302, 403, 403, 403, 403, 403, 404, 404), NODE_PATH),
    Row("POST", "web:node-resume", (302, 403, 403, 403, 403, 403, 404, 404), NODE_PATH),
    Row("GET", "web:node-lost", (302, 403, 403, 403, 403, 403, 404, 404), NODE_PATH),
    Row("GET", "web:usage", SIGNED_IN_PAGE),
    Row("GET", "web:usage-csv", SIGNED_IN_PAGE),
    Row("GET", "web:tokens", SIGNED_IN_PAGE),
    Row("POST", "web:tokens", (302, *(422,) * 7)),
    Row("POST", "web:token-revoke", (302, *(404,) * 7), {"token_id": "none"}),
    Row("GET", "web:users", PLATFORM_PAGE),
    Row("GET", "web:user-new", PLATFORM_PAGE),
    Row("POST", "web:user-new", (302, 403, 403, 403, 403, 403, 422, 422)),
    *[
        Row(method, f"web:{name}", (302, 403, 403, 403, 403, 403, 404, 404), NOBODY)
        for method, name in (
            ("GET", "user"),
            ("POST", "user-deactivate"),
            ("POST", "user-reactivate"),
            ("POST", "user-password-link"),
            ("POST", "second-factor-reset"),
        )
    ],
    Row("GET", "web:sign-in-code", (302,) * 8),
    Row("GET", "web:second-factor", SIGNED_IN_PAGE),
    Row("POST", "web:second-factor", (302, *(422,) * 7)),
    Row("POST", "web:second-factor-confirm", (302, *(422,) * 7)),
    Row("POST", "web:second-factor-disable", (302, *(422,) * 7)),
    Row("GET", "web:account", SIGNED_IN_PAGE),
    Row("POST", "web:account-password", (302, *(422,) * 7)),
    Row("GET", "web:password-link", (302,) * 8),
    Row("GET", "web:password-new", (404,) * 8),
    Row("POST", "web:password-new", (404,) * 8),
    Row("GET", "web:project-invitations", (302, 404, 403, 403, 200, 200, 200, 200), VISION),
    Row("POST", "web:project-invitations", (302, 404, 403, 403, 422, 422, 422, 422), VISION),
    Row("GET", "web:tenant-invitations", (302, 404, 404, 404, 404, 200, 200, 200), RESEARCH),
    Row("POST", "web:tenant-invitations", (302, 404, 404, 404, 404, 422, 422, 422), RESEARCH),
    Row("POST", "web:invitation-revoke", (302, *(404,) * 7), {"invitation_id": "none"}),
    Row("GET", "web:invitation", (302,) * 8),
    Row("GET", "web:join", (404,) * 8),
    Row("POST", "web:join", (404,) * 8),
    Row("GET", "web:tenants", SIGNED_IN_PAGE),
    Row("GET", "web:tenant-new", (302, 403, 403, 403, 403, 403, 200, 200)),
    Row("POST", "web:tenant-new", (302, 403, 403, 403, 403, 403, 422, 422)),
    Row("GET", "web:tenant", (302, 404, 404, 404, 404, 200, 200, 200), RESEARCH),
    *[
        Row("POST", f"web:{name}", (302, 404, 404, 404, 404, 422, 422, 422), RESEARCH)
        for name in (
            "tenant-name",
            "tenant-move",
            "tenant-child",
            "tenant-project",
            "tenant-member",
        )
    ],
    Row("POST", "web:tenant-member-remove", (302, *(404,) * 7), RESEARCH),
    Row("GET", "web:project", READER_PAGE, VISION),
    Row("POST", "web:project-name", (302, 404, 403, 403, 422, 422, 422, 422), VISION),
    Row("POST", "web:project-member", (302, 404, 403, 403, 422, 422, 422, 422), VISION),
    Row("POST", "web:project-member-remove", (302, 404, 403, 403, 404, 404, 404, 404), VISION),
    Row("GET", "web:quotas", SIGNED_IN_PAGE),
    Row(
        "GET",
        "web:project-quota",
        (302, 404, 403, 403, 403, 200, 200, 200),
        {"project": "vision"},
    ),
    Row(
        "GET",
        "web:tenant-quota",
        (302, 404, 404, 404, 404, 404, 200, 200),
        {"tenant": "research"},
    ),
    Row("GET", "web:audit", (302, 403, 403, 403, 200, 200, 200, 200)),
    Row("GET", "web:prices", SIGNED_IN_PAGE),
    Row("POST", "web:prices", (302, 403, 403, 403, 403, 403, 422, 422)),
]


def callers(here, *, pages):
    """The narrow token belongs to the platform's administrator; pages know no tokens."""
    make = here.browser if pages else here.program
    signed_in = {who: make(who) for who in CALLERS[1:7]}
    narrow = make("platform_admin", *(() if pages else ("usage:read",)))
    everybody = {"anonymous": Client(), **signed_in, "narrow_token": narrow}
    for client in everybody.values():
        client.raise_request_exception = False
    return everybody


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_caller_gets_what_the_row_says(here, row):
    here.job()
    array = here.job(array_size=2)
    path = {name: array if part == "ARRAY" else part for name, part in row.path.items()}
    # From another machine: the metrics are open to this one.
    address = reverse(row.name, kwargs=path)

    answered = {
        who: client.generic(
            row.method,
            address,
            data=b"" if row.body is None else json.dumps(row.body).encode(),
            content_type="application/json" if row.name.startswith("api:") else FORM,
            REMOTE_ADDR="192.0.2.1",
        ).status_code
        for who, client in callers(here, pages=row.name.startswith("web:")).items()
    }

    assert answered == dict(zip(CALLERS, row.expected, strict=True))


def test_every_address_has_a_row():
    rows = {(row.name, row.method) for row in ROWS}
    missing = [
        f"{method} {name}"
        for name, methods in _addresses(get_resolver())
        for method in methods
        if (name, method) not in rows
    ]

    assert missing == []


def _addresses(resolver, namespace=""):
    """Names with the methods that their views have; views by function count as one GET or POST."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _addresses(pattern, inner)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield f"{namespace}{pattern.name}", _methods(pattern, f"{namespace}{pattern.name}")


def _methods(pattern, name):
    view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
    if name.startswith("api:"):
        return [
            method.upper()
            for method in ("get", "post", "put", "patch", "delete")
            if hasattr(view, method)
        ]
    return sorted({row.method for row in ROWS if row.name == name}) or ["GET"]
