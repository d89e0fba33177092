"""Users: what ends with a deactivation, links that set passwords, and who may do it."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth import authenticate

from portal.accounts import users
from portal.accounts.models import PasswordLink, User
from portal.accounts.roles import EVERY_SCOPE, Scope
from portal.accounts.tokens import authenticate_token, issue_token
from portal.core.errors import Conflict, Forbidden, NotFound, Rejected
from portal.core.models import AuditEntry
from tests.builders import NOW, PASSWORD, later, user
from tests.racing import race

NEW = "another long password"
DAY = timedelta(days=1)


@pytest.fixture
def root(db):
    return user("root", is_platform_admin=True)


def link(root, of, now=NOW):
    return users.issue_password_link(root, user=of.user_id, now=now).secret


def use(secret, now, password=NEW):
    users.set_password_by_link(secret=secret, password=password, now=now)


def test_a_new_user_signs_in_after_the_link(root):
    made = users.make_user(root, name="ada", email="a@x.org", is_platform_admin=False, now=NOW)
    before = authenticate(username="ada", password="")

    assert users.owner_of_password_link(made.secret, later(1)) == "ada"
    use(made.secret, later(1))

    assert before is None
    assert authenticate(username="ada", password=NEW)


def test_a_link_works_once_for_a_day_and_the_newest_only(root):
    ada = user("ada")
    older = link(root, ada)
    newer = link(root, ada)

    for secret, now in ((older, later(1)), (newer, NOW + DAY), ("", NOW), (newer[:-1], NOW)):
        with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
            use(secret, now)
        with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
            users.owner_of_password_link(secret, now)
    with pytest.raises(Rejected, match=r"accounts\.password_weak"):
        use(newer, later(1), "12345678")
    use(newer, later(1))
    with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
        use(newer, later(2))
    assert authenticate(username="ada", password=NEW)


def test_no_secret_lies_in_the_database_or_the_audit(root):
    secret = link(root, user("ada"))
    use(secret, later(1))

    stored = str(list(PasswordLink.objects.values())) + str(list(AuditEntry.objects.values()))
    assert secret not in stored
    assert NEW not in stored


@pytest.mark.django_db(transaction=True)
def test_a_link_used_at_once_by_many_works_once():
    root = user("root", is_platform_admin=True)
    secret = link(root, user("ada"))

    def try_it(number):
        try:
            use(secret, later(1), f"{NEW} {number}")
        except NotFound as refused:
            return refused.code
        return "done"

    assert race(*(partial(try_it, number) for number in range(6))).count("done") == 1


def test_deactivation_ends_tokens_and_links_for_good(root):
    ada = user("ada")
    _, token = issue_token(
        actor=ada.actor,
        user_id=ada.user_id,
        name="ci",
        scopes=[Scope.FLEET_READ],
        expires_at=NOW + DAY,
        now=NOW,
    )
    secret = link(root, ada)
    session = User.objects.get(pk=ada.user_id).get_session_auth_hash()

    users.deactivate_user(root, user=ada.user_id, now=later(1))
    users.deactivate_user(root, user=ada.user_id, now=later(1))

    assert authenticate(username="ada", password=PASSWORD) is None
    with pytest.raises(Conflict, match=r"accounts\.user_inactive"):
        link(root, ada)
    users.reactivate_user(root, user=ada.user_id, now=later(2))
    assert authenticate(username="ada", password=PASSWORD)
    assert authenticate_token(token, later(3)) is None
    assert User.objects.get(pk=ada.user_id).get_session_auth_hash() != session
    with pytest.raises(NotFound, match=r"accounts\.link_invalid"):
        use(secret, later(3))
    assert AuditEntry.objects.filter(verb="user.deactivated").count() == 1


@pytest.mark.django_db(transaction=True)
def test_administrators_who_deactivate_each_other_at_once_leave_one():
    both = [user(name, is_platform_admin=True) for name in ("ada", "bob")]

    def end(who, other):
        try:
            users.deactivate_user(who, user=other.user_id, now=NOW)
        except Forbidden as refused:
            return refused.code
        return "done"

    ends = race(partial(end, *both), partial(end, *reversed(both)))

    assert sorted(ends) == ["accounts.not_active", "done"]
    assert User.objects.filter(is_active=True).count() == 1


def test_only_the_whole_platform_manages_users(root):
    ada = user("ada")
    narrow = replace(root, token_scopes=EVERY_SCOPE - {Scope.JOBS_WRITE})
    make = partial(users.make_user, name="x", email="", is_platform_admin=True, now=NOW)

    for who in (ada, narrow):
        for act in (
            make,
            partial(users.deactivate_user, user=ada.user_id, now=NOW),
            partial(users.reactivate_user, user=ada.user_id, now=NOW),
            partial(users.issue_password_link, user=root.user_id, now=NOW),
        ):
            with pytest.raises(Forbidden, match=r"accounts\.scope_missing"):
                act(who)
    with pytest.raises(Forbidden):
        users.user_page(ada)
    with pytest.raises(Conflict, match=r"accounts\.own_account"):
        users.deactivate_user(root, user=root.user_id, now=NOW)
    assert make(replace(root, token_scopes=EVERY_SCOPE)).user.is_platform_admin


def test_people_change_their_own_password(root):
    ada = user("ada")
    change = partial(users.change_password, now=NOW)

    with pytest.raises(Rejected, match=r"accounts\.password_wrong"):
        change(ada, old="wrong", new=NEW)
    for weak in ("short", "1234567890", "a" * 2000, "a long\0password"):
        with pytest.raises(Rejected, match=r"accounts\.password_weak"):
            change(ada, old=PASSWORD, new=weak)
    with pytest.raises(Forbidden, match=r"accounts\.session_needed"):
        change(replace(ada, token_scopes=EVERY_SCOPE), old=PASSWORD, new=NEW)
    change(ada, old=PASSWORD, new=NEW)
    assert authenticate(username="ada", password=NEW)


def test_users_are_listed_by_name_in_pages(root):
    for name in ("cyd", "ada", "bob"):
        user(name)

    first = users.user_page(root, limit=2)
    second = users.user_page(root, after=first.next_after or "", limit=2)

    assert [one.name for one in first.items] == ["ada", "bob"]
    assert ([one.name for one in second.items], second.next_after) == (["cyd", "root"], None)
    assert [one.name for one in users.user_page(root, search="DA").items] == ["ada"]


@pytest.mark.parametrize("name", ["", " a", "a\0b", "a\nb", "x" * 151])
def test_a_name_that_no_list_could_show_is_refused(root, name):
    with pytest.raises(Rejected, match=r"accounts\.name_invalid"):
        users.make_user(root, name=name, email="", is_platform_admin=False, now=NOW)
