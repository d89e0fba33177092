"""Members, tenants that move, and what no administrator may do."""

from dataclasses import replace
from functools import partial

import pytest

from portal.accounts import access, members, places
from portal.accounts.models import Membership, Tenant, User
from portal.accounts.roles import Role, Scope
from portal.accounts.selectors import project_line
from portal.accounts.services import create_project, create_tenant
from portal.core.audit import SYSTEM
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.ids import new_id
from portal.core.locks import guarded
from portal.core.models import AuditEntry
from quotas.selectors import proof_of_holds
from quotas.services.holds import NewHold, hold_many, release_many
from quotas.services.moves import move_tenant
from tests.builders import NOW, place, user
from tests.racing import race


@pytest.fixture
def where(db):
    return place()


@pytest.fixture
def root(where):
    return user("root", is_platform_admin=True)


def grace_of(where):
    return user("grace", role=Role.PROJECT_ADMIN, project_id=where.project)


def put(who, name, role, project="vision"):
    return members.put_project_member(who, project=project, user=name, role=role, now=NOW)


def take(who, name, project="vision"):
    members.remove_project_member(who, project=project, user=name, now=NOW)


def tenant(slug, parent_id=None):
    return create_tenant(
        actor=SYSTEM, name=slug.capitalize(), slug=slug, parent_id=parent_id, now=NOW
    )


def path_of(tenant_id):
    return Tenant.objects.values_list("path", flat=True).get(pk=tenant_id)


def hold(where, milli=250):
    new = NewHold(new_id(), where.project, where.owner_ids, milli)
    with guarded():
        return new.attempt_id, hold_many([new], now=NOW)


def test_an_administrator_adds_changes_and_removes_members(where):
    grace = grace_of(where)
    user("ada")

    put(grace, "ada", Role.VIEWER)
    put(grace, "ada", Role.MEMBER)
    ref = access.access_project(grace, "vision", need=Scope.JOBS_READ)
    listed = {member.name: member.role for member in members.members_of_project(ref)}
    take(grace, "ada")

    assert listed == {"ada": Role.MEMBER, "grace": Role.PROJECT_ADMIN}
    assert not Membership.objects.filter(user__name="ada").exists()
    entries = AuditEntry.objects.filter(verb="membership.set", actor_name="grace")
    assert [entry.detail["role"] for entry in entries.order_by("id")] == ["viewer", "member", None]
    assert {entry.tenant_id for entry in entries} == {where.research}


def test_roles_from_above_are_shown_with_their_tenant(where):
    user("boss", role=Role.TENANT_ADMIN, tenant_id=where.acme)
    ref = access.access_project(grace_of(where), "vision", need=Scope.JOBS_READ)

    assert [(one.name, one.tenant) for one in members.members_of_project(ref)] == [
        ("grace", ""),
        ("boss", "acme"),
    ]


def test_nobody_gives_more_than_they_have(where):
    grace = grace_of(where)
    user("ada")
    narrow = replace(grace, token_scopes=frozenset({Scope.PROJECT_ADMIN}))

    with pytest.raises(Forbidden, match=r"accounts\.role_above_own"):
        put(grace, "ada", Role.TENANT_ADMIN)
    with pytest.raises(Forbidden, match=r"accounts\.role_above_own"):
        put(narrow, "ada", Role.MEMBER)
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
        put(user("bob", role=Role.MEMBER, project_id=where.project), "ada", Role.VIEWER)
    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        members.put_tenant_member(
            grace, tenant="research", user="grace", role=Role.TENANT_ADMIN, now=NOW
        )


def test_the_last_administrator_stays_unless_the_tenant_says_otherwise(where):
    grace = grace_of(where)

    with pytest.raises(Rejected, match=r"accounts\.last_project_admin"):
        take(grace, "grace")
    with pytest.raises(Rejected, match=r"accounts\.last_project_admin"):
        put(grace, "grace", Role.MEMBER)
    put(grace, "grace", Role.PROJECT_ADMIN)

    take(user("boss", role=Role.TENANT_ADMIN, tenant_id=where.research), "grace")
    assert not Membership.objects.filter(project_id=where.project).exists()


@pytest.mark.django_db(transaction=True)
def test_two_administrators_cannot_remove_each_other_at_once():
    where = place()
    both = [
        user(name, role=Role.PROJECT_ADMIN, project_id=where.project) for name in ("ada", "bob")
    ]

    def remove(who, name):
        try:
            take(who, name)
        except (Rejected, NotFound) as refused:
            return refused.code
        return "done"

    ends = race(partial(remove, both[0], "bob"), partial(remove, both[1], "ada"))

    left = Membership.objects.filter(project_id=where.project, role=Role.PROJECT_ADMIN).count()
    assert left == 1
    assert ends.count("done") == 1


@pytest.mark.parametrize("name", ["nobody", "", "a\x01b", "x" * 500])
def test_an_unknown_or_inactive_user_cannot_be_added(where, name):
    grace = grace_of(where)
    user("gone")
    User.objects.filter(name="gone").update(is_active=False)

    refusals = []
    for one in (name, "gone"):
        with pytest.raises(NotFound) as refused:
            put(grace, one, Role.VIEWER)
        refusals.append((refused.value.code, refused.value.detail))

    assert refusals[0] == refusals[1]


