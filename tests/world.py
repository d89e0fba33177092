"""One project with a person in every role, as the tests of the doors need it."""

from dataclasses import dataclass
from datetime import timedelta

from django.test import Client

from billing.services.prices import publish_price
from jobs.services.submit import JobRequest, submit_job
from portal.accounts.access import Principal
from portal.accounts.roles import Role, Scope
from portal.accounts.tokens import issue_token
from portal.config import config
from portal.core.audit import SYSTEM
from portal.core.clock import utc_now
from tests import builders

ROLES = ("outsider", "viewer", "member", "project_admin", "tenant_admin", "platform_admin")
FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@dataclass(frozen=True)
class World:
    place: builders.Place
    people: dict[str, Principal]
    node: str

    def token(self, who, *scopes):
        """A token of a person; with every scope that they have unless some are named."""
        now = utc_now()
        every: dict[str, list[str]] = {
            "outsider": ["fleet:read"],
            "viewer": ["jobs:read", "usage:read", "fleet:read"],
            "member": ["jobs:read", "jobs:write", "usage:read", "fleet:read"],
            "project_admin": [
                "jobs:read",
                "jobs:write",
                "usage:read",
                "project:admin",
                "fleet:read",
            ],
            "tenant_admin": [scope for scope in Scope if scope != "fleet:admin"],
            "platform_admin": list(Scope),
        }
        _, text = issue_token(
            actor=SYSTEM,
            user_id=self.people[who].user_id,
            name="test",
            scopes=[Scope(scope) for scope in scopes or every[who]],
            expires_at=now + timedelta(days=1),
            now=now,
        )
        return text

    def program(self, who, *scopes):
        """A client that sends a token."""
        token = self.token(who, *scopes)
        return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=True)

    def browser(self, who):
        """A client that has signed in."""
        client = Client()
        assert client.login(username=self.people[who].name, password=builders.PASSWORD)
        return client

    def job(self, who="member", **wishes):
        """A waiting job; its id."""
        wanted = {"command": ("true",), "memory_mib": 8192, "compute_milli": 250, **wishes}
        return submit_job(
            principal=self.people[who],
            project="vision",
            request=JobRequest(**wanted),
            now=utc_now(),
        ).id


def world() -> World:
    place = builders.place()
    people = {
        "outsider": builders.user("outsider"),
        "platform_admin": builders.user("platform_admin", is_platform_admin=True),
        "tenant_admin": builders.user(
            "tenant_admin", role=Role.TENANT_ADMIN, tenant_id=place.research
        ),
        **{
            role: builders.user(role, role=role, project_id=place.project)
            for role in ("viewer", "member", "project_admin")
        },
    }
    publish_price(
        actor=SYSTEM,
        effective_from=builders.NOW,
        currency=config.currency,
        rates={"*": 1_000_000},
        now=builders.NOW,
    )
    return World(place, people, builders.node())
