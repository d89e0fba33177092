"""Invitations: once, for a while, and never more than the inviter may give."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth import authenticate

from portal.accounts import invitations, members, users
from portal.accounts.models import Invitation, Membership, User
from portal.accounts.roles import Role, Scope
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.models import AuditEntry
from tests.builders import NOW, PASSWORD, later, place, user
from tests.racing import race

WEEK = timedelta(days=7)


@pytest.fixture
def where(db):
    return place()


@pytest.fixture
def grace(where):
    return user("grace", role=Role.PROJECT_ADMIN, project_id=where.project)


def invite(who, role=Role.MEMBER, **place_or_life):
    wanted = {"life": WEEK, "now": NOW, **place_or_life}
    if "tenant" not in wanted:
        wanted.setdefault("project", "vision")
    return invitations.invite(who, role=role, **wanted)


def join(who, secret, now=None):
    return invitations.accept_invitation(who, secret=secret, now=now or later(1))


def role_of(name):
    return Membership.objects.filter(user__name=name).values_list("role", flat=True).first()


def test_whoever_holds_the_link_joins_once(where, grace):
    ada, bob = user("ada"), user("bob")
    made = invite(grace)

    offer = invitations.read_invitation(made.secret, later(1))
    join(ada, made.secret)

    assert (offer.place, offer.role, offer.invited_by) == ("vision", Role.MEMBER, "grace")
    assert role_of("ada") == "member"
    with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
        join(bob, made.secret)
    assert invitations.open_invitations(grace, project="vision", now=NOW) == []
    verbs = AuditEntry.objects.filter(verb__startswith="invitation.").order_by("id")
    assert [entry.verb for entry in verbs] == ["invitation.issued", "invitation.accepted"]
    assert {entry.project_id for entry in verbs} == {where.project}


def test_a_new_user_is_made_and_joins(where, grace):
    made = invite(grace, email="ada@example.org")
    accept = partial(invitations.accept_as_new_user, secret=made.secret, now=later(1))

    with pytest.raises(Conflict, match=r"accounts\.user_taken"):
        accept(name="grace", password=PASSWORD)
    with pytest.raises(Rejected, match=r"accounts\.password_weak"):
        accept(name="ada", password="12345678")
    with pytest.raises(Rejected, match=r"accounts\.name_invalid"):
        accept(name="a\0", password=PASSWORD)
    accept(name="ada", password=PASSWORD)

    assert authenticate(username="ada", password=PASSWORD)
    assert User.objects.get(name="ada").email == "ada@example.org"
    assert not User.objects.get(name="ada").is_platform_admin
    assert role_of("ada") == "member"


def test_only_a_digest_is_kept(where, grace):
    secret = invite(grace).secret

    stored = str(list(Invitation.objects.values())) + str(list(AuditEntry.objects.values()))
    assert secret not in stored


def test_a_link_ends_with_time_revocation_and_the_right_of_the_inviter(where, grace):
    ada = user("ada")
    boss = user("boss", role=Role.TENANT_ADMIN, tenant_id=where.research)
    old, revoked, lost = invite(grace), invite(grace), invite(grace)
    invitations.revoke_invitation(boss, invitation_id=revoked.invitation.id, now=NOW)

    for secret, now in ((old.secret, NOW + WEEK), (revoked.secret, NOW), ("", NOW), ("x", NOW)):
        with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
            join(ada, secret, now)
    members.remove_project_member(boss, project="vision", user="grace", now=NOW)
    with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
        join(ada, lost.secret)
    assert role_of("ada") is None


def test_a_deactivated_inviter_has_invited_nobody(where, grace):
    root = user("root", is_platform_admin=True)
    secret = invite(grace).secret

    users.deactivate_user(root, user=grace.user_id, now=NOW)

    with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
        join(user("ada"), secret)


def test_nobody_invites_to_more_than_they_may(where, grace):
    boss = user("boss", role=Role.TENANT_ADMIN, tenant_id=where.research)
    narrow = replace(grace, token_scopes=frozenset({Scope.PROJECT_ADMIN}))

    with pytest.raises(Rejected, match=r"accounts\.role_misplaced"):
        invite(grace, Role.TENANT_ADMIN)
    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        invite(grace, Role.VIEWER, tenant="research")
    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        invite(boss, Role.VIEWER, tenant="acme")
    with pytest.raises(Forbidden, match=r"accounts\.role_above_own"):
        invite(narrow)
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
        invite(user("ada", role=Role.MEMBER, project_id=where.project), Role.VIEWER)
    with pytest.raises(Rejected, match=r"accounts\.one_place"):
        invite(boss, project="vision", tenant="research")
    for life in (timedelta(0), timedelta(days=31)):
        with pytest.raises(Rejected, match=r"accounts\.invitation_expiry"):
            invite(boss, life=life)
    assert not Invitation.objects.exists()
    invite(boss, Role.TENANT_ADMIN, tenant="research")


def test_joining_never_takes_a_role_away(where, grace):
    secret = invite(grace, Role.VIEWER).secret

    join(grace, secret)

    assert role_of("grace") == "project_admin"


def test_a_stranger_cannot_tell_invitations_apart(where, grace):
    made = invite(grace)
    eve = user("eve")
    revoke = partial(invitations.revoke_invitation, eve, now=NOW)

    refusals = set()
    for invitation_id in (made.invitation.id, "none"):
        with pytest.raises(NotFound) as refused:
            revoke(invitation_id=invitation_id)
        refusals.add((refused.value.code, refused.value.detail))
    assert len(refusals) == 1


@pytest.mark.django_db(transaction=True)
def test_a_link_used_at_once_by_many_takes_one_in():
    where = place()
    grace = user("grace", role=Role.PROJECT_ADMIN, project_id=where.project)
    secret = invite(grace).secret
    crowd = [user(f"user{number}") for number in range(6)]

    def try_it(who):
        try:
            join(who, secret)
        except NotFound as refused:
            return refused.code
        return "done"

    assert race(*(partial(try_it, who) for who in crowd)).count("done") == 1
    assert Membership.objects.filter(project_id=where.project, role="member").count() == 1