def test_a_tenant_moves_with_all_that_is_below_it(where, root):
    other = tenant("other")
    team = tenant("team", where.research)
    boss = user("boss", role=Role.TENANT_ADMIN, tenant_id=other)

    move_tenant(root, tenant="research", parent="other", now=NOW)

    assert path_of(where.research) == f"/{other}/{where.research}/"
    assert path_of(team) == f"/{other}/{where.research}/{team}/"
    assert project_line(where.project).tenant_ids == (other, where.research)
    assert access.access_project(boss, "vision", need=Scope.TENANT_ADMIN).id == where.project
    entry = AuditEntry.objects.get(verb="tenant.moved")
    assert entry.detail == {"old_parent_id": where.acme, "parent_id": other}

    move_tenant(root, tenant="research", parent=None, now=NOW)
    move_tenant(root, tenant="research", parent=None, now=NOW)
    assert path_of(team) == f"/{where.research}/{team}/"
    assert AuditEntry.objects.filter(verb="tenant.moved").count() == 2


@pytest.mark.parametrize("parent", ["acme", "research"])
def test_a_tenant_never_lies_below_itself(where, root, parent):
    with pytest.raises(Conflict, match=r"accounts\.tenant_in_circle"):
        move_tenant(root, tenant="acme", parent=parent, now=NOW)
    assert path_of(where.research) == f"/{where.acme}/{where.research}/"


@pytest.mark.django_db(transaction=True)
def test_a_tenant_that_holds_quota_stays_where_it_is():
    where = place()
    root = user("root", is_platform_admin=True)
    tenant("other")
    attempt_id, refused = hold(where)
    before = path_of(where.research)

    with pytest.raises(Conflict, match=r"accounts\.tenant_in_use"):
        move_tenant(root, tenant="research", parent="other", now=NOW)

    assert refused == {}
    assert path_of(where.research) == before
    assert not AuditEntry.objects.filter(verb="tenant.moved").exists()
    with guarded():
        release_many([attempt_id], now=NOW)
    move_tenant(root, tenant="research", parent="other", now=NOW)
    assert proof_of_holds() == []


def test_a_plan_from_before_the_move_holds_nothing(where, root):
    tenant("other")
    move_tenant(root, tenant="research", parent="other", now=NOW)

    attempt_id, refused = hold(where)

    assert refused[attempt_id].code == "quotas.tree_changed"
    assert proof_of_holds() == []


def test_moving_needs_both_places(where, root):
    tenant("other")
    boss = user("boss", role=Role.TENANT_ADMIN, tenant_id=where.acme)
    tenant("sub", where.acme)

    with pytest.raises(NotFound, match=r"accounts\.tenant_not_found"):
        move_tenant(boss, tenant="research", parent="other", now=NOW)
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
        move_tenant(boss, tenant="research", parent=None, now=NOW)
    with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
        move_tenant(boss, tenant="acme", parent="sub", now=NOW)
    move_tenant(boss, tenant="research", parent="sub", now=NOW)


def test_a_move_that_nests_too_deep_is_refused(where, root):
    def chain(name, length):
        parent = None
        for level in range(length):
            parent = tenant(f"{name}{level}", parent)

    chain("a", 20)
    chain("b", 20)

    with pytest.raises(Rejected, match=r"accounts\.tenant_too_deep"):
        move_tenant(root, tenant="b0", parent="a19", now=NOW)


@pytest.mark.django_db(transaction=True)
def test_moves_at_once_make_no_circle():
    place()
    root = user("root", is_platform_admin=True)
    ids = {slug: tenant(slug) for slug in ("a", "b", "c")}

    def move(slug, parent):
        try:
            move_tenant(root, tenant=slug, parent=parent, now=NOW)
        except Conflict as refused:
            return refused.code
        return "done"

    ends = race(*(partial(move, *pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"))))

    assert ends.count("done") == 2
    for slug, tenant_id in ids.items():
        row = Tenant.objects.select_related("parent").get(slug=slug)
        above = row.parent.path if row.parent else "/"
        assert row.path == f"{above}{tenant_id}/"


def test_the_tree_shows_what_one_may_look_into(where, root):
    other = tenant("other")
    create_project(actor=SYSTEM, tenant_id=other, name="Secret", slug="secret", now=NOW)

    def seen(principal):
        return [
            (branch.tenant.slug, [project.slug for project in branch.projects])
            for branch in places.tree_of(principal)
        ]

    assert seen(grace_of(where)) == [("acme", []), ("research", ["vision"])]
    assert seen(user("boss", role=Role.VIEWER, tenant_id=other)) == [("other", ["secret"])]
    assert seen(user("eve")) == []
    assert len(seen(root)) == 3
    assert [one.slug for one in places.tenants_of(root)] == ["acme", "research", "other"]


@pytest.mark.parametrize("name", ["", " x", "x ", "a\0b", "a\nb", "x" * 101])
def test_a_name_that_no_list_could_show_is_refused(where, root, name):
    for change in (
        partial(places.make_tenant, root, parent=None, slug="t"),
        partial(places.make_project, root, tenant="acme", slug="p"),
        partial(places.name_tenant, root, tenant="acme"),
        partial(places.name_project, root, project="vision"),
    ):
        with pytest.raises(Rejected, match=r"accounts\.name_invalid"):
            change(name=name, now=NOW)
