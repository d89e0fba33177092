"""Access, tokens and the services of accounts."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth import authenticate
from django.db import DatabaseError, transaction

from portal.accounts import access
from portal.accounts.models import ApiToken, User
from portal.accounts.roles import EVERY_SCOPE, Role, Scope
from portal.accounts.selectors import owner_names, project_line, projects_of, tokens_of, user_names
from portal.accounts.services import (
    create_project,
    create_tenant,
    create_user,
    next_job_numbers,
    set_membership,
)
from portal.accounts.tokens import LONGEST_LIFE, authenticate_token, issue_token, revoke_token
from portal.core.audit import SYSTEM
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.locks import guarded
from portal.core.models import AuditEntry
from tests.builders import NOW, PASSWORD, later, place, user
from tests.racing import race

DAY = timedelta(days=1)


def token(owner, *scopes, expires_at=NOW + DAY, within=None):
    return issue_token(
        actor=owner.actor,
        user_id=owner.user_id,
        name="ci",
        scopes=scopes or (Scope.JOBS_READ,),
        expires_at=expires_at,
        now=NOW,
        within=within,
    )


@pytest.fixture
def where(db):
    return place()


@pytest.mark.parametrize("by", ["id", "slug"])
def test_a_member_reaches_the_project_with_the_scopes_of_the_role(where, by):
    ada = user(role="member", project_id=where.project)

    found = access.access_project(
        ada, where.project if by == "id" else "vision", need=Scope.JOBS_WRITE
    )

    assert (found.id, found.slug, found.tenant_id) == (where.project, "vision", where.research)
    assert Scope.PROJECT_ADMIN not in found.scopes


def test_a_role_in_a_tenant_reaches_all_below_and_nothing_beside(where):
    beside = create_tenant(actor=SYSTEM, name="Other", slug="other", parent_id=None, now=NOW)
    create_project(actor=SYSTEM, tenant_id=beside, name="Secret", slug="secret", now=NOW)
    boss = user(role="tenant_admin", tenant_id=where.acme)

    assert access.access_project(boss, "vision", need=Scope.TENANT_ADMIN).id == where.project
    assert access.accessible_project_ids(boss, need=Scope.JOBS_READ) == {where.project}
    assert access.access_tenant(boss, "research", need=Scope.TENANT_ADMIN).id == where.research
    with pytest.raises(NotFound, match=r"accounts\.project_not_found"):
        access.access_project(boss, "secret", need=Scope.JOBS_READ)
    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        access.access_tenant(boss, "other", need=Scope.JOBS_READ)


def test_a_strangers_project_looks_like_none(where):
    stranger = user("eve")

    def refusal(slug):
        with pytest.raises(NotFound) as refused:
            access.access_project(stranger, slug, need=Scope.JOBS_READ)
        return refused.value.code, refused.value.detail.replace(slug, "")

    assert refusal("vision") == refusal("nothing")
    assert projects_of(stranger) == []


def test_a_role_without_the_scope_is_forbidden(where):
    joan = user(role="viewer", project_id=where.project)

    with pytest.raises(Forbidden, match=r"accounts\.scope_missing.*role"):
        access.access_project(joan, "vision", need=Scope.JOBS_WRITE)
    assert access.accessible_project_ids(joan, need=Scope.JOBS_WRITE) == set()


def test_a_token_narrows_what_the_role_gives(where):
    ada = user(role="member", project_id=where.project)
    reader = replace(ada, token_scopes=frozenset({Scope.JOBS_READ}))

    assert access.access_project(reader, "vision", need=Scope.JOBS_READ).scopes == {Scope.JOBS_READ}
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing.*token"):
        access.access_project(reader, "vision", need=Scope.JOBS_WRITE)
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing.*token"):
        access.accessible_project_ids(reader, need=Scope.USAGE_READ)


def test_the_platform_is_for_its_administrator(where):
    root = user("root", is_platform_admin=True)
    boss = user("boss", role="tenant_admin", tenant_id=where.acme)

    access.access_platform(root, need=Scope.FLEET_ADMIN)
    access.access_platform(boss, need=Scope.FLEET_READ)
    with pytest.raises(Forbidden):
        access.access_platform(boss, need=Scope.FLEET_ADMIN)
    with pytest.raises(Forbidden):
        access.access_platform(
            replace(root, token_scopes=frozenset({Scope.JOBS_READ})), need=Scope.FLEET_ADMIN
        )
    assert access.accessible_project_ids(root, need=Scope.JOBS_READ) is None
    assert access.every_scope_of(root) == EVERY_SCOPE


def test_a_token_names_its_owner_and_its_scopes(where):
    ada = user(role="member", project_id=where.project)

    token_id, secret = token(ada, Scope.JOBS_READ, Scope.JOBS_WRITE)

    holder = authenticate_token(secret, later(1))
    assert holder == replace(ada, token_scopes=frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE}))
    assert [info.id for info in tokens_of(ada.user_id)] == [token_id]
    assert secret.rpartition("_")[2] not in str(ApiToken.objects.values().get())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda secret: secret + "x",
        lambda secret: secret[:-1],
        lambda secret: secret.replace("gpc_", "gpx_"),
        lambda secret: "gpc_" + secret,
        lambda secret: "",
        lambda secret: "gpc__",
    ],
)
def test_another_text_is_no_token(where, spoil):
    _, secret = token(user(role="member", project_id=where.project))

    assert authenticate_token(spoil(secret), later(1)) is None


def test_an_expired_revoked_or_orphaned_token_is_none(where):
    ada = user(role="member", project_id=where.project)
    token_id, secret = token(ada)
    assert authenticate_token(secret, NOW + DAY) is None

    revoke = partial(
        revoke_token, actor=ada.actor, user_id=ada.user_id, token_id=token_id, now=later(1)
    )
    assert (revoke(), revoke()) == (True, False)
    assert authenticate_token(secret, later(2)) is None

    _, other = token(ada)
    User.objects.filter(pk=ada.user_id).update(is_active=False)
    assert authenticate_token(other, later(2)) is None


def test_nobody_revokes_the_token_of_another(where):
    token_id, secret = token(user(role="member", project_id=where.project))
    eve = user("eve")

    with pytest.raises(NotFound, match=r"accounts\.token_not_found"):
        revoke_token(actor=eve.actor, user_id=eve.user_id, token_id=token_id, now=later(1))
    assert authenticate_token(secret, later(2))


def test_use_of_a_token_is_noted_once_a_minute(where):
    ada = user(role="member", project_id=where.project)
    _, secret = token(ada)

    for seconds in (1, 30, 62):
        authenticate_token(secret, later(seconds))

    (info,) = tokens_of(ada.user_id)
    assert info.last_used_at == later(62)
    authenticate_token(secret, later(100))
    assert tokens_of(ada.user_id) == [info]


@pytest.mark.parametrize(
    ("scopes", "within"),
    [
        ([Scope.FLEET_ADMIN], None),
        ([Scope.JOBS_READ, Scope.JOBS_WRITE], frozenset({Scope.JOBS_READ})),
    ],
    ids=["more than the owner", "more than the asking token"],
)
def test_a_token_never_carries_more_than_its_maker(where, scopes, within):
    ada = user(role="member", project_id=where.project)

    with pytest.raises(Rejected, match=r"accounts\.token_scopes"):
        token(ada, *scopes, within=within)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("life", [timedelta(0), LONGEST_LIFE + timedelta(seconds=1)])
def test_a_token_expires_within_a_year(where, life):
    ada = user(role="member", project_id=where.project)

    with pytest.raises(Rejected, match=r"accounts\.token_expiry"):
        token(ada, expires_at=NOW + life)


@pytest.mark.parametrize("slug", ["", "Vision", "1st", "a_b", "a-", "x" * 32, "a/b"])
def test_a_bad_short_name_is_refused(where, slug):
    with pytest.raises(Rejected, match=r"accounts\.slug_invalid"):
        create_project(actor=SYSTEM, tenant_id=where.acme, name="N", slug=slug, now=NOW)


def test_a_short_name_or_user_is_taken_once(where):
    user("ada")

    with pytest.raises(Conflict, match=r"accounts\.slug_taken"):
        create_project(actor=SYSTEM, tenant_id=where.acme, name="V", slug="vision", now=NOW)
    with pytest.raises(Conflict, match=r"accounts\.user_taken"):
        user("ada")


def test_a_tenant_needs_a_parent_that_exists_and_a_depth_that_fits(where):
    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        create_tenant(actor=SYSTEM, name="T", slug="t", parent_id="unknown", now=NOW)

    def deepen():
        parent = where.research
        for level in range(30):
            parent = create_tenant(
                actor=SYSTEM, name="T", slug=f"t{level}", parent_id=parent, now=NOW
            )

    with pytest.raises(Rejected, match=r"accounts\.tenant_too_deep"):
        deepen()


def test_a_password_signs_in_and_a_weak_one_is_refused(where):
    user("ada")

    assert authenticate(username="ada", password=PASSWORD)
    assert not authenticate(username="ada", password="another")
    with pytest.raises(Rejected, match=r"accounts\.password_weak"):
        create_user(actor=SYSTEM, name="bob", email="", password="12345678", now=NOW)


def test_a_membership_changes_and_goes(where):
    ada = user(role="viewer", project_id=where.project)
    put = partial(
        set_membership, actor=SYSTEM, user_id=ada.user_id, project_id=where.project, now=NOW
    )

    put(role=Role.MEMBER)
    access.access_project(ada, "vision", need=Scope.JOBS_WRITE)

    put(role=None)
    with pytest.raises(NotFound):
        access.access_project(ada, "vision", need=Scope.JOBS_READ)
    with pytest.raises(Rejected, match=r"accounts\.role_misplaced"):
        put(role=Role.TENANT_ADMIN)


def test_names_and_lines_are_known_to_other_rooms(where):
    ada = user(role="viewer", project_id=where.project)

    assert project_line(where.project).owner_ids == where.owner_ids
    assert [info.slug for info in projects_of(ada)] == ["vision"]
    assert user_names([ada.user_id, "unknown"]) == {ada.user_id: "ada"}
    assert owner_names([where.acme, where.project]) == {
        where.acme: "tenant acme",
        where.project: "project vision",
    }


def test_the_audit_tells_who_and_cannot_be_rewritten(where):
    entry = AuditEntry.objects.get(verb="project.created")
    assert (entry.actor_name, entry.object_id) == ("system", where.project)

    for rewrite in (
        lambda: AuditEntry.objects.update(actor_name="nobody"),
        lambda: AuditEntry.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            rewrite()


@pytest.mark.django_db(transaction=True)
def test_racing_submissions_get_numbers_without_gap_or_double():
    where = place()

    def take(count):
        with guarded():
            return list(next_job_numbers(where.project, count))

    taken = race(*(partial(take, count) for count in (1, 2, 3, 4, 1, 2, 3, 4)))

    assert sorted(number for numbers in taken for number in numbers) == list(range(1, 21))
    assert all(numbers == sorted(numbers) for numbers in taken)
