"""The demonstration that `manage.py up` shows: tenants, projects, people, quotas and prices.

What is there already is kept as it is: a second start changes no password, token, quota or price.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils.crypto import salted_hmac

from billing.selectors import price_versions
from billing.services.prices import publish_price
from portal.accounts import selectors as accounts
from portal.accounts.roles import EVERY_SCOPE, SCOPES_OF, SCOPES_OF_EVERYBODY, Role, Scope
from portal.accounts.services import create_project, create_tenant, create_user, set_membership
from portal.accounts.tokens import authenticate_token, issue_token
from portal.config import config
from portal.core.audit import SYSTEM, Actor
from portal.core.locks import guarded
from portal.fleet.selectors import fleet_view
from quotas.services.limits import set_limit

RATES = {"NVIDIA H200": 2_800_000, "*": 1_000_000}
TOKEN_LIFE = timedelta(days=365)
TOKEN_LEFT = timedelta(days=30)
QUEUED_LIMIT = 10_000


@dataclass(frozen=True)
class _Place:
    """A tenant or project and how many GPUs it may hold at once."""

    slug: str
    name: str
    parent: str | None
    gpus: int


@dataclass(frozen=True)
class _Person:
    name: str
    project: str
    role: Role | None
    tenant: str | None = None

    @property
    def scopes(self) -> frozenset[Scope]:
        return EVERY_SCOPE if self.role is None else SCOPES_OF[self.role] | SCOPES_OF_EVERYBODY


TENANTS = (
    _Place("acme", "Acme", None, 64),
    _Place("research", "Research", "acme", 48),
    _Place("product", "Product", "acme", 32),
)
PROJECTS = (
    _Place("vision", "Vision", "research", 32),
    _Place("language", "Language", "research", 32),
    _Place("analytics", "Analytics", "product", 16),
)
PEOPLE = (
    _Person("admin", "vision", None),
    _Person("ada", "vision", Role.MEMBER),
    _Person("grace", "vision", Role.PROJECT_ADMIN),
    _Person("alan", "language", Role.MEMBER),
    _Person("edsger", "language", Role.TENANT_ADMIN, tenant="research"),
    _Person("barbara", "analytics", Role.MEMBER),
    _Person("joan", "analytics", Role.VIEWER),
)


@dataclass(frozen=True)
class DemoUser:
    """How to sign in as a person of the demonstration, and what they may do where."""

    name: str
    password: str
    token: str
    project: str
    role: str


@dataclass(frozen=True)
class Demo:
    """The demonstration as it is shown; ``notes`` are honest words about its GPUs."""

    url: str
    users: tuple[DemoUser, ...]
    admin: Actor
    notes: tuple[str, ...] = ()


def ensure_demo(*, url: str, now: datetime) -> Demo:
    """Make what is missing of the demonstration, all of it in one transaction."""
    known = _published_users()
    with guarded():
        if not price_versions():
            publish_price(
                actor=SYSTEM, effective_from=now, currency=config.currency, rates=RATES, now=now
            )
        places = _ensure_places(now)
        users = tuple(_ensure_person(person, places, known, now) for person in PEOPLE)
        admin = Actor("admin", accounts.user_ids(["admin"])["admin"])
    return Demo(url=url, users=users, admin=admin)


def publish(demo: Demo) -> Demo:
    """Write ``demo.json`` (mode 0600, replaced as a whole) and add the notes."""
    text = json.dumps({"url": demo.url, "users": [asdict(user) for user in demo.users]}, indent=2)
    partial = _file().with_name(f"demo.json.{secrets.token_hex(4)}")
    partial.touch(mode=0o600)
    with partial.open("w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(_file())
    return replace(demo, notes=_notes())


def _notes() -> tuple[str, ...]:
    nodes = fleet_view()
    simulated = sum(gpu.simulated for node in nodes for gpu in node.gpus)
    shared_user = [node.name for node in nodes if node.isolated is False]
    notes = []
    if simulated:
        notes.append(f"{simulated} GPUs are simulated: this machine has no NVIDIA GPU for them.")
    if shared_user:
        notes.append(f"Jobs are not isolated from each other on {', '.join(shared_user)}: no root.")
    return tuple(notes)


def _ensure_places(now: datetime) -> dict[str, str]:
    """Give the ids of tenants and projects by slug; quotas are set where something is new."""
    places = accounts.ids_of_slugs([place.slug for place in (*TENANTS, *PROJECTS)])
    for place in TENANTS:
        if place.slug not in places:
            parent_id = places[place.parent] if place.parent else None
            places[place.slug] = create_tenant(
                actor=SYSTEM, name=place.name, slug=place.slug, parent_id=parent_id, now=now
            )
            _set_limit(places[place.slug], place, None, now)
    for place in PROJECTS:
        if place.slug not in places:
            places[place.slug] = create_project(
                actor=SYSTEM,
                tenant_id=places[place.parent or ""],
                name=place.name,
                slug=place.slug,
                now=now,
            )
            _set_limit(places[place.slug], place, QUEUED_LIMIT, now)
    return places


def _set_limit(owner_id: str, place: _Place, queued_limit: int | None, now: datetime) -> None:
    set_limit(
        actor=SYSTEM,
        owner_id=owner_id,
        limit_milli=place.gpus * 1000,
        queued_limit=queued_limit,
        now=now,
    )


def _ensure_person(
    person: _Person, places: dict[str, str], known: Mapping[str, Any], now: datetime
) -> DemoUser:
    kept = known.get(person.name, {})
    password = kept.get("password") or _password(person.name)
    user_id = accounts.user_ids([person.name]).get(person.name)
    if user_id is None:
        user_id = create_user(
            actor=SYSTEM,
            name=person.name,
            email=f"{person.name}@example.org",
            password=password,
            is_platform_admin=person.role is None,
            now=now,
        )
        if person.role is not None:
            in_tenant = places[person.tenant] if person.tenant else None
            set_membership(
                actor=SYSTEM,
                user_id=user_id,
                role=person.role,
                project_id=None if in_tenant else places[person.project],
                tenant_id=in_tenant,
                now=now,
            )
    token = kept.get("token", "")
    if authenticate_token(token, now + TOKEN_LEFT) is None:
        _, token = issue_token(
            actor=SYSTEM,
            user_id=user_id,
            name="demo",
            scopes=person.scopes,
            expires_at=now + TOKEN_LIFE,
            now=now,
        )
    role = person.role or "platform_admin"
    return DemoUser(person.name, password, token, person.project, str(role))


def _password(name: str) -> str:
    """Derive it from the portal's secret key: it is the same after a start that was cut short."""
    digest = salted_hmac("portal.ops.demo", name, algorithm="sha256").digest()
    text = base64.b32encode(digest).decode().lower()
    return "-".join(text[start : start + 4] for start in (0, 4, 8, 12))


def _published_users() -> dict[str, dict[str, str]]:
    try:
        published = json.loads(_file().read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return {user["name"]: user for user in published["users"]}


def _file() -> Path:
    return config.data / "demo.json"
